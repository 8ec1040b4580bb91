//! Made-up traces: whole ones, torn ones, and those of several processors at once.

use super::*;
use crate::event::Context::{Hardirq, Softirq, Task as Thread};
use crate::stages::{Stage, lengths};

const CLIENT: u32 = 100;
const OTHER: u32 = 200;
const SOCKET: u64 = 0xff01;

fn event(at: u64, cpu: u32, task: u32, context: Context, what: What) -> TraceEvent {
    TraceEvent { at, cpu, task, context, what }
}

/// The client on processor 0 sends packet `sent`, and sleeps.
fn ask(start: u64, sent: u64) -> Vec<TraceEvent> {
    let client = |after, what| event(start + after, 0, CLIENT, Thread, what);
    vec![
        client(0, What::CallEnter { fd: 5 }),
        client(2_000, What::DeviceQueued { packet: sent }),
        client(2_500, What::DriverCalled { packet: sent }),
        client(3_000, What::DriverDone { packet: sent }),
        client(3_500, What::Sent { socket: SOCKET, bytes: 64 }),
        client(4_000, What::CallExit),
        client(5_000, What::CallEnter { fd: 5 }),
        client(6_000, What::Left { task: CLIENT }),
    ]
}

/// Packet `came` arrives on processor 1, and the client is woken, runs on 0, and takes it.
fn answer(start: u64, came: u64) -> Vec<TraceEvent> {
    let idle = |after, context, what| event(start + after, 1, 0, context, what);
    let client = |after, what| event(start + after, 0, CLIENT, Thread, what);
    vec![
        idle(0, Hardirq, What::Interrupt { number: 33 }),
        idle(300, Hardirq, What::SoftirqRaised),
        idle(1_000, Softirq, What::SoftirqBegan),
        idle(2_000, Softirq, What::Received { packet: came, device: 0 }),
        idle(4_000, Softirq, What::SocketReady { socket: SOCKET }),
        idle(4_200, Softirq, What::Woken { task: CLIENT }),
        client(9_000, What::Runs { task: CLIENT }),
        client(9_500, What::Copied { packet: came }),
        client(9_800, What::Took { socket: SOCKET, bytes: 64 }),
        client(10_000, What::CallExit),
    ]
}

fn paths_of(engine: &mut Engine, mut events: Vec<TraceEvent>) -> Vec<Path> {
    events.sort_by_key(|event| event.at);
    events.iter().filter_map(|event| engine.see(event)).collect()
}

fn asked(paths: &[Path]) -> Vec<Path> {
    paths.iter().filter(|path| path.role == Role::Asks).copied().collect()
}

#[test]
fn request_and_answer_on_two_processors_are_one_path() {
    let mut engine = Engine::new();
    let events = [ask(10_000, 0xa), answer(100_000, 0xb)].concat();
    let paths = paths_of(&mut engine, events);
    assert_eq!(paths.len(), 1);
    assert_eq!((paths[0].fd, paths[0].task, paths[0].role), (5, CLIENT, Role::Asks));
    let lengths = lengths(&paths[0]).unwrap();
    let expected = [
        (Stage::StackOut, 2_500),
        (Stage::NicOut, 500),
        (Stage::Far, 87_000),
        (Stage::Softirq, 1_000),
        (Stage::StackIn, 3_200),
        (Stage::WakeUp, 4_800),
        (Stage::Take, 1_000),
    ];
    for (stage, nanos) in expected {
        assert_eq!(lengths.of(stage), nanos, "{stage:?}");
    }
    assert_eq!(lengths.total(), 100_000);
    assert_eq!(engine.untracked, Untracked::default());
}

#[test]
fn other_traffic_between_does_not_matter() {
    let mut noise = Vec::new();
    for n in 0..200 {
        let at = 10_100 + n * 500;
        noise.push(event(at, 1, 0, Hardirq, What::SoftirqRaised));
        noise.push(event(at + 1, 1, 0, Softirq, What::SoftirqBegan));
        let packet = 0x1000 + n;
        noise.push(event(at + 2, 1, 0, Softirq, What::Received { packet, device: 0 }));
        noise.push(event(at + 3, 1, 0, Softirq, What::SocketReady { socket: 0xbad }));
        noise.push(event(at + 4, 1, 0, Softirq, What::Woken { task: OTHER }));
    }
    let mut engine = Engine::new();
    // The noise has its own processor, or else it would be in the way in truth, too.
    for event in &mut noise {
        event.cpu = 2;
    }
    let events = [ask(10_000, 0xa), answer(100_000, 0xb), noise].concat();
    let paths = paths_of(&mut engine, events);
    assert_eq!(lengths(&paths[0]).unwrap().of(Stage::Far), 87_000);
}

#[test]
fn answer_that_overtakes_the_return_of_the_call_is_found() {
    // On loopback the answer is there before the call that sent the request returns.
    let mut engine = Engine::new();
    let events = [
        event(0, 0, CLIENT, Thread, What::CallEnter { fd: 3 }),
        event(1_000, 0, CLIENT, Thread, What::DeviceQueued { packet: 1 }),
        event(1_100, 0, CLIENT, Thread, What::DriverCalled { packet: 1 }),
        event(1_300, 1, OTHER, Softirq, What::SoftirqBegan),
        event(1_400, 1, OTHER, Softirq, What::Received { packet: 2, device: 0 }),
        event(1_500, 1, OTHER, Softirq, What::SocketReady { socket: SOCKET }),
        event(1_600, 0, CLIENT, Thread, What::DriverDone { packet: 1 }),
        event(1_700, 0, CLIENT, Thread, What::Sent { socket: SOCKET, bytes: 1 }),
        event(1_800, 0, CLIENT, Thread, What::CallExit),
        event(2_000, 0, CLIENT, Thread, What::CallEnter { fd: 3 }),
        event(2_100, 0, CLIENT, Thread, What::Took { socket: SOCKET, bytes: 1 }),
        event(2_200, 0, CLIENT, Thread, What::CallExit),
    ];
    let paths = paths_of(&mut engine, events.to_vec());
    let lengths = lengths(&paths[0]).unwrap();
    assert_eq!(lengths.total(), 2_200);
    assert_eq!((lengths.of(Stage::StackOut), lengths.of(Stage::Busy)), (1_100, 500));
}

#[test]
fn driver_that_gets_the_packet_after_the_call_is_noted() {
    let mut events = ask(10_000, 0xa);
    events[2].at = 40_000;
    events[3].at = 41_000;
    events[2].cpu = 1;
    let mut engine = Engine::new();
    let paths = paths_of(&mut engine, [events, answer(100_000, 0xb)].concat());
    let lengths = lengths(&paths[0]).unwrap();
    assert_eq!((lengths.of(Stage::StackOut), lengths.of(Stage::NicOut)), (30_000, 1_000));
}

#[test]
fn kernel_that_names_no_socket_is_followed_by_the_copied_packet() {
    let mut engine = Engine::new();
    let mut events = [ask(10_000, 0xa), answer(100_000, 0xb)].concat();
    events.retain(|event| !matches!(event.what, What::SocketReady { .. }));
    let paths = paths_of(&mut engine, events);
    let lengths = lengths(&paths[0]).unwrap();
    assert_eq!(lengths.of(Stage::StackIn), 3_200, "up to the wake-up");
    assert_eq!(lengths.total(), 100_000);
}

#[test]
fn lost_events_make_no_path_up() {
    let mut engine = Engine::new();
    let lost = event(50_000, 0, 0, Thread, What::Lost { count: 12 });
    let events = [ask(10_000, 0xa), vec![lost], answer(100_000, 0xb)].concat();
    assert_eq!(paths_of(&mut engine, events), []);
    assert_eq!((engine.untracked.lost_events, engine.untracked.forgotten), (12, 1));
    let events = [ask(200_000, 0xc), answer(300_000, 0xd)].concat();
    assert_eq!(asked(&paths_of(&mut engine, events)).len(), 1, "afterwards all is well");
}

#[test]
fn any_event_may_be_missing() {
    let whole = [ask(10_000, 0xa), answer(100_000, 0xb)].concat();
    for missing in 0..whole.len() {
        let mut events = whole.clone();
        events.remove(missing);
        let mut engine = Engine::new();
        for path in asked(&paths_of(&mut engine, events)) {
            let lengths = lengths(&path).unwrap();
            assert_eq!(lengths.total(), path.take.1 - path.departure.unwrap().enter);
        }
    }
}

#[test]
fn events_in_any_order_upset_nothing() {
    let mut random = base::prng::Prng::new(11);
    let whole = [ask(10_000, 0xa), answer(100_000, 0xb), ask(210_000, 0xc)].concat();
    for _ in 0..2_000 {
        let mut engine = Engine::new();
        for _ in 0..40 {
            let mut event = whole[random.below(whole.len() as u64) as usize];
            event.at = random.below(400_000);
            if let Some(path) = engine.see(&event)
                && let Some(lengths) = lengths(&path)
            {
                assert!(lengths.total() <= 400_000);
            }
        }
    }
}

#[test]
fn thread_woken_for_something_else_was_busy() {
    let mut events = [ask(10_000, 0xa), answer(100_000, 0xb)].concat();
    // It slept on a timer, whose interrupt wakes it long after the data.
    let woken = events.iter_mut().find(|event| matches!(event.what, What::Woken { .. })).unwrap();
    (woken.at, woken.context) = (150_000, Hardirq);
    for event in events.iter_mut().filter(|event| event.at > 108_000 && event.cpu == 0) {
        event.at += 50_000;
    }
    events.push(event(159_200, 0, CLIENT, Thread, What::CallEnter { fd: 5 }));
    let mut engine = Engine::new();
    let paths = paths_of(&mut engine, events);
    let lengths = lengths(&paths[0]).unwrap();
    assert_eq!((lengths.of(Stage::WakeUp), lengths.of(Stage::Busy)), (0, 55_200));
}

#[test]
fn server_is_explained_as_one_too() {
    let mut engine = Engine::new();
    let mut events = answer(100_000, 0xb);
    events.insert(0, event(90_000, 0, CLIENT, Thread, What::CallEnter { fd: 5 }));
    events.extend(ask(150_000, 0xa));
    let paths = paths_of(&mut engine, events);
    assert_eq!(paths.len(), 1);
    assert_eq!(paths[0].role, Role::Answers);
    let lengths = lengths(&paths[0]).unwrap();
    assert_eq!(lengths.of(Stage::Work), 40_000);
    assert_eq!(lengths.total(), 53_000);
}

#[test]
fn arrivals_alone_end_when_they_are_copied() {
    let mut engine = Engine::of_arrivals();
    let paths = paths_of(&mut engine, answer(100_000, 0xb));
    assert_eq!(paths.len(), 1);
    let lengths = lengths(&paths[0]).unwrap();
    assert_eq!((lengths.of(Stage::WakeUp), lengths.total()), (4_800, 9_500));
}

#[test]
fn arrivals_that_are_copied_without_a_word_end_when_the_call_tells() {
    let mut engine = Engine::of_arrivals();
    let mut events = answer(100_000, 0xb);
    events.retain(|event| !matches!(event.what, What::Copied { .. }));
    let paths = paths_of(&mut engine, events);
    assert_eq!(paths.len(), 1, "once, and not less");
    assert_eq!(lengths(&paths[0]).unwrap().of(Stage::WakeUp), 4_800);
}

#[test]
fn second_request_before_the_answer_is_counted() {
    let mut engine = Engine::new();
    let events = [ask(10_000, 0xa), ask(30_000, 0xc), answer(100_000, 0xb)].concat();
    let paths = paths_of(&mut engine, events);
    assert_eq!(engine.untracked.overlapping, 1);
    assert_eq!(paths[0].departure.unwrap().enter, 30_000);
}

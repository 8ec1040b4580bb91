//! The data plane between two hosts that are no more than queues of frames: no namespaces, no
//! devices, no root.
//!
//! Of times, only lower bounds are tested: a machine may be late, but never early. What strategies
//! and links do at which moment is in `plane.rs` and in the tests of `nic`.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex};

use base::time::{Duration, Instant};
use lab::capture::Capture;
use lab::dataplane::{DataPlane, Handle};
use lab::napi::{NapiDriver, Stack};
use lab::plane::PortPlan;
use lab::snapshot::PortSnapshot;
use lab::wait::Waiting;
use network::link::LinkSettings;
use nic::moderation::Reason;
use nic::port::PortSettings;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use sys::clock;

use crate::common::{ok, soon};

/// A frame that a host has got: on which queue, when, and its bytes.
type Arrival = (usize, Instant, Vec<u8>);

/// A host that sends what a test has put in and keeps what it gets.
struct FakeHost {
    queues: Vec<(Mutex<VecDeque<Vec<u8>>>, OwnedFd)>,
    arrivals: Mutex<Vec<Arrival>>,
    /// What its interface answers instead of working.
    broken: Mutex<Option<Errno>>,
}

impl FakeHost {
    fn new(queues: u16) -> Arc<Self> {
        let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
        let queue = |_| (Mutex::default(), ok(eventfd(0, flags)));
        let queues = (0..queues).map(queue).collect();
        Arc::new(Self { queues, arrivals: Mutex::default(), broken: Mutex::default() })
    }

    /// Sends frames on a queue; when that was.
    fn send(&self, queue: usize, frames: impl IntoIterator<Item = Vec<u8>>) -> Instant {
        let (outbox, readable) = &self.queues[queue];
        // Before the plane can see them: it may be looking already.
        let at = clock::now();
        outbox.lock().unwrap().extend(frames);
        ok(rustix::io::write(readable, &1_u64.to_ne_bytes()));
        at
    }

    fn break_with(&self, errno: Errno) {
        *self.broken.lock().unwrap() = Some(errno);
    }

    /// The frames that have arrived, once there are `count`.
    #[track_caller]
    fn got(&self, count: usize) -> Vec<Arrival> {
        let arrived = || self.arrivals.lock().unwrap().len();
        soon(&format!("{count} frames arrive"), || arrived() >= count);
        let arrivals = self.arrivals.lock().unwrap().clone();
        assert_eq!(arrivals.len(), count);
        arrivals
    }

    fn check(&self) -> io::Result<()> {
        self.broken.lock().unwrap().map_or(Ok(()), |errno| Err(errno.into()))
    }
}

/// The wire's end of a fake host.
struct StackEnd(Arc<FakeHost>);

impl Stack for StackEnd {
    fn queues(&self) -> usize {
        self.0.queues.len()
    }

    fn fd(&self, queue: usize) -> BorrowedFd<'_> {
        self.0.queues[queue].1.as_fd()
    }

    fn transmit(&self, queue: usize, frame: &mut Vec<u8>) -> io::Result<bool> {
        self.0.check()?;
        let (outbox, readable) = &self.0.queues[queue];
        let mut outbox = outbox.lock().unwrap();
        let next = outbox.pop_front();
        if outbox.is_empty() {
            let _ = rustix::io::read(readable, &mut [0; 8]);
        }
        next.map_or(Ok(false), |next| {
            *frame = next;
            Ok(true)
        })
    }

    fn deliver(&self, queue: usize, frame: &[u8]) -> io::Result<()> {
        self.0.check()?;
        self.0.arrivals.lock().unwrap().push((queue, clock::now(), frame.to_owned()));
        Ok(())
    }
}

struct PlaneBench {
    hosts: [Arc<FakeHost>; 2],
    plane: Handle,
}

#[derive(Clone)]
struct BenchSettings {
    port: PortSettings,
    link: LinkSettings,
    waiting: Waiting,
}

/// The usual settings, but for moderation and marking rules.
fn settings(moderation: &str, rules: &str) -> BenchSettings {
    let port = PortSettings {
        moderation: moderation.parse().expect("a setting"),
        rules: rules.parse().expect("rules"),
        ..PortSettings::default()
    };
    BenchSettings { port, link: LinkSettings::default(), waiting: Waiting::default() }
}

impl PlaneBench {
    fn new(settings: &BenchSettings) -> Self {
        Self::with_capture(settings, None)
    }

    fn with_capture(settings: &BenchSettings, capture: Option<Capture>) -> Self {
        let hosts = [(); 2].map(|()| FakeHost::new(settings.port.queues));
        let plan = |number: usize| PortPlan {
            name: ["a0", "b0"][number].to_owned(),
            host: Box::new(NapiDriver::new(StackEnd(Arc::clone(&hosts[number])))),
            settings: settings.port.clone(),
            link: settings.link.clone(),
        };
        let plane = ok(Handle::start(vec![plan(0), plan(1)], settings.waiting, capture));
        Self { hosts, plane }
    }

    fn port(&self, number: usize) -> PortSnapshot {
        ok(self.plane.call(|plane| plane.snapshot())).ports.swap_remove(number)
    }
}

/// A TCP segment from a port, pushed or not, with `payload` bytes.
fn segment(from: u16, pushed: bool, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 14 + 20 + 20];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&(40 + payload.len() as u16).to_be_bytes());
    frame[23] = 6;
    frame[26..34].copy_from_slice(&[10, 9, 0, 1, 10, 9, 0, 2]);
    frame[34..36].copy_from_slice(&from.to_be_bytes());
    frame[46] = 0x50;
    frame[47] = if pushed { 0x18 } else { 0x10 };
    frame.extend(payload);
    frame
}

fn numbered(numbers: std::ops::Range<u16>) -> impl Iterator<Item = Vec<u8>> {
    numbers.map(|number| segment(1_000, false, &number.to_be_bytes()))
}

/// The numbers of such frames.
fn numbers(arrivals: &[Arrival]) -> Vec<u16> {
    let number = |(_, _, frame): &Arrival| u16::from_be_bytes([frame[54], frame[55]]);
    arrivals.iter().map(number).collect()
}

#[test]
fn frames__cross_both_ways_in_order() {
    for waiting in [Waiting::Sleep, Waiting::Precise, Waiting::Spin] {
        for moderation in ["disabled", "delay:200", "periodic:200", "adaptive"] {
            let bench = PlaneBench::new(&BenchSettings { waiting, ..settings(moderation, "") });
            bench.hosts[0].send(0, numbered(0..300));
            bench.hosts[1].send(0, numbered(500..600));
            let order: Vec<u16> = (0..300).collect();
            assert_eq!(numbers(&bench.hosts[1].got(300)), order, "{waiting} {moderation}");
            let order: Vec<u16> = (500..600).collect();
            assert_eq!(numbers(&bench.hosts[0].got(100)), order, "{waiting} {moderation}");
            assert_eq!(bench.port(1).counters.delivered, 300);
        }
    }
}

#[test]
fn delay__holds_at_least_that_long() {
    for waiting in [Waiting::Sleep, Waiting::Precise, Waiting::Spin] {
        let bench = PlaneBench::new(&BenchSettings { waiting, ..settings("delay:3000", "") });
        let sent = bench.hosts[0].send(0, numbered(0..1));
        let [(_, arrived, _)] = bench.hosts[1].got(1)[..] else { unreachable!() };
        assert!(arrived.since(sent) >= Duration::from_micros(3_000), "{waiting}");
        let port = bench.port(1);
        assert_eq!(port.counters.interrupts_for(Reason::Timer), 1);
        let shortest = port.holds.counts()[0].0;
        assert!(shortest >= 2_990_000, "{shortest} ns");
    }
}

#[test]
fn set_moderation__of_one_queue_leaves_the_others() {
    let mut settings = settings("delay:75", "");
    settings.port.queues = 3;
    let bench = PlaneBench::new(&settings);
    let moderation = "delay:5".parse().expect("a setting");
    ok(bench.plane.call(move |plane| plane.set_moderation(1, Some(1), moderation)));
    let shown: Vec<String> =
        bench.port(1).queues.iter().map(|queue| queue.moderation.to_string()).collect();
    assert_eq!(shown, ["delay:75", "delay:5", "delay:75"]);
    assert_eq!(bench.port(0).queues[1].moderation.to_string(), "delay:75");
}

#[test]
fn queues__a_connection_keeps_its_own() {
    let mut settings = settings("delay:100", "");
    settings.port.queues = 4;
    let bench = PlaneBench::new(&settings);
    let flows = 1_000..1_032_u16;
    let frames =
        |number: u16| flows.clone().map(move |from| segment(from, false, &number.to_be_bytes()));
    for number in 0..5 {
        bench.hosts[0].send(usize::from(number) % 4, frames(number));
    }
    let arrivals = bench.hosts[1].got(5 * 32);
    let mut used = [false; 4];
    for from in flows {
        let of_flow = arrivals.iter().filter(|(_, _, frame)| frame[34..36] == from.to_be_bytes());
        let queues: Vec<usize> = of_flow.map(|(queue, ..)| *queue).collect();
        assert_eq!(queues, [queues[0]; 5], "flow {from}");
        used[queues[0]] = true;
    }
    assert_eq!(used, [true; 4], "32 connections spread over all queues");
}

#[test]
fn port__that_vanishes_is_reported_and_the_other_one_works() {
    let bench = PlaneBench::new(&settings("disabled", ""));
    bench.hosts[1].break_with(Errno::BADFD);
    bench.hosts[0].send(0, numbered(0..2));
    soon("the port has vanished", || bench.port(1).vanished.is_some());
    assert_eq!(bench.port(0).vanished, None);
    assert_eq!(bench.port(1).refused, 2);
}

#[test]
fn port__that_refuses_for_a_while_is_counted() {
    let bench = PlaneBench::new(&settings("disabled", ""));
    bench.hosts[1].break_with(Errno::IO);
    bench.hosts[0].send(0, numbered(0..3));
    soon("three frames are refused", || bench.port(1).refused == 3);
    *bench.hosts[1].broken.lock().unwrap() = None;
    bench.hosts[0].send(0, numbered(3..4));
    assert_eq!(numbers(&bench.hosts[1].got(1)), [3]);
    assert_eq!(bench.port(1).vanished, None);
}

#[test]
fn commands__are_obeyed_under_load() {
    let bench = PlaneBench::new(&settings("delay:10", ""));
    for round in 0..20_u64 {
        bench.hosts[0].send(0, numbered(0..200));
        bench.hosts[1].send(0, numbered(0..200));
        assert!(bench.port(1).counters.packets <= (round + 1) * 200);
    }
    let everything = |host: &FakeHost, number| {
        let port: PortSnapshot = bench.port(number);
        let handed = host.arrivals.lock().unwrap().len() as u64;
        handed == port.counters.delivered && handed + port.counters.ring_full == 4_000
    };
    soon("all is delivered or counted", || {
        everything(&bench.hosts[0], 0) && everything(&bench.hosts[1], 1)
    });
}

#[test]
fn capture__says_what_the_nic_did() {
    let path = std::env::temp_dir().join(format!("earmark-dataplane-{}", std::process::id()));
    let capture = ok(Capture::create(&path, &["a0", "b0"]));
    let bench = PlaneBench::with_capture(&settings("marked:200", "tcp-psh"), Some(capture));
    bench.hosts[0].send(0, numbered(0..1));
    bench.hosts[1].got(1);
    // A host that still polls would find the next frame by itself.
    soon("the host has re-armed", || {
        let masked = |plane: &mut DataPlane| plane.plane().port_mut(1).queues_mut()[0].is_masked();
        !ok(bench.plane.call(masked))
    });
    bench.hosts[0].send(0, [segment(1_000, true, b"!!")]);
    bench.hosts[1].got(2);
    let capture =
        ok(bench.plane.call(|plane| plane.plane().take_capture())).expect("one was given");
    assert_eq!(ok(capture.finish()), 0);
    let bytes = ok(fs::read(&path));
    ok(fs::remove_file(&path));
    let text = String::from_utf8_lossy(&bytes);
    assert_eq!(text.matches("transmitted").count(), 2);
    for [mark, reason] in [["mark=no", "reason=timer"], ["mark=yes", "reason=mark"]] {
        let comment = text.split(mark).nth(1).unwrap_or_else(|| panic!("no {mark}"));
        let comment = comment.split("queue=0").next().unwrap_or_default();
        assert!(comment.contains(reason) && comment.contains(" hold="), "{mark}{comment}");
    }
}

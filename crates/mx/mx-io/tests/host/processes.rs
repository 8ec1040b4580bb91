//! Processes that talk through shared memory, and are killed while they do.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use mx_io::port::shm::{ShmPort, ShmSettings};
use mx_io::port::{NicId, Outgoing, Port, Transmitted};

use super::common::ok;
use super::frames::{To, read, send, until, write};
use super::kinds::{A, B};

const NIC: NicId = NicId([2, 0, 0, 0, 0, 7]);
const TO_A: To = To { nic: NIC, endpoint: A };
const TO_B: To = To { nic: NIC, endpoint: B };
/// Says what a child has to do: its role and its scope.
const ROLE: &str = "EARMARK_TEST_ROLE";
const LENGTH: usize = 1000;

fn open(scope: u32, endpoint: u8) -> ShmPort {
    ok(ShmPort::open(NIC, endpoint, ShmSettings::new(scope, 1500)))
}

/// A scope that no other run of these tests has.
fn scope(test: u32) -> u32 {
    std::process::id() << 4 | test
}

fn start(role: &str, scope: u32) -> Child {
    let program = ok(std::env::current_exe());
    let mut child = Command::new(program);
    child.args(["--exact", "processes::child", "--nocapture"]);
    child.env(ROLE, format!("{role} {scope}")).stdout(Stdio::piped());
    let mut child = ok(child.spawn());
    let stdout = child.stdout.take().expect("a pipe");
    let ready = |line: &std::io::Result<String>| line.as_ref().is_ok_and(|it| it.contains("open"));
    assert!(BufReader::new(stdout).lines().any(|line| ready(&line)), "the child has not begun");
    child
}

/// What a child does until it is killed: not a test of its own, and nothing unless started by one.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (role, scope) = role.split_once(' ').expect("role and scope");
    let mut port = open(ok(scope.parse()), B);
    println!("open");
    for number in 0.. {
        match role {
            "send" => send(&mut port, TO_A, &[(number, LENGTH)]),
            _ => {
                let take = &mut |_, frame: &[u8]| {
                    read(frame, B, LENGTH);
                };
                ok(port.receive(64, take));
            }
        }
    }
}

fn kill(mut child: Child) {
    ok(child.kill());
    ok(child.wait());
}

#[test]
fn sender_that_is_killed_leaves_whole_frames_and_another_may_come() {
    let scope = scope(1);
    let (mut port, mut all_lost) = (open(scope, A), 0);
    for _ in 0..3 {
        let child = start("send", scope);
        let (mut next, mut lost) = (0, 0);
        let mut receive = || {
            let take = &mut |from, frame: &[u8]| {
                let number = read(frame, A, LENGTH);
                assert!(from == NIC && number >= next, "{number} after {next}");
                // On a machine that is busy, this process may sleep for longer than is waited for.
                lost += number - next;
                next = number + 1;
            };
            ok(port.receive(64, take));
            next
        };
        until("frames of a child", || receive() > 5_000);
        kill(child);
        // What it has left, and then nothing.
        let mut before = 0;
        until("the end", || {
            sleep(Duration::from_millis(5));
            std::mem::replace(&mut before, receive()) == before
        });
        all_lost += u64::from(lost);
    }
    let counters = port.counters();
    assert!(counters.strange == 0 && counters.overrun >= all_lost, "{all_lost}: {counters:?}");
}

#[test]
fn receiver_that_is_killed_delays_no_other_and_can_be_replaced() {
    let scope = scope(2);
    let (mut port, mut other) = (open(scope, A), open(scope, 9));
    let to_other = To { nic: NIC, endpoint: 9 };
    let mut number = 0;
    for round in 1..=3 {
        let child = start("receive", scope);
        let sent = |port: &mut ShmPort| port.counters().frames_out;
        let before = sent(&mut port);
        until("frames to a child", || {
            send(&mut port, TO_B, &[(number, LENGTH); 100]);
            ok(port.receive(8, &mut |_, _: &[u8]| {}));
            number += 1;
            sent(&mut port) > before + 20_000
        });
        let refused = port.counters().refused;
        kill(child);
        until("frames that are refused", || {
            send(&mut port, TO_B, &[(number, LENGTH)]);
            ok(port.receive(8, &mut |_, _: &[u8]| {}));
            port.counters().refused > refused
        });
        send(&mut port, to_other, &[(round, 60)]);
        until("a frame to another", || {
            let take = &mut |_, frame: &[u8]| assert_eq!(read(frame, 9, 60), round);
            ok(other.receive(1, take)) == 1
        });
    }
}

#[test]
fn receiver_that_takes_nothing_loses_frames_and_others_do_not() {
    // More than the ring has room for.
    const FRAMES: u32 = 10_000;
    let scope = scope(3);
    let (mut port, mut asleep, mut awake) = (open(scope, A), open(scope, B), open(scope, 9));
    // It returns although no process takes them.
    send(&mut port, TO_B, &(0..FRAMES).map(|number| (number, 60)).collect::<Vec<_>>());
    send(&mut port, To { nic: NIC, endpoint: 9 }, &[(0, 60)]);
    let mut came = 0;
    until("a frame to one who is awake", || {
        ok(awake.receive(9, &mut |_, _: &[u8]| came += 1)) == 1
    });
    let mut numbers = Vec::new();
    let take = &mut |_, frame: &[u8]| numbers.push(read(frame, B, 60));
    until("the first frames", || {
        let mut all = 0;
        while let more @ 1.. = ok(asleep.receive(64, take)) {
            all += more;
        }
        all > 0
    });
    let first = numbers.len() as u32;
    assert_eq!(numbers, (0..first).collect::<Vec<_>>());
    assert_eq!(asleep.counters().overrun, u64::from(FRAMES - first));
    // Now it is awake again.
    send(&mut port, TO_B, &[(5, 60)]);
    until("the next frame", || ok(asleep.receive(9, &mut |_, _: &[u8]| came += 1)) == 1);
}

#[test]
fn endpoint_talks_to_itself_and_is_the_only_one_of_its_number() {
    let scope = scope(4);
    let mut port = open(scope, A);
    send(&mut port, TO_A, &[(3, 60)]);
    let mut came = 0;
    until("a frame to oneself", || {
        ok(port.receive(9, &mut |from, frame: &[u8]| {
            assert_eq!((from, read(frame, A, 60)), (NIC, 3));
            came += 1;
        }));
        came == 1
    });
    let taken = ShmPort::open(NIC, A, ShmSettings::new(scope, 1500)).err().unwrap().to_string();
    let by = format!("3 of 02:00:00:00:00:07: it is taken by process {}", std::process::id());
    assert!(taken.contains(&by), "{taken}");
    drop(port);
    open(scope, A);
}

#[test]
fn absent_receiver_is_no_reason_to_wait() {
    let mut port = open(scope(5), A);
    let mut offered = 0;
    let outcome = port.transmit(&mut |frame: &mut [u8]| {
        offered += 1;
        write(&mut frame[..60], B, offered);
        (offered <= 500).then_some(Outgoing::new(NIC, B, 60))
    });
    assert_eq!(outcome.unwrap(), Transmitted::Drained);
    assert_eq!((port.counters().refused, port.counters().frames_out), (500, 0));
}

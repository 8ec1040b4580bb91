//! What a frame costs through each kind of port of MX: latency of a ping-pong, spinning and
//! sleeping, and the rate of a stream. Two threads on two cores, one for each port.
//!
//! The kinds take turns, so that whatever else the machine does befalls all of them. Each line is
//! one turn, as JSON; compare medians, or minima on a busy machine. With fewer than three cores,
//! those of a NIC say little, as it has a thread of its own.
//!
//! ```console
//! $ cargo run --release -p earmark-mx-io --example mx_port_cost -- 3
//! ```

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mx_io::port::{ENDPOINT_AT, NicId, Outgoing, Port, PortError, Room, Transmitted};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::json;
use sys::clock;

#[allow(dead_code, reason = "tests use the rest")]
#[path = "../tests/ports/kinds.rs"]
mod kinds;
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../../../hosts/vhost/tests/ports/nic.rs"]
mod nic_of_tests;
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../../../hosts/vhost/tests/ports/traffic.rs"]
mod traffic;

use kinds::{KINDS, Pair};

const ROUNDS: usize = 20_000;
const STREAM: Duration = Duration::from_millis(500);
const BURST: usize = 256;
/// Bytes of a header and eight of a message.
const SMALL: usize = 24 + 8 + 8;
/// When a frame is lost, it is sent again after this.
const LOST: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    let turns = std::env::args().nth(1).map_or(Ok(3), |turns| turns.parse());
    let Ok(turns) = turns else {
        eprintln!("mx_port_cost: use a number of turns, such as 3");
        return ExitCode::FAILURE;
    };
    for turn in 0..turns {
        for make in KINDS {
            let pair = make();
            match measure(pair, turn) {
                Ok(line) => println!("{line}"),
                Err(error) => {
                    eprintln!("mx_port_cost: {error}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}

fn measure(mut pair: Pair, turn: u32) -> Result<serde_json::Value, PortError> {
    let spin = ping_pong(&mut pair, true)?;
    let sleep = ping_pong(&mut pair, false)?;
    let small = stream(&mut pair, SMALL)?;
    let mtu = pair.a.mtu();
    let large = stream(&mut pair, mtu.into())?;
    Ok(json!({
        "kind": pair.name, "turn": turn, "mtu": mtu,
        "one_way_ns": { "spin": spin, "sleep": sleep },
        "stream": { "small": small, "mtu": large },
    }))
}

/// Half of a round trip of a small message, in nanoseconds.
fn ping_pong(pair: &mut Pair, spin: bool) -> Result<serde_json::Value, PortError> {
    let (a, b) = (&mut *pair.a, &mut *pair.b);
    let (to_a, to_b) = (target(a), target(b));
    let stop = AtomicBool::new(false);
    let mut took = Vec::with_capacity(ROUNDS);
    std::thread::scope(|scope| {
        let mirror = scope.spawn(|| -> Result<(), PortError> {
            pin(1);
            while !stop.load(Ordering::Relaxed) {
                if wait(b, spin)? {
                    send(b, to_a, SMALL, 1)?;
                }
            }
            Ok(())
        });
        pin(0);
        for _ in 0..ROUNDS {
            let start = Instant::now();
            send(a, to_b, SMALL, 1)?;
            if wait(a, spin)? {
                took.push(start.elapsed().as_nanos() as u64 / 2);
            }
        }
        stop.store(true, Ordering::Relaxed);
        mirror.join().expect("the mirror does not panic")
    })?;
    took.sort_unstable();
    let at = |part: usize| took.get(took.len() * part / 100).copied();
    Ok(json!({ "p10": at(10), "p50": at(50), "p99": at(99) }))
}

/// Waits until something comes; `false` if it was lost.
fn wait(port: &mut dyn Port, spin: bool) -> Result<bool, PortError> {
    let start = Instant::now();
    loop {
        if port.receive(8, &mut |_, frame: &[u8]| {
            std::hint::black_box(frame.len());
        })? > 0
        {
            return Ok(true);
        }
        if start.elapsed() > LOST {
            return Ok(false);
        }
        if !spin && !port.arm()? {
            let patience = Timespec { tv_sec: 0, tv_nsec: LOST.as_nanos() as i64 };
            let mut fds = vec![PollFd::from_borrowed_fd(port.readiness(), PollFlags::IN)];
            let second = port.more_readiness().into_iter().next();
            fds.extend(second.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
            if poll(&mut fds, Some(&patience)).is_ok_and(|ready| ready > 0) {
                port.clear()?;
            }
        }
    }
}

fn stream(pair: &mut Pair, length: usize) -> Result<serde_json::Value, PortError> {
    let (a, b) = (&mut *pair.a, &mut *pair.b);
    let to = target(b);
    let stop = AtomicBool::new(false);
    let (came, sent, cpu, took, calls) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| -> Result<usize, PortError> {
            pin(1);
            let mut came = 0;
            while !stop.load(Ordering::Relaxed) {
                came += b.receive(64, &mut |_, frame: &[u8]| {
                    std::hint::black_box(frame.len());
                })?;
            }
            Ok(came)
        });
        pin(0);
        let before = a.counters();
        let (start, cpu) = (Instant::now(), clock::thread_cpu_time());
        while start.elapsed() < STREAM {
            send(a, to, length, BURST)?;
        }
        let (took, cpu) = (start.elapsed(), clock::thread_cpu_time() - cpu);
        let after = a.counters();
        stop.store(true, Ordering::Relaxed);
        let came = receiver.join().expect("the receiver does not panic")?;
        let sent = after.frames_out - before.frames_out;
        let calls = after.calls_out - before.calls_out;
        Ok::<_, PortError>((came as u64, sent, cpu, took, calls))
    })?;
    let per_second = |frames: u64| (frames as f64 / took.as_secs_f64()) as u64;
    Ok(json!({
        "bytes": length, "sent_per_second": per_second(sent), "came_per_second": per_second(came),
        "cpu_ns_per_frame": cpu.as_nanos() / sent.max(1),
        "frames_per_call": sent as f64 / calls.max(1) as f64,
    }))
}

fn target(port: &dyn Port) -> (NicId, u8) {
    (port.nic_id(), port.endpoint())
}

/// Offers so many frames, and waits for room until they have gone.
fn send(
    port: &mut dyn Port,
    (to, endpoint): (NicId, u8),
    length: usize,
    count: usize,
) -> Result<(), PortError> {
    let mut left = count;
    let mut offer = |frame: &mut [u8]| {
        left = left.checked_sub(1)?;
        frame[..length].fill(7);
        frame[ENDPOINT_AT] = endpoint;
        Some(Outgoing { to, endpoint, marked: false, length })
    };
    while let Transmitted::Full(room) = port.transmit(&mut offer)? {
        let flags = match room {
            Room::Later(_) => {
                std::thread::yield_now();
                continue;
            }
            Room::Writable => PollFlags::OUT,
            Room::Signalled => PollFlags::IN,
        };
        let patience = Timespec { tv_sec: 0, tv_nsec: LOST.as_nanos() as i64 };
        let mut fds = [PollFd::from_borrowed_fd(port.readiness(), flags)];
        let _ = poll(&mut fds, Some(&patience));
        port.clear()?;
    }
    Ok(())
}

/// Keeps this thread on a core, if there is that one.
fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    let _ = sched_setaffinity(None, &set);
}

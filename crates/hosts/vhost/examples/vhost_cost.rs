//! What a frame costs between two drivers on two vhost-user ports: frames per second, and whether
//! memory is allocated for them. `cargo xtask bench` runs this.
//!
//! One thread is the NIC and spins; the other drives both ports. Or one thread does both in turn,
//! which measures the work without the cost of sharing memory between cores, even on a
//! busy machine. `at` measures another program that joins two ports, by the sockets of these.
//!
//! ```console
//! $ cargo run --release --example vhost_cost -- time both 64 2
//! FRAMES NANOSECONDS ALLOCATIONS
//! $ cargo run --release --example vhost_cost -- at both 64 2 a.sock b.sock
//! FRAMES NANOSECONDS ALLOCATIONS
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lab::plane::Plane;
use lab::wait::Waiting;
use sys::clock;
use vhost::driver::{DriverError, DriverSettings, VirtioDriver};

#[allow(dead_code, reason = "tests use the rest")]
#[path = "../tests/ports/nic.rs"]
mod nic_of_tests;
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../tests/ports/traffic.rs"]
mod traffic;

use nic_of_tests::{Nic, NicSettings, Sockets};

/// Frames that a driver sends before it notifies the device, and takes at once.
const BATCH: usize = 32;

/// Rounds before the first allocation counts: pools and rings have their size by then.
const WARM_UP: Duration = Duration::from_millis(300);

/// Counts what is allocated, by any thread.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: all is left to the system's allocator, which keeps the contract.
// JUSTIFICATION: there is no safe way to watch allocations from inside of a process.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract, which is the same.
        // JUSTIFICATION: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract, which is the same.
        // JUSTIFICATION: as above.
        unsafe { System.dealloc(pointer, layout) };
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct Task {
    joins: Joins,
    /// Frames go both ways at once.
    both: bool,
    /// Bytes of a frame.
    length: usize,
    /// Rounds, or seconds if the NIC has a thread.
    span: u64,
}

/// Who joins the two ports.
enum Joins {
    /// A NIC in a thread of its own.
    Nic,
    /// A NIC without a thread, whose work is done in turn with that of the drivers.
    InTurn,
    /// Another program, whose ports have these sockets.
    Program([PathBuf; 2]),
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let Some(task) = parse(&arguments) else {
        eprintln!(
            "vhost_cost: use time|alone|at one|both BYTES SECONDS|ROUNDS [SOCKET SOCKET], 14 to \
             1514 bytes"
        );
        return ExitCode::FAILURE;
    };
    let measured = match &task.joins {
        Joins::Nic => {
            let nic = Nic::start(NicSettings { waiting: Waiting::Spin, ..NicSettings::default() });
            together(&task, [nic.driver(0), nic.driver(1)])
        }
        Joins::InTurn => alone(&task),
        Joins::Program([a, b]) => {
            let connect = |path| VirtioDriver::connect(path, DriverSettings::default());
            connect(a).and_then(|a| together(&task, [a, connect(b)?]))
        }
    };
    match measured {
        Ok([frames, nanos, allocations]) => {
            println!("{frames} {nanos} {allocations}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("vhost_cost: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[String]) -> Option<Task> {
    let [joins, direction, length, span, sockets @ ..] = arguments else { return None };
    let joins = match (joins.as_str(), sockets) {
        ("time", []) => Joins::Nic,
        ("alone", []) => Joins::InTurn,
        ("at", [a, b]) => Joins::Program([a, b].map(PathBuf::from)),
        _ => return None,
    };
    let length = length.parse().ok().filter(|length| (14..=1514).contains(length))?;
    let both = ["one", "both"].iter().position(|word| word == direction)? == 1;
    Some(Task { joins, both, length, span: span.parse().ok()? })
}

/// Drivers in this thread: frames that were received, nanoseconds, allocations.
fn together(task: &Task, mut drivers: [VirtioDriver; 2]) -> Result<[u64; 3], DriverError> {
    let frame = traffic::frame(0, task.length);
    let mut run = |span: Duration| {
        let (allocations, start) = (ALLOCATIONS.load(Ordering::Relaxed), Instant::now());
        let mut came = 0;
        let mut took = Duration::ZERO;
        while took < span {
            for _ in 0..BATCH {
                came += turn(&mut drivers, task.both, &frame, || ())?;
            }
            took = start.elapsed();
        }
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
        Ok([came, took.as_nanos() as u64, allocations])
    };
    run(WARM_UP)?;
    run(Duration::from_secs(task.span))
}

/// One thread: frames that were received, nanoseconds of CPU, allocations.
fn alone(task: &Task) -> Result<[u64; 3], DriverError> {
    let settings = NicSettings { waiting: Waiting::Spin, ..NicSettings::default() };
    let sockets = Sockets::new();
    let mut plane = Plane::new(sockets.plans(&settings), None, clock::now());
    let mut drivers = connect(&sockets, &mut plane)?;
    let frame = traffic::frame(0, task.length);
    let mut run = |rounds: u64| {
        let (allocations, start) = (ALLOCATIONS.load(Ordering::Relaxed), clock::thread_cpu_time());
        let mut came = 0;
        for _ in 0..rounds {
            came += turn(&mut drivers, task.both, &frame, || round(&mut plane, false))?;
        }
        let took = clock::thread_cpu_time() - start;
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - allocations;
        Ok([came, took.as_nanos(), allocations])
    };
    run(100)?;
    run(task.span)
}

/// Attaches a driver to each port; they wait for answers, so a thread does that.
fn connect(sockets: &Sockets, plane: &mut Plane) -> Result<[VirtioDriver; 2], DriverError> {
    let connect = |number| VirtioDriver::connect(&sockets.path(number), DriverSettings::default());
    std::thread::scope(|scope| {
        let drivers = scope.spawn(|| Ok([connect(0)?, connect(1)?]));
        while !drivers.is_finished() {
            round(plane, true);
        }
        drivers.join().expect("connecting does not panic")
    })
}

/// What the data-plane thread does again and again.
fn round(plane: &mut Plane, ready: bool) {
    let now = clock::now();
    (0..plane.len()).for_each(|number| plane.sync(now, number, ready));
    plane.take_from_memory(now);
    plane.carry(now);
    plane.serve(now);
}

/// Each driver sends a batch and takes what came: how many frames.
fn turn(
    [a, b]: &mut [VirtioDriver; 2],
    both: bool,
    frame: &[u8],
    mut between: impl FnMut(),
) -> Result<u64, DriverError> {
    send(a, frame)?;
    if both {
        send(b, frame)?;
    }
    between();
    let came = take(b)?;
    Ok(if both { came + take(a)? } else { came })
}

fn send(driver: &mut VirtioDriver, frame: &[u8]) -> Result<(), DriverError> {
    for _ in 0..BATCH {
        if !driver.send(frame)? {
            break;
        }
    }
    driver.flush();
    Ok(())
}

fn take(driver: &mut VirtioDriver) -> Result<u64, DriverError> {
    let mut bytes = 0;
    let frames = driver.receive(2 * BATCH, |frame| bytes += frame.len())?;
    std::hint::black_box(bytes);
    Ok(frames as u64)
}

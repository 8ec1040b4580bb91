//! What it costs to trace a system call: nanoseconds for each, with tracing off, with a filter that
//! lets nothing pass, and with a record written.

use sys::clock;
use tracepoints::tracefs::Tracefs;
use tracepoints::{EventRequest, Session, Unit};

/// System calls a run; their records fit into a ring.
const CALLS: u64 = 4_000;
/// Runs, of which the fastest counts.
const RUNS: u32 = 25;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let tracefs = Tracefs::open()?;
    let tid = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
    let request = |unit, filter: Option<&str>| EventRequest {
        event: "raw_syscalls:sys_enter",
        filter: filter.map(str::to_owned),
        unit,
    };
    println!("no tracing: {:.0} ns", cost(None)?);
    for (name, request) in [
        ("of another thread", request(Unit::Task(1), None)),
        ("filtered out", request(Unit::Task(tid), Some("id == -2"))),
        ("recorded", request(Unit::Task(tid), None)),
    ] {
        let (mut session, missing) = Session::open(&tracefs, &[request], None)?;
        if let Some(missing) = missing.first() {
            println!("{name}: {}", missing.why);
            continue;
        }
        println!("{name}: off {:.0} ns, on {:.0} ns", cost(None)?, cost(Some(&mut session))?);
    }
    Ok(())
}

fn cost(mut session: Option<&mut Session>) -> Result<f64, Box<dyn std::error::Error>> {
    let mut best = f64::MAX;
    for _ in 0..RUNS {
        if let Some(session) = session.as_deref_mut() {
            session.enable()?;
        }
        let before = clock::thread_cpu_time();
        for _ in 0..CALLS {
            std::hint::black_box(rustix::process::getppid());
        }
        let took = clock::thread_cpu_time() - before;
        if let Some(session) = session.as_deref_mut() {
            session.disable()?;
            session.drain(|_| {});
        }
        best = best.min(took.as_nanos() as f64 / CALLS as f64);
    }
    Ok(best)
}

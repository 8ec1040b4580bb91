//! Follows the requests of a program, and prints each one as JSON; then, where the kernel counts
//! (`sysctl kernel.bpf_stats_enabled=1`), what each tracepoint has cost.
//!
//! ```text
//! follow SECONDS [--calls] --pid PID | --received | -- CMD...
//! ```

use std::process::Command;
use std::time::{Duration, Instant};

use flows::follower::{FlowDetail, FlowFollower, FlowScope};
use flows::record::TracedRequest;

/// How often records are read.
const PAUSE: Duration = Duration::from_millis(20);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (options, command) = match arguments.iter().position(|word| word == "--") {
        Some(at) => (&arguments[..at], &arguments[at + 1..]),
        None => (&arguments[..], &[][..]),
    };
    let seconds: f64 = options.first().ok_or("usage: follow SECONDS ...")?.parse()?;
    let has = |word: &str| options.iter().any(|option| option == word);
    let pid = options.iter().skip_while(|option| *option != "--pid").nth(1);
    let scope = match pid {
        _ if has("--received") => FlowScope::Received,
        Some(_) => FlowScope::Processes,
        None => FlowScope::Children,
    };
    let opened = FlowFollower::open(&scope, FlowDetail { by_calls: has("--calls"), stacks: false });
    let mut follower = opened.map_err(|error| error.to_string())?;
    if let Some(pid) = pid {
        follower.follow(pid.parse()?)?;
    }
    let before = follower.cost();
    follower.start()?;
    let mut child = match command {
        [program, words @ ..] => Some(Command::new(program).args(words).spawn()?),
        [] => None,
    };
    let started = Instant::now();
    let (mut worst, mut least) = (0, 1.0);
    let mut print = |mut request: TracedRequest| {
        worst = worst.max(request.settle());
        least = request.accounted().min(least);
        println!("{}", serde_json::to_string(&request).unwrap_or_default());
    };
    while started.elapsed().as_secs_f64() < seconds {
        std::thread::sleep(PAUSE);
        follower.read(&mut print);
        if let Some(child) = &mut child
            && child.try_wait()?.is_some()
        {
            break;
        }
    }
    std::thread::sleep(PAUSE);
    follower.read(&mut print);
    eprintln!(
        "{:?}, stages too long by {worst} ns at most, {least:.3} accounted",
        follower.counts()
    );
    for missing in follower.missing() {
        eprintln!("without {}: {}", missing.tracepoint, missing.effect);
    }
    let elapsed = started.elapsed().as_nanos() as f64;
    let (mut all_runs, mut all_nanos) = (0, 0);
    for ((name, runs, nanos), (_, runs_before, nanos_before)) in
        follower.cost().into_iter().zip(before)
    {
        let (runs, nanos) = (runs - runs_before, nanos - nanos_before);
        (all_runs, all_nanos) = (all_runs + runs, all_nanos + nanos);
        eprintln!("{name:24} {runs:9} runs {:5} ns each", nanos / runs.max(1));
    }
    let share = all_nanos as f64 / elapsed * 100.0;
    eprintln!(
        "all {all_runs} runs {} ns each, {share:.2} % of a processor",
        all_nanos / all_runs.max(1)
    );
    Ok(())
}

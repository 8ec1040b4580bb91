//! Seeds without end:
//!
//! ```text
//! cargo run --release -p earmark-sim --example soak -- [--seconds N] [--seed S]
//! ```

use std::process::ExitCode;
use std::time::{Duration, Instant};

fn option(name: &str) -> Option<u64> {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    let value = arguments.nth(1)?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name} takes a number, not {value}")))
}

fn main() -> ExitCode {
    let contents = sim::model::contents();
    let until = Instant::now() + Duration::from_secs(option("--seconds").unwrap_or(60));
    let first = option("--seed").unwrap_or(0);
    let mut bad = 0;
    let mut seed = first;
    while Instant::now() < until && bad < 20 {
        let report = sim::drive::run(seed, contents.clone());
        if !report.faults.is_empty() {
            bad += 1;
            println!("seed {seed}: {}", report.faults[0]);
        }
        seed += 1;
    }
    println!("{} seeds from {first} on, {bad} of them bad", seed - first);
    if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

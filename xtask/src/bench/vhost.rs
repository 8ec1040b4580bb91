//! Frames between two drivers on two vhost-user ports, as two processes would exchange them.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::figure::{Figure, Goal};
use crate::shell;

/// A frame of the shortest payload, and the usual longest, in bytes without FCS.
pub(super) const SIZES: [u32; 2] = [64, 1_500];

/// Seconds of a run with two threads, and rounds of one with a single thread.
pub(super) const SECONDS: &str = "2";
const ROUNDS: &str = "50000";

/// What is asked of short frames that go both ways.
const GOAL: Goal = Goal::AtLeast(5.0e6);

/// Times frames one way and both ways, with the NIC on a core of its own and without.
pub(super) fn measure(program: &Path, runs: u32) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut allocations = Vec::new();
    for (direction, ways) in [("one", "one way"), ("both", "both ways")] {
        for size in SIZES {
            let bytes = size.to_string();
            let mut run = |threads, span| -> Result<Vec<Run>> {
                let runs =
                    (0..runs).map(|_| Run::new(program, &[threads, direction, &bytes, span]));
                let runs = runs.collect::<Result<Vec<_>>>()?;
                allocations.extend(runs.iter().map(|run| run.allocations));
                Ok(runs)
            };
            let name = format!("vhost-user to vhost-user, {ways}, {size}-byte frames");
            let rates = run("time", SECONDS)?.iter().map(Run::rate).collect();
            let figure = Figure::new(name.clone(), "frames per second", rates);
            let has_goal = (direction, size) == ("both", SIZES[0]);
            figures.push(if has_goal { figure.with_goal(GOAL) } else { figure });
            let costs = run("alone", ROUNDS)?.iter().map(Run::nanos_per_frame).collect();
            let name = format!("{name}, one thread for all");
            figures.push(Figure::new(name, "ns of CPU per frame", costs));
        }
    }
    let name = "vhost-user to vhost-user, steady state".to_owned();
    let figure = Figure::new(name, "allocations per run", allocations);
    figures.push(figure.with_goal(Goal::AtMost(0.0)));
    Ok(figures)
}

/// What one run of the program counted.
#[derive(Debug, PartialEq)]
pub(super) struct Run {
    frames: f64,
    nanos: f64,
    allocations: f64,
}

impl Run {
    pub(super) fn new(program: &Path, arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(program);
        let output = shell::output(command.args(arguments))?;
        Self::parse(&output).with_context(|| format!("`{}` said {output:?}", shell::line(&command)))
    }

    fn parse(output: &str) -> Option<Self> {
        let mut numbers = output.split_whitespace().map(|word| word.parse().ok());
        let run = Self {
            frames: numbers.next()??,
            nanos: numbers.next()??,
            allocations: numbers.next()??,
        };
        (run.frames > 0.0 && run.nanos > 0.0 && numbers.next().is_none()).then_some(run)
    }

    pub(super) fn rate(&self) -> f64 {
        self.frames * 1.0e9 / self.nanos
    }

    fn nanos_per_frame(&self) -> f64 {
        self.nanos / self.frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_is_three_numbers() {
        let run = Run::parse("2000 1000000000 3\n").unwrap();
        assert_eq!((run.rate(), run.nanos_per_frame()), (2_000.0, 500_000.0));
        assert_eq!(run.allocations, 3.0);
        for said in ["", "1 2", "0 1 0", "1 0 0", "1 1 1 1", "a b c"] {
            assert_eq!(Run::parse(said), None, "{said}");
        }
    }
}

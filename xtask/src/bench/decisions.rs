//! Decisions per second of the pure core, alone on one core.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::figure::{Figure, Goal};
use crate::shell;

const SETTINGS: [&str; 4] = ["disabled", "delay:75", "marked:75", "stream:75"];
const GOAL: Goal = Goal::AtLeast(10.0e6);

/// Times moderation alone, and with headers and rules, over mixed frames.
pub(super) fn measure(program: &Path, runs: u32) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (work, what) in [("moderate", "moderation"), ("both", "classify + moderation")] {
        for setting in SETTINGS {
            let rates = (0..runs).map(|_| rate(program, work, setting)).collect::<Result<_>>()?;
            let name = format!("{what} {setting}, mixed frames");
            figures.push(Figure::new(name, "decisions per second", rates).with_goal(GOAL));
        }
    }
    Ok(figures)
}

fn rate(program: &Path, work: &str, setting: &str) -> Result<f64> {
    let mut command = Command::new(program);
    let output = shell::output(command.args(["time", work, setting, "mixed", "1"]))?;
    parse(&output).with_context(|| format!("`{}` said {output:?}", shell::line(&command)))
}

/// Packets, then nanoseconds.
fn parse(output: &str) -> Option<f64> {
    let (packets, nanos) = output.trim().split_once(' ')?;
    Some(packets.parse::<f64>().ok()? * 1.0e9 / nanos.parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_packets_by_time() {
        assert_eq!(parse("3000 2000000000\n"), Some(1_500.0));
        assert_eq!(parse("cost: no such work\n"), None);
    }
}

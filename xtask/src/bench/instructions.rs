//! Instructions per packet, counted by valgrind: the same on a busy machine as on an idle one.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::figure::{Figure, Goal};
use crate::shell;

/// Marks what the goal is about: headers, rules, and Algorithm 1.
const GOAL: (&str, &str, Goal) = ("both", "marked:75", Goal::AtMost(150.0));

const SETTINGS: [&str; 4] = ["disabled", "delay:75", "marked:75", "stream:75"];
const FRAMES: [u32; 2] = [66, 1_514];
/// A whole number of delays of 75 packets each, so that every run ends where it began.
const PACKETS: u64 = 15_000;

/// Counts every work, setting and frame.
pub(super) fn measure(program: &Path) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for frame in FRAMES {
        // The loop around the work is not the work.
        let around = per_packet(program, "loop", SETTINGS[0], frame)?;
        let mut count = |work: &str, setting: &str, what: String| -> Result<()> {
            let value = per_packet(program, work, setting, frame)? - around;
            let name = format!("{what}, {frame}-byte frame");
            let figure = Figure::new(name, "instructions per packet", vec![value]);
            let has_goal = (work, setting) == (GOAL.0, GOAL.1);
            figures.push(if has_goal { figure.with_goal(GOAL.2) } else { figure });
            Ok(())
        };
        count("classify", SETTINGS[0], "classify".into())?;
        for setting in SETTINGS {
            count("moderate", setting, format!("moderation {setting}"))?;
            count("both", setting, format!("classify + moderation {setting}"))?;
            count("port", setting, format!("whole port {setting}"))?;
        }
    }
    Ok(figures)
}

/// The difference between N and 2 N packets, so that start-up cancels.
fn per_packet(program: &Path, work: &str, setting: &str, frame: u32) -> Result<f64> {
    let once = count(program, work, setting, frame, PACKETS)?;
    let twice = count(program, work, setting, frame, 2 * PACKETS)?;
    Ok((twice as f64 - once as f64) / PACKETS as f64)
}

fn count(program: &Path, work: &str, setting: &str, frame: u32, packets: u64) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    valgrind.args(["count", work, setting, &frame.to_string(), &packets.to_string()]);
    let line = shell::line(&valgrind);
    let output = valgrind
        .output()
        .with_context(|| format!("starting `{line}`; `cargo xtask peers` installs valgrind"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    collected(&said).with_context(|| format!("`{line}` counted nothing:\n{said}"))
}

/// The number behind `Collected`, in what callgrind says at its end.
fn collected(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_is_read_from_what_callgrind_says() {
        let said = "==7== Events    : Ir\n==7== Collected : 29817883\n==7== \n";
        assert_eq!(collected(said), Some(29_817_883));
        assert_eq!(collected("cost: no such work\n==7== Collected : \n"), None);
    }
}

//! What virtual time takes of real time: the round trips of `tcp-rr`, of this `earmark` and of
//! another one in turn.
//!
//! An *event* here is a frame that a host receives, or its interrupt. Booting is measured by a run
//! that is short, and subtracted.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use super::environment::Environment;
use super::figure::Figure;
use super::files;
use crate::{repo, shell};

const SCHEMA: &str = "earmark-virtual/2";

/// Seconds of virtual time of the run that is measured, and of the one that is subtracted.
const LONG: f64 = 0.4;
const SHORT: f64 = 0.02;

#[derive(clap::Args)]
pub(super) struct Options {
    /// Runs of each program, in turn; the table shows their median
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// The `earmark` to measure; without it, that of this repository, which is built first
    #[arg(long)]
    program: Option<PathBuf>,
    /// Another `earmark`, measured in turn with it
    #[arg(long)]
    with: Option<PathBuf>,
    /// The kernel of guests that the other one uses
    #[arg(long, requires = "with")]
    with_kernel: Option<PathBuf>,
    /// Where to write the figures, from the root of the repository
    #[arg(long, default_value = "docs/results/virtual.json")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Report {
    schema: &'static str,
    environment: Environment,
    /// Of the other program, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<Side>,
    now: Side,
}

/// What was measured of one program.
#[derive(Serialize)]
struct Side {
    /// The kernel of the guests.
    guests: String,
    figures: Vec<Figure>,
}

/// Measures, prints, writes the file.
pub(super) fn run(options: &Options) -> Result<()> {
    let environment = Environment::read()?;
    let path = match &options.program {
        Some(path) => path.clone(),
        None => {
            shell::run(&mut shell::cargo(["build", "--release", "--package", "earmark"]))?;
            repo::target_directory()?.join("release/earmark")
        }
    };
    let ours = Program { path, kernel: None, nic: "virtio" };
    let kernel = options.with_kernel.clone();
    let other = options.with.clone().map(|path| Program { path, kernel, nic: "virtio" });
    let (mut before, mut now) = (Vec::new(), Vec::new());
    for _ in 0..options.runs {
        if let Some(other) = &other {
            before.push(other.measure()?);
        }
        now.push(ours.measure()?);
    }
    let before = (!before.is_empty()).then(|| side(&before));
    let report = Report { schema: SCHEMA, environment, before, now: side(&now) };
    println!("\n{}\n{}", report.environment, Figure::HEADING);
    for side in report.before.iter().chain([&report.now]) {
        println!("{}", side.guests);
        side.figures.iter().for_each(|figure| println!("{figure}"));
    }
    files::write(&report, &options.output)
}

/// An `earmark`, and the NIC and the kernel of its guests; without one, that which it finds.
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) kernel: Option<PathBuf>,
    pub(super) nic: &'static str,
}

/// What a run took and did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Run {
    /// The kernel of the guests.
    guests: String,
    /// Seconds of real time.
    wall: f64,
    /// Seconds of CPU, the machine's kernel included, in all processes.
    cpu: f64,
    round_trips: f64,
    events: f64,
}

impl Program {
    /// A long run without what a short one takes.
    ///
    /// # Errors
    /// If a run fails, or what is left is nothing.
    pub(super) fn measure(&self) -> Result<Run> {
        let (short, long) = (self.run(SHORT)?, self.run(LONG)?);
        let run = long.without(&short);
        ensure!(run.wall > 0.0 && run.round_trips > 0.0, "a long run is no longer than {short:?}");
        Ok(run)
    }

    fn run(&self, seconds: f64) -> Result<Run> {
        let mut command = Command::new(&self.path);
        command.args(["bench", "tcp-rr", "--world", "virtual", "-s", "disabled", "--seed", "1"]);
        command.args(["--rounds", "1", "--warmup", "0", "--json", "--nic", self.nic]);
        command.args(["--duration", &seconds.to_string()]);
        command.envs(self.kernel.iter().map(|kernel| ("EARMARK_KERNEL", kernel)));
        // Guests are children of a child, which has waited for them when it ends.
        let before = cpu_of_children()?;
        let started = std::time::Instant::now();
        let output = shell::output(&mut command)?;
        let wall = started.elapsed().as_secs_f64();
        let cpu = cpu_of_children()? - before;
        let (guests, round_trips, events) = parse(&output)
            .with_context(|| format!("reading what `{}` measured", shell::line(&command)))?;
        Ok(Run { guests, wall, cpu, round_trips, events })
    }
}

impl Run {
    fn without(self, other: &Self) -> Self {
        Self {
            guests: self.guests,
            wall: self.wall - other.wall,
            cpu: self.cpu - other.cpu,
            round_trips: self.round_trips - other.round_trips,
            events: self.events - other.events,
        }
    }
}

fn side(runs: &[Run]) -> Side {
    let guests = runs.first().map_or_else(String::new, |run| run.guests.clone());
    Side { guests, figures: figures("virtual time", runs) }
}

/// What a round trip takes, and how fast events go, by these runs of what `title` says.
pub(super) fn figures(title: &str, runs: &[Run]) -> Vec<Figure> {
    let figure = |name: &str, unit, value: fn(&Run) -> f64| {
        Figure::new(format!("{title}, {name}"), unit, runs.iter().map(value).collect())
    };
    vec![
        figure("real time", "us per round trip", |run| run.wall * 1.0e6 / run.round_trips),
        figure("CPU time", "us per round trip", |run| run.cpu * 1.0e6 / run.round_trips),
        figure("events", "per second of real time", |run| run.events / run.wall),
    ]
}

/// Seconds of CPU of all children that have ended and were waited for (`man 5 proc`).
fn cpu_of_children() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("read /proc/self/stat")?;
    cpu_in(&stat).with_context(|| format!("read /proc/self/stat: {stat}"))
}

/// Their user and system time, in ticks of a hundredth of a second.
fn cpu_in(stat: &str) -> Option<f64> {
    // The name in brackets, which is field 2, may have blanks in it.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut ticks = fields.split_whitespace().skip(13).map(|field| field.parse::<f64>().ok());
    Some((ticks.next()?? + ticks.next()??) / 100.0)
}

/// The kernel of the guests, the round trips and the events of a run.
fn parse(output: &str) -> Result<(String, f64, f64)> {
    let json: Value = serde_json::from_str(output)?;
    let result = &json["results"][0];
    let number = |value: &Value, name| value.as_f64().with_context(|| format!("no {name}"));
    let round_trips = number(&result["latency_us"]["count"], "latency_us.count")?;
    let packets = number(&result["packets"], "packets")?;
    let interrupts = number(&result["interrupts"], "interrupts")?;
    let guests = result["environment"]["kernel"].as_str().context("no environment.kernel")?;
    Ok((guests.to_owned(), round_trips, packets + interrupts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_and_interrupts_are_events() {
        let result = r#"{"environment": {"kernel": "k"}, "latency_us": {"count": 3},
            "packets": 6, "interrupts": 5}"#;
        let parsed = parse(&format!(r#"{{"results": [{result}]}}"#)).unwrap();
        assert_eq!(parsed, ("k".to_owned(), 3.0, 11.0));
        assert!(parse(r#"{"results": []}"#).is_err());
    }

    #[test]
    fn booting_is_subtracted() {
        let run = |wall, cpu, round_trips, events| {
            let guests = "k".to_owned();
            Run { guests, wall, cpu, round_trips, events }
        };
        let without = run(5.0, 4.0, 30.0, 100.0).without(&run(1.0, 2.0, 10.0, 20.0));
        assert_eq!(without, run(4.0, 2.0, 20.0, 80.0));
        let side = side(&[without]);
        assert_eq!(
            side.figures.iter().map(|figure| figure.median).collect::<Vec<_>>(),
            [200_000.0, 100_000.0, 20.0]
        );
    }

    #[test]
    fn cpu_time_is_that_of_children() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4 1 2 3 4 50 60 700 800 20 0 1 0";
        assert_eq!(cpu_in(stat), Some(15.0));
        assert_eq!(cpu_in("7 (a"), None);
    }
}

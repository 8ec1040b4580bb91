//! What `earmark explain` is worth: whether it names planted causes, whether its stages add up, and
//! what tracing costs.
//!
//! Causes are planted in the lab, where the NIC knows how long it holds packets. The cost is that
//! of a program with ten thousand requests a second, traced and not in turns, so that both see the
//! same machine. Writes `docs/results/explain.json`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use super::environment::Environment;
use crate::{repo, shell};

const SCHEMA: &str = "earmark-explain-bench/1";
const OUTPUT: &str = "docs/results/explain.json";

/// Seconds of a run in the lab, and of one of the load.
const LAB_SECONDS: &str = "6";
const LOAD_SECONDS: &str = "8";

/// What is planted: the NIC's setting, the ports that have it, flags of the echo; and the cause
/// that is to be named.
struct Plant {
    name: &'static str,
    nic: &'static [&'static str],
    echo: &'static str,
    cause: (&'static str, &'static str),
}

const PLANTS: [Plant; 5] = [
    Plant {
        name: "hold of 200 us on this side",
        nic: &["--strategy", "delay:200", "--ports", "a"],
        echo: "",
        cause: ("own", "hold"),
    },
    Plant {
        name: "hold of 200 us on the far side",
        nic: &["--strategy", "delay:200", "--ports", "b"],
        echo: "",
        cause: ("far", "far-hold"),
    },
    Plant {
        name: "server that works 300 us",
        nic: &["--strategy", "disabled"],
        echo: "--work-us 300",
        cause: ("far", "slow-program"),
    },
    Plant {
        name: "server that wakes up in 400 us",
        nic: &["--strategy", "disabled"],
        echo: "--sleepy-us 400",
        cause: ("far", "sleepy-program"),
    },
    Plant {
        name: "cable of 500 us each way",
        nic: &["--strategy", "disabled", "--link-latency", "500"],
        echo: "",
        cause: ("far", "way"),
    },
];

#[derive(Serialize)]
struct Results {
    schema: &'static str,
    environment: Environment,
    planted: Vec<Planted>,
    overhead: Overhead,
}

/// What was made of one planted cause, run by run.
#[derive(Serialize)]
struct Planted {
    name: &'static str,
    expected: String,
    named: Vec<String>,
    right: usize,
    /// Of each run: the typical stage that is the cause, in microseconds.
    cause_us: Vec<f64>,
    /// The median hold that the NICs have counted, of this side and the far one.
    holds_us: Vec<[f64; 2]>,
    /// What events of the kernel miss of what the program measured: median and 99th percentile.
    sum_error_p50: Vec<f64>,
    sum_error_p99: Vec<f64>,
    requests: Vec<u64>,
}

/// What tracing costs, in shares of one processor.
#[derive(Serialize)]
struct Overhead {
    requests_per_s: f64,
    cpu_untraced: Vec<f64>,
    cpu_traced: Vec<f64>,
    /// Of the thread that traces.
    cpu_tracer: Vec<f64>,
    /// The mean of the differences, pair by pair, with the tracer's own; and its standard error.
    mean: f64,
    standard_error: f64,
    p50_us_untraced: Vec<f64>,
    p50_us_traced: Vec<f64>,
}

/// Measures, prints, writes.
pub(super) fn run(runs: u32) -> Result<()> {
    let earmark = binaries()?;
    let environment = Environment::read()?;
    println!("{environment}");
    let mut planted: Vec<Planted> = PLANTS.iter().map(Planted::new).collect();
    for _ in 0..runs {
        for (plant, planted) in PLANTS.iter().zip(&mut planted) {
            planted.add(&play(&earmark, plant)?);
        }
    }
    for one in &planted {
        let sum = one.sum_error_p50.iter().copied().fold(0.0, f64::max) * 100.0;
        println!("{}: {} of {runs} right; sum error {sum:.1} % at most", one.name, one.right);
    }
    let overhead = overhead(&earmark, runs)?;
    println!(
        "overhead at {:.0} requests/s: {:.2} % of a processor, standard error {:.2} %",
        overhead.requests_per_s,
        overhead.mean * 100.0,
        overhead.standard_error * 100.0
    );
    let path = repo::root().join(OUTPUT);
    let results = Results { schema: SCHEMA, environment, planted, overhead };
    fs::write(&path, serde_json::to_string_pretty(&results)? + "\n")?;
    println!("written to {OUTPUT}");
    Ok(())
}

/// Where the command, the echo and the load are.
struct Binaries {
    earmark: PathBuf,
    echo: PathBuf,
    load: PathBuf,
}

fn binaries() -> Result<Binaries> {
    let words = ["build", "--release", "-p", "earmark", "--bins", "--examples"];
    shell::run(&mut shell::cargo(words))?;
    let release = repo::target_directory()?.join("release");
    Ok(Binaries {
        earmark: release.join("earmark"),
        echo: release.join("examples/echo"),
        load: release.join("examples/explain_load"),
    })
}

/// What came of one run: the report, and the holds of both ports.
struct Played {
    report: Value,
    holds_us: [f64; 2],
}

fn play(binaries: &Binaries, plant: &Plant) -> Result<Played> {
    let Binaries { earmark, echo, .. } = binaries;
    let (earmark, echo) = (earmark.display(), echo.display());
    let asks = format!(
        "{earmark} explain b --port 7 --duration {LAB_SECONDS} --json && echo && {earmark} nic show --json"
    );
    let mut command = Command::new(&binaries.earmark);
    command.args(["lab", "run"]).args(plant.nic);
    command.args(["--on", "b", &format!("exec {echo} 7 {}", plant.echo), "--on", "a", &asks]);
    let output = shell::output(&mut command)?;
    let (report, ports) = output.split_once("\n\n").context("two documents from the lab")?;
    let ports: Value = serde_json::from_str(ports)?;
    let hold = |port: usize| ports[port]["hold_us"][0].as_f64().unwrap_or(0.0);
    let holds_us = [hold(0), hold(1)];
    Ok(Played { report: serde_json::from_str(report)?, holds_us })
}

impl Planted {
    fn new(plant: &Plant) -> Self {
        Self {
            name: plant.name,
            expected: format!("{}: {}", plant.cause.0, plant.cause.1),
            named: Vec::new(),
            right: 0,
            cause_us: Vec::new(),
            holds_us: Vec::new(),
            sum_error_p50: Vec::new(),
            sum_error_p99: Vec::new(),
            requests: Vec::new(),
        }
    }

    fn add(&mut self, Played { report, holds_us }: &Played) {
        let one = &report["explained"][0];
        let cause = one["verdict"]["cause"].as_object().and_then(|cause| cause.iter().next());
        let named = cause.map_or("nothing".to_owned(), |(side, cause)| {
            format!("{side}: {}", cause.as_str().unwrap_or("?"))
        });
        let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
        self.right += usize::from(named == self.expected);
        self.named.push(named);
        self.cause_us.push(number(&one["verdict"]["us"]));
        self.holds_us.push(*holds_us);
        self.sum_error_p50.push(number(&report["sum_error"]["p50"]));
        self.sum_error_p99.push(number(&report["sum_error"]["p99"]));
        self.requests.push(one["requests"].as_u64().unwrap_or(0));
    }
}

/// One run of the load: requests and CPU a second, and its median.
struct Load {
    rate: f64,
    cpu: f64,
    p50_us: f64,
}

impl Load {
    fn read(file: &Path) -> Result<Self> {
        let value: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
        let number = |name: &str| value[name].as_f64().with_context(|| format!("{name} of a load"));
        let seconds = number("seconds")?;
        Ok(Self {
            rate: number("requests")? / seconds,
            cpu: number("cpu_s")? / seconds,
            p50_us: number("p50_us")?,
        })
    }
}

fn overhead(binaries: &Binaries, runs: u32) -> Result<Overhead> {
    let file = repo::target_directory()?.join("explain-load.json");
    let load = [binaries.load.as_os_str(), file.as_os_str(), LOAD_SECONDS.as_ref()];
    let (mut untraced, mut traced, mut tracer) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        shell::run(Command::new(load[0]).args(&load[1..]))?;
        untraced.push(Load::read(&file)?);
        let mut command = Command::new(&binaries.earmark);
        command.args(["explain", "--duration", "60", "--json", "--"]).args(load);
        let report: Value = serde_json::from_str(&shell::output(&mut command)?)?;
        let found = report["explained"].as_array().is_some_and(|found| !found.is_empty());
        ensure!(found, "nothing was explained: {report}");
        traced.push(Load::read(&file)?);
        let account = &report["account"];
        let number = |name: &str| account[name].as_f64().unwrap_or(f64::NAN);
        tracer.push(number("own_cpu_s") / number("elapsed_s"));
    }
    let differences: Vec<f64> =
        (0..untraced.len()).map(|run| traced[run].cpu + tracer[run] - untraced[run].cpu).collect();
    let (mean, standard_error) = mean_and_error(&differences);
    let all = |loads: &[Load], of: fn(&Load) -> f64| loads.iter().map(of).collect::<Vec<f64>>();
    Ok(Overhead {
        requests_per_s: mean_and_error(&all(&untraced, |load| load.rate)).0,
        cpu_untraced: all(&untraced, |load| load.cpu),
        cpu_traced: all(&traced, |load| load.cpu),
        cpu_tracer: tracer,
        mean,
        standard_error,
        p50_us_untraced: all(&untraced, |load| load.p50_us),
        p50_us_traced: all(&traced, |load| load.p50_us),
    })
}

fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0) / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_has_its_standard_error() {
        let (mean, error) = mean_and_error(&[1.0, 2.0, 3.0]);
        assert_eq!(mean, 2.0);
        assert!((error - (1.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn planted_causes_are_compared_by_side_and_name() {
        let mut planted = Planted::new(&PLANTS[0]);
        let report = serde_json::json!({
            "sum_error": {"p50": 0.01, "p99": 0.02},
            "explained": [{"requests": 9, "verdict": {"cause": {"own": "hold"}, "us": 200.0}}],
        });
        planted.add(&Played { report, holds_us: [200.0, 0.0] });
        planted.add(&Played { report: Value::Null, holds_us: [0.0, 0.0] });
        assert_eq!((planted.right, planted.named.len()), (1, 2));
        assert_eq!(planted.named[1], "nothing");
    }
}

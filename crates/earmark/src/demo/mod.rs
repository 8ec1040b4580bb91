//! `earmark demo`: every strategy on real traffic, in about a minute.
//!
//! Each strategy carries three kinds of traffic: TCP round trips alone, one bulk flow alone, and
//! both at once on one NIC, which is the case that matters. Alone, round trips follow one another
//! and the bulk flow is as fast as it goes; at once, both are offered at a fixed pace, so that
//! all strategies have the same to carry; whether they did is said at the end.

mod conclusions;
mod show;

use std::path::Path;

use anyhow::{Context, Result};
use lab::wait::Waiting;
use nic::moderation::Moderation;
use serde::Serialize;
use sys::privilege::become_capable;

use crate::cli::DemoArgs;
use bench::attempt::{CellRounds, attempt, refuse_nothing};
use bench::environment::Environment;
use bench::experiment::Experiment;
use bench::measurement::{Measurement, Rounds};
use bench::options::{ExperimentOptions, NicOptions, Text};
use bench::world::World;
use bench::world::live::Live;
use report::progress::Progress;
use report::terminal::Width;
use report::{self, json, outln};
use sys::files::{self, writable};

/// What the bulk flow writes at a time: the smaller, the more interrupts a NIC can make of it.
const CHUNK_BYTES: u32 = 16_384;

/// Seconds before each measurement.
const WARMUP_S: f64 = 0.15;

/// The space that a report may take.
const REPORT_BYTES: usize = 1 << 20;

/// The three kinds of traffic.
const TRAFFIC: [Experiment; 3] = [Experiment::TcpRr, Experiment::Bulk, Experiment::Mixed];

/// The strategies, in the order of the table.
const STRATEGIES: [&str; 8] = [
    "disabled",
    "delay:75",
    "throttle:125",
    "periodic:75",
    "delay:75+frames:16",
    "adaptive",
    "marked:75",
    "stream:75",
];

/// One strategy under the three kinds of traffic.
#[derive(Debug, Serialize)]
struct Row {
    setting: String,
    /// TCP round trips alone.
    round_trips: Measurement,
    /// A bulk transfer alone.
    bulk: Measurement,
    /// Both at once.
    both: Measurement,
}

/// What the demo found; `--json` writes it.
#[derive(Debug, Serialize)]
struct Demo {
    rows: Vec<Row>,
    #[serde(rename = "story")]
    summary: String,
}

/// Runs the demo.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    let privilege = become_capable()?;
    // Now rather than in a minute: can the files be written?
    for path in std::iter::once(&args.report).chain(&args.json) {
        writable(path, REPORT_BYTES).with_context(|| {
            format!("write {}; choose another place with --report or --json", path.display())
        })?;
    }
    let options = NicOptions {
        mark: args.mark.clone(),
        wait: Some(args.wait.clone().unwrap_or(Text(Waiting::Precise))),
        ..NicOptions::default()
    };
    let live = Live::start(2, &options, privilege)?;
    let rows = measure(&live, args)?;
    live.finish()?;
    let summary = conclusions::sentences(&rows);
    let demo = Demo { rows, summary };
    let page = report::render(&show::report(&demo)).context("draw the report")?;
    write(&args.report, &page)?;
    if let Some(path) = &args.json {
        write(path, &json::text(&demo)?)?;
    }
    let width = Width::of_output();
    outln!("{}\n\n{}\n", show::table(&demo.rows).fit(width), width.wrap(&demo.summary));
    outln!("Report: {}", args.report.display());
    Ok(())
}

fn measure(live: &Live, args: &DemoArgs) -> Result<Vec<Row>> {
    let settings: Vec<Moderation> = STRATEGIES
        .iter()
        .map(|text| text.parse().context("a strategy of the demo"))
        .collect::<Result<_>>()?;
    let options = ExperimentOptions {
        duration: Some(args.duration),
        warmup: Some(WARMUP_S),
        bulk_chunk: Some(CHUNK_BYTES),
        ..ExperimentOptions::default()
    };
    let mut cases: Vec<[CellRounds; 3]> = settings.iter().map(|_| Default::default()).collect();
    let progress = Progress::new(false);
    progress.start(u64::from(args.rounds) * (settings.len() * TRAFFIC.len()) as u64);
    for round in 0..args.rounds {
        for (setting, cases) in settings.iter().zip(&mut cases) {
            for (experiment, case) in TRAFFIC.iter().zip(cases) {
                progress.step(&format!("{setting}: {}", experiment.name()));
                let plan = experiment.plan(&options, None, u64::from(round) + 1);
                case.keep(round, attempt(live, &plan, *setting, None)?);
            }
        }
        refuse_nothing(cases.iter().flatten())?;
    }
    progress.finish();
    let rows =
        settings.iter().zip(&cases).map(|(setting, cases)| row(setting, cases, live.environment()));
    Ok(rows.collect())
}

fn row(setting: &Moderation, cases: &[CellRounds; 3], environment: &Environment) -> Row {
    let setting = setting.to_string();
    let [round_trips, bulk, both] = cases.each_ref().map(|CellRounds { slices, missed }| {
        let setting = setting.clone();
        let rounds = Rounds { setting, clients: None, slices, missed, reports_half: false };
        rounds.measurement(environment.clone())
    });
    Row { setting, round_trips, bulk, both }
}

fn write(path: &Path, text: &str) -> Result<()> {
    files::write(path, text.as_bytes()).with_context(|| {
        format!("write {}; free some space or choose another place", path.display())
    })
}

//! `earmark demo`: every strategy, at once in a model and then on real traffic, in about a minute.
//!
//! The model comes first: it needs no rights and takes a second. Each strategy carries TCP round
//! trips alone, and both at once: round trips beside a bulk flow on one NIC, which is the case that
//! matters. Real traffic between two hosts of this machine confirms, with one bulk flow alone as a
//! third kind of traffic; where hosts cannot be made, the model's figures are the demo.
//!
//! Alone, round trips follow one another and the bulk flow is as fast as it goes; at once, both are
//! offered at a fixed pace, so that all strategies have the same to carry; whether they did is said
//! at the end.

mod conclusions;
mod show;

use std::path::Path;

use anyhow::{Context, Result};
use lab::wait::Waiting;
use nic::moderation::Moderation;
use serde::Serialize;
use sys::privilege::{Privilege, become_capable};

use crate::cli::DemoArgs;
use bench::attempt::{CellRounds, attempt, refuse_nothing};
use bench::experiment::Experiment;
use bench::measurement::{Measurement, Rounds};
use bench::options::{ExperimentOptions, NicOptions, Text};
use bench::world::World;
use bench::world::live::Live;
use bench::world::model::ModelWorld;
use report::progress::Progress;
use report::terminal::Width;
use report::{self, json, outln};
use sys::files::{self, writable};

/// What the bulk flow writes at a time: the smaller, the more interrupts a NIC can make of it.
const CHUNK_BYTES: u32 = 16_384;

/// Seconds before each measurement of real traffic.
const WARMUP_S: f64 = 0.15;

/// The space that a report may take.
const REPORT_BYTES: usize = 1 << 20;

/// The kinds of traffic.
const TRAFFIC: [Experiment; 3] = [Experiment::TcpRr, Experiment::Bulk, Experiment::Mixed];
/// Those of the model.
const MODEL_TRAFFIC: [Experiment; 2] = [Experiment::TcpRr, Experiment::Mixed];

/// The machine of the model where no option names one.
const MODEL_MACHINE: &str = "server";
/// Seconds of simulated time for each strategy and kind of traffic in the model, and before.
const MODEL_S: f64 = 0.2;
const MODEL_WARMUP_S: f64 = 0.05;

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

/// One strategy under the kinds of traffic.
#[derive(Debug, Serialize)]
struct Row {
    setting: String,
    /// TCP round trips alone.
    round_trips: Measurement,
    /// A bulk transfer alone; not in the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    bulk: Option<Measurement>,
    /// Both at once.
    both: Measurement,
}

/// What was measured in one world.
#[derive(Debug, Serialize)]
struct Findings {
    rows: Vec<Row>,
    #[serde(rename = "story")]
    summary: String,
}

/// What the demo found; `--json` writes it.
#[derive(Debug, Serialize)]
struct Demo {
    model: Findings,
    /// On real traffic; no rows where no hosts could be made.
    #[serde(flatten)]
    live: Findings,
    /// What real traffic lacked, and the remedy.
    not_measured: Option<String>,
}

/// Runs the demo.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    // Before the first thread is made; the model does without.
    let privilege = sys::kernel::check().map_err(anyhow::Error::from);
    let privilege = privilege.and_then(|()| Ok(become_capable()?));
    // Now rather than in a minute: can the files be written?
    for path in std::iter::once(&args.report).chain(&args.json) {
        writable(path, REPORT_BYTES).with_context(|| {
            format!("write {}; choose another place with --report or --json", path.display())
        })?;
    }
    let width = Width::of_output();
    let model = in_model(args)?;
    let machine = show::machine(&model.rows);
    let heading = format!("In a model, {MODEL_S} s of simulated time each: {machine}");
    let table = show::MODEL.table(&model.rows).fit(width);
    outln!("{}\n\n{table}\n\n{}\n", width.wrap(&heading), width.wrap(&model.summary));
    let (live, not_measured) = match privilege.and_then(|privilege| hosts(args, privilege)) {
        Ok(hosts) => (on_real_traffic(args, hosts)?, None),
        Err(error) => {
            let why = format!("No hosts for real traffic: {}", report::output::message(&error));
            outln!("{why}\n");
            (Findings { rows: Vec::new(), summary: String::new() }, Some(why))
        }
    };
    let demo = Demo { model, live, not_measured };
    let page = report::render(&show::report(&demo)).context("draw the report")?;
    write(&args.report, &page)?;
    if let Some(path) = &args.json {
        write(path, &json::text(&demo)?)?;
    }
    outln!("{}\n\nReport: {}", width.wrap(conclusions::NEXT), args.report.display());
    Ok(())
}

/// The strategies on hosts that are simulated.
fn in_model(args: &DemoArgs) -> Result<Findings> {
    let machine = args.machine.clone().unwrap_or_else(|| MODEL_MACHINE.to_owned());
    let options =
        NicOptions { mark: args.mark.clone(), machine: Some(machine), ..NicOptions::default() };
    let world = ModelWorld::new(&options)?;
    let measured = measure(&world, MODEL_TRAFFIC, (MODEL_WARMUP_S, MODEL_S), 1)?;
    let mut rows = Vec::new();
    for (setting, [round_trips, both]) in measured {
        rows.push(Row { setting, round_trips, bulk: None, both });
    }
    let summary = conclusions::of_model(&rows);
    Ok(Findings { rows, summary })
}

/// Two hosts of this machine.
fn hosts(args: &DemoArgs, privilege: Privilege) -> Result<Live> {
    let options = NicOptions {
        mark: args.mark.clone(),
        wait: Some(args.wait.clone().unwrap_or(Text(Waiting::Precise))),
        ..NicOptions::default()
    };
    Live::start(2, &options, privilege)
}

fn on_real_traffic(args: &DemoArgs, live: Live) -> Result<Findings> {
    let width = Width::of_output();
    let cases = f64::from(args.rounds) * (STRATEGIES.len() * TRAFFIC.len()) as f64;
    let seconds = cases * (args.duration + WARMUP_S);
    outln!("On real traffic between two hosts of this machine, for {seconds:.0} s:\n");
    let measured = measure(&live, TRAFFIC, (WARMUP_S, args.duration), args.rounds)?;
    live.finish()?;
    let mut rows = Vec::new();
    for (setting, [round_trips, bulk, both]) in measured {
        rows.push(Row { setting, round_trips, bulk: Some(bulk), both });
    }
    let summary = conclusions::sentences(&rows);
    outln!("{}\n\n{}", show::LIVE.table(&rows).fit(width), width.wrap(&summary));
    Ok(Findings { rows, summary })
}

/// Each strategy under each of `traffic`, in turns, for so many seconds after others.
fn measure<const KINDS: usize>(
    world: &dyn World,
    traffic: [Experiment; KINDS],
    (warmup, seconds): (f64, f64),
    rounds: u32,
) -> Result<Vec<(String, [Measurement; KINDS])>> {
    let settings: Vec<Moderation> = STRATEGIES
        .iter()
        .map(|text| text.parse().context("a strategy of the demo"))
        .collect::<Result<_>>()?;
    let options = ExperimentOptions {
        duration: Some(seconds),
        warmup: Some(warmup),
        bulk_chunk: Some(CHUNK_BYTES),
        ..ExperimentOptions::default()
    };
    let mut cases: Vec<[CellRounds; KINDS]> =
        settings.iter().map(|_| std::array::from_fn(|_| CellRounds::default())).collect();
    let progress = Progress::new(false);
    progress.start(u64::from(rounds) * (settings.len() * KINDS) as u64);
    for round in 0..rounds {
        for (setting, cases) in settings.iter().zip(&mut cases) {
            for (experiment, case) in traffic.iter().zip(cases) {
                progress.step(&format!("{setting}: {}", experiment.name()));
                let plan = experiment.plan(&options, None, u64::from(round) + 1);
                case.keep(round, attempt(world, &plan, *setting, None)?);
            }
        }
        refuse_nothing(cases.iter().flatten())?;
    }
    progress.finish();
    let measurement = |setting: &Moderation, CellRounds { slices, missed }: &CellRounds| {
        let setting = setting.to_string();
        let rounds = Rounds { setting, clients: None, slices, missed, reports_half: false };
        rounds.measurement(world.environment().clone())
    };
    let row = |(setting, cases): (&Moderation, &[CellRounds; KINDS])| {
        (setting.to_string(), cases.each_ref().map(|case| measurement(setting, case)))
    };
    Ok(settings.iter().zip(&cases).map(row).collect())
}

fn write(path: &Path, text: &str) -> Result<()> {
    files::write(path, text.as_bytes()).with_context(|| {
        format!("write {}; free some space or choose another place", path.display())
    })
}

//! `earmark demo`: every strategy in a model, and the three that matter on real traffic, in about
//! a minute.
//!
//! The model comes first: it needs no rights, takes a second and is exact. Each strategy carries
//! TCP round trips alone, and both at once: round trips beside a bulk flow on one NIC, which is the
//! case that matters, each offered at a fixed pace, so that all strategies have the same to carry.
//! Real traffic between two hosts of this machine confirms the second: it is repeated while its
//! rounds disagree, and where they still do after a minute, nothing is concluded from it. Where
//! hosts cannot be made, the model's figures are the demo.

mod agreement;
mod conclusions;
mod show;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lab::wait::Waiting;
use nic::moderation::Moderation;
use serde::Serialize;
use sys::privilege::{Privilege, become_capable};

use crate::cli::DemoArgs;
use agreement::Agreement;
use bench::attempt::{CellRounds, attempt, refuse_nothing};
use bench::environment::MODEL;
use bench::experiment::Experiment;
use bench::measurement::{Measurement, Round, Rounds};
use bench::options::{ExperimentOptions, NicOptions, Text};
use bench::world::World;
use bench::world::model::ModelWorld;
use report::progress::Progress;
use report::terminal::Width;
use report::{self, json, outln};
use sys::ctrl_c;
use sys::files::{self, writable};
use worlds::Terminal;
use worlds::live::Live;

/// What the bulk flow writes at a time. Linux makes one large segment of what is written, and a
/// cable without a rate carries its frames back to back: the less is written, the more interrupts
/// `disabled` can make of it, as on a wire. The model's cable has a rate.
const MODEL_CHUNK_BYTES: u32 = 16_384;
const LIVE_CHUNK_BYTES: u32 = 4_096;

/// Seconds before each measurement of real traffic.
const WARMUP_S: f64 = 0.1;

/// For how long rounds of real traffic are repeated while they disagree.
const PATIENCE: Duration = Duration::from_mins(1);

/// The space that a report may take.
const REPORT_BYTES: usize = 1 << 20;

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
/// Those that real traffic confirms, in the order in which [`Agreement`] takes them.
const CONFIRMED: [&str; 3] = ["disabled", "delay:75", "marked:75"];

/// One strategy under the kinds of traffic.
#[derive(Debug, Serialize)]
struct Row {
    setting: String,
    /// TCP round trips alone, in the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    round_trips: Option<Measurement>,
    /// Beside a bulk flow.
    both: Measurement,
}

/// What was measured in one world.
#[derive(Debug, Default, Serialize)]
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
    /// How far real traffic agrees with the model.
    agreement: Agreement,
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
    ctrl_c::watch().context("take signals")?;
    let width = Width::of_output();
    let model = in_model(args)?;
    let machine = show::machine(&model.rows);
    let heading = format!("In a model, {MODEL_S} s of simulated time each: {machine}");
    let table = show::MODEL.table(&model.rows).fit(width);
    outln!("{}\n\n{table}\n\n{}\n", width.wrap(&heading), width.wrap(&model.summary));
    let hosts = privilege.and_then(|privilege| hosts(args, privilege));
    let ((live, agreement), not_measured) = match hosts {
        Ok(hosts) => (on_real_traffic(args, hosts)?, None),
        Err(error) => {
            let why = format!("No hosts for real traffic: {}", report::output::message(&error));
            outln!("{why}\n");
            (Default::default(), Some(why))
        }
    };
    let demo = Demo { model, live, agreement, not_measured };
    let mark = args.mark.as_ref().map(|Text(rules)| rules);
    let state = show::state(args.machine.as_deref().unwrap_or(MODEL_MACHINE), mark);
    let page = report::render(&show::report(&demo, &state)).context("draw the report")?;
    write(&args.report, &page)?;
    if let Some(path) = &args.json {
        write(path, &json::text(&demo)?)?;
    }
    outln!("{}\nReport: {}", conclusions::NEXT, args.report.display());
    Ok(())
}

/// The strategies on hosts that are simulated.
fn in_model(args: &DemoArgs) -> Result<Findings> {
    let machine = args.machine.clone().unwrap_or_else(|| MODEL_MACHINE.to_owned());
    let options =
        NicOptions { mark: args.mark.clone(), machine: Some(machine), ..NicOptions::default() };
    let world = ModelWorld::new(&options, worlds::environment::read(MODEL))?;
    let slice = (MODEL_CHUNK_BYTES, MODEL_WARMUP_S, MODEL_S);
    let alone = measure(&world, &STRATEGIES, Experiment::TcpRr, slice, |_| false)?;
    let both = measure(&world, &STRATEGIES, Experiment::Mixed, slice, |_| false)?;
    let rows = alone.into_iter().zip(both).map(|(alone, both)| Row {
        setting: both.setting.clone(),
        round_trips: Some(alone),
        both,
    });
    let rows: Vec<_> = rows.collect();
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

fn on_real_traffic(args: &DemoArgs, live: Live) -> Result<(Findings, Agreement)> {
    let width = Width::of_output();
    let until = match args.rounds {
        Some(rounds) => format!("rounds: {rounds}"),
        None => "repeated while rounds disagree, for a minute at most".to_owned(),
    };
    let heading =
        format!("The last three columns between two real hosts of this machine; {until}:");
    outln!("{}\n", width.wrap(&heading));
    let started = Instant::now();
    let mut agreement = Agreement::default();
    let slice = (LIVE_CHUNK_BYTES, WARMUP_S, args.duration);
    let measured = measure(&live, &CONFIRMED, Experiment::Mixed, slice, |round| {
        agreement.count(round.try_into().expect("a turn of each strategy"));
        match args.rounds {
            Some(rounds) => agreement.rounds < rounds,
            None => !agreement.confirms() && started.elapsed() < PATIENCE,
        }
    })?;
    live.finish()?;
    let row = |both: Measurement| Row { setting: both.setting.clone(), round_trips: None, both };
    let rows: Vec<Row> = measured.into_iter().map(row).collect();
    let summary = conclusions::of_real_traffic(&rows, agreement);
    outln!("{}\n\n{}\n", width.wrap(&summary), show::LIVE.table(&rows).fit(width));
    Ok((Findings { rows, summary }, agreement))
}

/// Plays rounds of `experiment` in which each of `strategies` has its turn, with what the bulk flow
/// writes at a time, for so many seconds after others, while `more` of what the last round gave.
fn measure(
    world: &dyn World,
    strategies: &[&str],
    experiment: Experiment,
    (bulk_chunk, warmup, seconds): (u32, f64, f64),
    mut more: impl FnMut(Vec<Option<Round>>) -> bool,
) -> Result<Vec<Measurement>> {
    let settings: Vec<Moderation> = strategies
        .iter()
        .map(|text| text.parse().context("a strategy of the demo"))
        .collect::<Result<_>>()?;
    let options = ExperimentOptions {
        duration: Some(seconds),
        warmup: Some(warmup),
        bulk_chunk: Some(bulk_chunk),
        ..ExperimentOptions::default()
    };
    let mut cases: Vec<CellRounds> = settings.iter().map(|_| CellRounds::default()).collect();
    let progress = Progress::new(false);
    let caller = Terminal(&progress);
    for round in 0.. {
        progress.start(settings.len() as u64);
        let mut measured = Vec::new();
        for (setting, case) in settings.iter().zip(&mut cases) {
            progress.step(&format!("{}, {setting}", experiment.name()));
            let plan = experiment.plan(&options, None, u64::from(round) + 1);
            let Some(came) = attempt(&caller, world, &plan, *setting, None)? else { break };
            measured.push(came.as_ref().ok().map(Round::of));
            case.keep(round, came);
        }
        if ctrl_c::is() {
            break;
        }
        refuse_nothing(cases.iter())?;
        if !more(measured) {
            break;
        }
    }
    progress.finish();
    let measurement = |(setting, CellRounds { slices, missed }): (&Moderation, &CellRounds)| {
        let setting = setting.to_string();
        let rounds = Rounds { setting, clients: None, slices, missed, reports_half: false };
        rounds.measurement(world.environment().clone())
    };
    Ok(settings.iter().zip(&cases).map(measurement).collect())
}

fn write(path: &Path, text: &str) -> Result<()> {
    files::write(path, text.as_bytes()).with_context(|| {
        format!("write {}; free some space or choose another place", path.display())
    })
}

//! A bench run: one experiment under several settings, turn and turn about.
//!
//! Machines drift: another guest wakes up, a core heats. So settings are not measured one after the
//! other but in rounds, A B C A B C ..., and a ratio is taken within each round; its median is
//! quoted, with its range.

use anyhow::{Result, bail, ensure};
use linux::privilege::Privilege;
use nic::moderation::Moderation;
use serde::Serialize;

use crate::cli;
use crate::environment::VIRTUAL;
use crate::experiment::{Experiment, MxTerms, Plan, USUAL_SETTING};
use crate::halves;
use crate::measurement::{Measurement, Part, Round, Rounds, SCHEMA, Slice};
use crate::options::{ExperimentOptions, NicOptions, Text};
use crate::progress::Progress;
use crate::world::World;
use crate::world::live::Live;
use crate::world::virtual_time::Virtual;

/// How often each setting has its turn where several are compared.
const USUAL_ROUNDS: u32 = 3;

/// What `earmark bench` returns, and `--json` prints.
#[derive(Debug, Serialize)]
pub struct Outcome {
    /// [`SCHEMA`].
    pub schema_version: u32,
    /// The experiment.
    pub experiment: String,
    /// The world.
    pub world: &'static str,
    /// What messages of MX were like, where there were any.
    pub mx: Option<MxTerms>,
    /// One for each setting (and number of clients), in the order asked for.
    pub results: Vec<Measurement>,
    /// Each setting against each other one.
    pub ratios: Vec<Ratio>,
}

/// One figure of one setting, divided by that of another one in the same round.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// What is compared: `latency_p50`, `interrupts`, `transactions`, `bulk_bits`, `messages`,
    /// `interrupts_per_message`.
    pub figure: &'static str,
    /// The setting above the line.
    pub of: String,
    /// The setting below it.
    pub to: String,
    /// How many clients, where that was varied.
    pub clients: Option<u32>,
    /// The median over the rounds.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// One cell of the matrix that is measured.
struct Case {
    moderation: Moderation,
    clients: Option<u32>,
    slices: Vec<Slice>,
}

impl Case {
    /// What was in force, as the user would write it.
    fn setting(&self, options: &ExperimentOptions) -> String {
        match &options.change_to {
            Some(after) => format!("{} then {after}", self.moderation),
            None => self.moderation.to_string(),
        }
    }
}

/// Opens a world of two hosts.
///
/// # Errors
/// If the options do not go together, or the system refuses a part of it.
pub fn open(world: cli::World, nic: &NicOptions, privilege: Privilege) -> Result<Box<dyn World>> {
    Ok(match world {
        cli::World::Live => Box::new(Live::start(2, nic, privilege)?),
        cli::World::Virtual => Box::new(Virtual::new(nic, privilege)?),
    })
}

/// Runs `experiment` in `world`, and ends it.
///
/// # Errors
/// If the options do not go together, the world cannot be built, or a player fails.
pub fn run(
    experiment: Experiment,
    nic: &NicOptions,
    options: &ExperimentOptions,
    world: Box<dyn World>,
    progress: &Progress,
) -> Result<Outcome> {
    experiment.check(options)?;
    let mut cases = cases(nic, options)?;
    // In virtual time a round with the same seed is the same round.
    let repeats = cases.len() > 1 && world.environment().world != VIRTUAL;
    let usual = if repeats { USUAL_ROUNDS } else { 1 };
    let rounds = options.rounds.unwrap_or(usual);
    let change_to = options.change_to.as_ref().map(|Text(after)| *after);
    let seed = nic.seed.unwrap_or(1);
    progress.start(u64::from(rounds) * cases.len() as u64);
    for round in 0..rounds {
        for case in &mut cases {
            progress.step(&format!("{}, {}", experiment.name(), case.moderation));
            let plan = experiment.plan(options, case.clients, seed.wrapping_add(u64::from(round)));
            let slice = world.round(&plan, case.moderation, change_to)?;
            refuse_silence(&plan, &slice)?;
            case.slices.push(slice);
        }
    }
    progress.finish();
    let environment = world.environment().clone();
    let mut results = Vec::new();
    for case in &cases {
        let setting = case.setting(options);
        let tells_half = experiment.tells_half();
        let rounds = Rounds { setting, clients: case.clients, slices: &case.slices, tells_half };
        let mut measurement = rounds.measurement(environment.clone());
        measurement.halves = match change_to {
            Some(after) => halves::split(&case.slices, case.moderation, after, options),
            None => halves::whole(&case.slices, case.moderation),
        };
        results.push(measurement);
    }
    world.finish()?;
    let world = environment.world;
    let ratios = ratios(&results);
    let mx = experiment.mx(options);
    let experiment = experiment.name();
    Ok(Outcome { schema_version: SCHEMA, experiment, world, mx, results, ratios })
}

fn cases(nic: &NicOptions, options: &ExperimentOptions) -> Result<Vec<Case>> {
    let settings = match &options.compare {
        Some(settings) => {
            ensure!(
                !nic.name_a_setting(),
                "--compare names whole settings: drop --strategy, --rx-usecs, --rx-frames"
            );
            settings.iter().map(|Text(setting)| *setting).collect()
        }
        None => vec![nic.moderation(USUAL_SETTING)?],
    };
    let clients: Vec<_> = match &options.clients {
        Some(Text(range)) => range.each().map(Some).collect(),
        None => vec![None],
    };
    let case = |moderation, clients| Case { moderation, clients, slices: Vec::new() };
    let each = clients.iter().flat_map(|&clients| settings.iter().map(move |&s| case(s, clients)));
    Ok(each.collect())
}

/// A round in which nothing happened is a failure, not a result.
///
/// # Errors
/// If a player that should have received something did not.
pub fn refuse_silence(plan: &Plan, slice: &Slice) -> Result<()> {
    for (part, record) in &slice.records {
        let (counter, what) = match part {
            Part::Asker => ("transactions", "no request was answered"),
            Part::BulkSink => ("bytes_received", "the bulk flow did not flow"),
            Part::Counter => ("datagrams_received", "no datagram arrived"),
            Part::MessageSink => ("messages_received", "no message arrived"),
            _ => continue,
        };
        if record.counter(counter) == 0 {
            bail!(
                "{what} in {} s; measure for longer with --duration, or look at the cable (--link-loss)",
                plan.duration_s
            );
        }
    }
    Ok(())
}

/// A figure, and how a round tells it.
type Figure = (&'static str, fn(&Round) -> Option<f64>);

const FIGURES: [Figure; 6] = [
    ("latency_p50", |round| round.latency_p50_us),
    ("interrupts", |round| Some(round.interrupts_per_s)),
    ("transactions", |round| round.transactions_per_s),
    ("bulk_bits", |round| round.bulk_bits_per_s),
    ("messages", |round| round.messages_per_s),
    ("interrupts_per_message", |round| round.interrupts_per_message),
];

fn ratios(results: &[Measurement]) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for (figure, value) in FIGURES {
        for of in results {
            let others = results.iter().filter(|to| to.clients == of.clients);
            for to in others.filter(|to| to.setting != of.setting) {
                let pairs = of.rounds.iter().zip(&to.rounds);
                let divided =
                    pairs.filter_map(|(of, to)| Some(value(of)? / value(to).filter(|v| *v > 0.0)?));
                let mut divided: Vec<f64> = divided.collect();
                divided.sort_by(f64::total_cmp);
                if let (Some(&min), Some(&max)) = (divided.first(), divided.last()) {
                    let (of, to, clients) = (of.setting.clone(), to.setting.clone(), of.clients);
                    let median = median(&divided);
                    ratios.push(Ratio { figure, of, to, clients, median, min, max });
                }
            }
        }
    }
    ratios
}

/// The median of `sorted`, which is not empty.
pub fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

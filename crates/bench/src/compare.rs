//! A bench run: one experiment under several settings, turn and turn about.
//!
//! Machines drift: another guest wakes up, a core heats. So settings are not measured one after the
//! other but in rounds, A B C A B C ..., and a ratio is taken within each round; its median is
//! quoted, with its range.

use anyhow::{Result, ensure};
use lab::snapshot::PortSnapshot;
use nic::moderation::Moderation;
use serde::Serialize;
use sys::privilege::Privilege;

use crate::environment::VIRTUAL;
use crate::experiment::{Experiment, MxTerms, Plan, USUAL_SETTING};
use crate::measurement::{Measurement, NotMeasured, Part, Round, Rounds, SCHEMA, Slice};
use crate::one_way;
use crate::options::{ExperimentOptions, NicOptions, Text};
use crate::ratio::Spread;
use crate::records::Counter;
use crate::world::live::Live;
use crate::world::virtual_time::Virtual;
use crate::world::{World, WorldKind};
use report::progress::Progress;

/// How often each setting has its turn where several are compared.
const USUAL_ROUNDS: u32 = 3;

/// What `earmark bench` returns, and `--json` prints.
#[derive(Debug, Serialize)]
pub struct Comparison {
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

/// A figure of a round that settings are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Median latency.
    LatencyP50,
    /// Interrupts a second.
    Interrupts,
    /// Round trips a second.
    Transactions,
    /// Goodput of the bulk flow.
    BulkBits,
    /// Messages of MX a second.
    Messages,
    /// Interrupts for each message of MX.
    InterruptsPerMessage,
}

impl Figure {
    /// All of them, in the order of their matrices.
    const ALL: [Self; 6] = [
        Self::LatencyP50,
        Self::Interrupts,
        Self::Transactions,
        Self::BulkBits,
        Self::Messages,
        Self::InterruptsPerMessage,
    ];

    /// For people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::LatencyP50 => "latency p50",
            Self::Interrupts => "interrupts",
            Self::Transactions => "transactions",
            Self::BulkBits => "bulk bits",
            Self::Messages => "messages",
            Self::InterruptsPerMessage => "interrupts per message",
        }
    }

    fn of(self, round: &Round) -> Option<f64> {
        match self {
            Self::LatencyP50 => round.latency_p50_us,
            Self::Interrupts => round.interrupts_per_s,
            Self::Transactions => round.transactions_per_s,
            Self::BulkBits => round.bulk_bits_per_s,
            Self::Messages => round.messages_per_s,
            Self::InterruptsPerMessage => round.interrupts_per_message,
        }
    }
}

/// One figure of one setting, divided by that of another one in the same round.
#[derive(Clone, Debug, Serialize)]
pub struct Ratio {
    /// What is compared.
    pub figure: Figure,
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

impl Ratio {
    /// The ratio without what it is of.
    pub fn spread(&self) -> Spread {
        Spread { median: self.median, min: self.min, max: self.max }
    }
}

/// One cell of the matrix that is measured.
struct Cell {
    moderation: Moderation,
    clients: Option<u32>,
    rounds: CellRounds,
}

/// The rounds of one cell.
#[derive(Default)]
pub struct CellRounds {
    /// Those that were measured.
    pub slices: Vec<Slice>,
    /// The numbers of the others, and why.
    pub missed: Vec<(usize, NotMeasured)>,
}

impl CellRounds {
    /// Keeps what came of round number `round`.
    pub fn keep(&mut self, round: u32, came: Result<Slice, NotMeasured>) {
        match came {
            Ok(slice) => self.slices.push(slice),
            Err(why) => self.missed.push((round as usize, why)),
        }
    }
}

impl Cell {
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
pub fn open(world: WorldKind, nic: &NicOptions, privilege: Privilege) -> Result<Box<dyn World>> {
    Ok(match world {
        WorldKind::Live => Box::new(Live::start(2, nic, privilege)?),
        WorldKind::Virtual => Box::new(Virtual::new(nic, privilege)?),
    })
}

/// Refuses what a run of `experiment` would refuse, without a world; how many rounds it would play,
/// where a round is not repeated without being asked for.
///
/// # Errors
/// If the options do not go together.
pub fn check(
    experiment: Experiment,
    nic: &NicOptions,
    options: &ExperimentOptions,
) -> Result<usize> {
    experiment.check(options)?;
    Ok(cells(nic, options)?.len() * options.rounds.unwrap_or(1) as usize)
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
) -> Result<Comparison> {
    experiment.check(options)?;
    let mut cells = cells(nic, options)?;
    // In virtual time a round with the same seed is the same round.
    let repeats = cells.len() > 1 && world.environment().world != VIRTUAL;
    let usual = if repeats { USUAL_ROUNDS } else { 1 };
    let rounds = options.rounds.unwrap_or(usual);
    let change_to = options.change_to.as_ref().map(|Text(after)| *after);
    let seed = nic.seed.unwrap_or(1);
    progress.start(u64::from(rounds) * cells.len() as u64);
    for round in 0..rounds {
        for cell in &mut cells {
            progress.step(&format!("{}, {}", experiment.name(), cell.moderation));
            let plan = experiment.plan(options, cell.clients, seed.wrapping_add(u64::from(round)));
            cell.rounds.keep(round, attempt(&*world, &plan, cell.moderation, change_to)?);
        }
        refuse_nothing(cells.iter().map(|cell| &cell.rounds))?;
    }
    progress.finish();
    let environment = world.environment().clone();
    let mut results = Vec::new();
    for cell in &cells {
        let setting = cell.setting(options);
        let reports_half = experiment.reports_half();
        let (clients, CellRounds { slices, missed }) = (cell.clients, &cell.rounds);
        let rounds = Rounds { setting, clients, slices, missed, reports_half };
        let mut measurement = rounds.measurement(environment.clone());
        measurement.one_way = match change_to {
            Some(after) => one_way::split(slices, cell.moderation, after, options),
            None => one_way::whole(slices, cell.moderation),
        };
        results.push(measurement);
    }
    world.finish()?;
    let world = environment.world;
    let ratios = ratios(&results);
    let mx = experiment.mx(options);
    let experiment = experiment.name();
    Ok(Comparison { schema_version: SCHEMA, experiment, world, mx, results, ratios })
}

fn cells(nic: &NicOptions, options: &ExperimentOptions) -> Result<Vec<Cell>> {
    let settings = match &options.compare {
        Some(settings) => {
            ensure!(
                !nic.name_a_setting(),
                "--compare names whole settings: drop --strategy, --rx-usecs, --rx-frames"
            );
            let settings: Vec<_> = settings.iter().map(|Text(setting)| *setting).collect();
            settings.iter().try_for_each(|setting| nic.check(*setting))?;
            settings
        }
        None => vec![nic.moderation(USUAL_SETTING)?],
    };
    let clients: Vec<_> = match &options.clients {
        Some(Text(range)) => range.each().map(Some).collect(),
        None => vec![None],
    };
    let cell = |moderation, clients| Cell { moderation, clients, rounds: CellRounds::default() };
    let each = clients.iter().flat_map(|&clients| settings.iter().map(move |&s| cell(s, clients)));
    Ok(each.collect())
}

/// Plays one round. One in which nothing was measured is marked, and costs the others nothing.
///
/// # Errors
/// If the world itself fails: a host or a port that is gone, a program that cannot be started.
pub fn attempt(
    world: &dyn World,
    plan: &Plan,
    moderation: Moderation,
    change_to: Option<Moderation>,
) -> Result<Result<Slice, NotMeasured>> {
    match world.round(plan, moderation, change_to) {
        Ok(slice) => Ok(refuse_silence(plan, &slice).map(|()| slice)),
        Err(error) if error.is::<NotMeasured>() => {
            Ok(Err(NotMeasured(report::output::message(&error))))
        }
        Err(error) => Err(error),
    }
}

/// Ends a run that has no figures at all, instead of trying it again and again.
///
/// # Errors
/// Why the first cell has no figures, if none has any.
pub fn refuse_nothing<'a>(mut cells: impl Iterator<Item = &'a CellRounds> + Clone) -> Result<()> {
    let first = cells.clone().find_map(|cell| cell.missed.first());
    match first {
        Some((_, why)) if cells.all(|cell| cell.slices.is_empty()) => Err(why.clone().into()),
        _ => Ok(()),
    }
}

/// A round in which nothing happened has no figures.
///
/// # Errors
/// If a player that should have received something did not; and what was seen of the cause.
pub fn refuse_silence(plan: &Plan, slice: &Slice) -> Result<(), NotMeasured> {
    for (part, record) in &slice.records {
        let (counter, what) = match part {
            Part::Asker => (Counter::Transactions, "no request was answered"),
            Part::BulkSink => (Counter::BytesReceived, "the bulk flow did not flow"),
            Part::Counter => (Counter::DatagramsReceived, "no datagram arrived"),
            Part::MessageSink => (Counter::MessagesReceived, "no message arrived"),
            _ => continue,
        };
        if record.counter(counter) == 0 {
            let why = format!("{what} in {} s: {}", plan.duration_s, seen(slice));
            return Err(NotMeasured(why));
        }
    }
    Ok(())
}

/// What the NIC and the agents have counted that may explain a silence.
fn seen(slice: &Slice) -> String {
    let ports = &slice.nic.ports;
    let sum = |of: fn(&PortSnapshot) -> u64| ports.iter().map(of).sum::<u64>();
    let (lost, full) = (sum(|port| port.link.lost), sum(|port| port.counters.ring_full));
    if lost > 0 {
        return format!("the cable lost {lost} frames (--link-loss)");
    }
    if full > 0 {
        return format!("{full} frames found a full ring");
    }
    let busy_ns: u64 = slice.records.iter().map(|(_, record)| record.cpu_ns).sum();
    format!(
        "no frame was lost, the hosts took {} packets, and the agents had {:.1} ms of CPU time; \
         measure for longer with --duration",
        sum(|port| port.counters.delivered),
        busy_ns as f64 / 1e6
    )
}

/// The rounds that have no figures, in words; nothing if all have.
pub fn not_measured<'a>(results: impl Iterator<Item = &'a Measurement>) -> String {
    let mut text = String::new();
    for result in results {
        let of = result.rounds.len();
        for (number, round) in (1..).zip(&result.rounds) {
            if let Some(why) = &round.not_measured {
                let clients = result.clients.map(|clients| format!(", {clients} clients"));
                let clients = clients.unwrap_or_default();
                let setting = &result.setting;
                text +=
                    &format!("\nNot measured: {setting}{clients}, round {number} of {of}: {why}.");
            }
        }
    }
    text
}

fn ratios(results: &[Measurement]) -> Vec<Ratio> {
    let mut ratios = Vec::new();
    for figure in Figure::ALL {
        for of in results {
            let others = results.iter().filter(|to| to.clients == of.clients);
            for to in others.filter(|to| to.setting != of.setting) {
                let rounds = of.rounds.iter().zip(&to.rounds);
                let pairs = rounds.filter_map(|(of, to)| figure.of(of).zip(figure.of(to)));
                if let Some(Spread { median, min, max }) = Spread::of(pairs) {
                    let (of, to, clients) = (of.setting.clone(), to.setting.clone(), of.clients);
                    ratios.push(Ratio { figure, of, to, clients, median, min, max });
                }
            }
        }
    }
    ratios
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::records::Record;
    use lab::snapshot::Snapshot;
    use std::cell::Cell;

    /// A world in which every second round of one setting is without an answer, or each of all.
    struct Starving {
        environment: Environment,
        starved: &'static [&'static str],
        every: u32,
        rounds: Cell<u32>,
    }

    impl World for Starving {
        fn environment(&self) -> &Environment {
            &self.environment
        }

        fn round(&self, _: &Plan, setting: Moderation, _: Option<Moderation>) -> Result<Slice> {
            self.rounds.set(self.rounds.get() + 1);
            let starves = self.starved.contains(&setting.to_string().as_str())
                && self.rounds.get().is_multiple_of(self.every);
            let counters = [(Counter::Transactions, if starves { 0 } else { 40 })];
            let record = Record {
                schema: 1,
                workload: "rr-client".into(),
                window_ns: 1_000_000_000,
                cpu_ns: 2_000_000,
                counters: counters.into(),
                distributions: Default::default(),
                series: None,
            };
            let nic = Snapshot {
                at: base::time::Instant::ZERO,
                cpu: base::time::Duration::ZERO,
                delivering: base::time::Duration::ZERO,
                spun: base::time::Duration::ZERO,
                overshoot: hdrhistogram::Histogram::new(3)?,
                ports: Vec::new(),
            };
            Ok(Slice { seconds: 1.0, records: vec![(Part::Asker, record)], nic })
        }

        fn finish(self: Box<Self>) -> Result<()> {
            Ok(())
        }
    }

    fn compare(starved: &'static [&'static str], every: u32) -> Result<Comparison> {
        let environment = Environment::read("live");
        let world = Starving { environment, starved, every, rounds: Cell::new(0) };
        let settings = ["disabled", "delay:75"].map(|setting| Text(setting.parse().unwrap()));
        let options = ExperimentOptions {
            compare: Some(settings.to_vec()),
            rounds: Some(4),
            ..ExperimentOptions::default()
        };
        let progress = Progress::new(true);
        run(Experiment::TcpRr, &NicOptions::default(), &options, Box::new(world), &progress)
    }

    #[test]
    fn a_starved_round_is_marked_and_the_others_are_kept() {
        // Rounds are played A B A B: the fourth and the eighth are B's.
        let comparison = compare(&["delay:75"], 4).unwrap();
        let measured = |result: &Measurement| {
            let is_there = |round: &Round| round.transactions_per_s.is_some();
            result.rounds.iter().map(is_there).collect::<Vec<_>>()
        };
        assert_eq!(measured(&comparison.results[0]), [true; 4]);
        assert_eq!(measured(&comparison.results[1]), [true, false, true, false]);
        assert_eq!(comparison.results[1].transactions_per_s, Some(40.0));
        let why = comparison.results[1].rounds[1].not_measured.as_ref().unwrap();
        assert!(why.contains("no frame was lost") && why.contains("2.0 ms of CPU"), "{why}");
        let text = not_measured(comparison.results.iter());
        assert!(text.starts_with("\nNot measured: delay:75, round 2 of 4: no request"), "{text}");
        assert!(comparison.ratios.iter().any(|ratio| ratio.figure == Figure::Transactions));
    }

    #[test]
    fn a_setting_without_any_round_has_no_figures() {
        let comparison = compare(&["delay:75"], 1).unwrap();
        let starved = serde_json::to_value(&comparison.results[1]).unwrap();
        for figure in ["latency_us", "transactions_per_s", "interrupts", "packets", "lost", "cpu"] {
            assert!(starved[figure].is_null(), "{figure}: {starved:#}");
        }
        assert_eq!(starved["rounds"].as_array().unwrap().len(), 4);
        assert!(comparison.ratios.is_empty());
    }

    #[test]
    fn where_nothing_was_measured_the_run_ends_with_the_reason() {
        let error = compare(&["disabled", "delay:75"], 1).unwrap_err().to_string();
        assert!(error.contains("no request was answered") && !error.contains("--link-loss"));
    }
}

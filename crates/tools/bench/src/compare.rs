//! A bench run: one experiment under several settings, turn and turn about.
//!
//! Machines drift: another guest wakes up, a core heats. So settings are not measured one after the
//! other but in rounds, A B C A B C ..., and a ratio is taken within each round; its median is
//! quoted, with its range.

use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::Serialize;

use crate::attempt::{CellRounds, refuse_nothing};
use crate::caller::Caller;
use crate::experiment::{Crowd, MxTerms};
use crate::measurement::{Measurement, Round, Rounds};
use crate::one_way;
use crate::options::Text;
use crate::ratio::Spread;
use crate::shard::Shard;
use crate::turns::{Played, Turns};
use crate::world::World;
use report::{TradeoffChart, TradeoffPoint};

/// What `earmark bench` returns, and `--json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Comparison {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the world.
    pub world: String,
    /// How many hosts there were, and who talked, where they were more than two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crowd: Option<Crowd>,
    /// What messages of MX were like, where there were any.
    pub mx: Option<MxTerms>,
    /// One for each setting (and number of clients), in the order asked for.
    pub results: Vec<Measurement>,
    /// Each setting against each other one.
    pub ratios: Vec<Ratio>,
}

impl Comparison {
    /// Latency against interrupts, or the load of hosts, of every setting that has both.
    pub fn tradeoff(&self) -> TradeoffChart {
        let points = self.results.iter().filter_map(Measurement::tradeoff).collect();
        TradeoffChart { title: self.experiment.clone(), points, ..Default::default() }
    }
}

impl Measurement {
    /// Its point in such a picture.
    pub fn tradeoff(&self) -> Option<TradeoffPoint> {
        Some(TradeoffPoint {
            name: self.setting.clone(),
            latency_us: self.latency_us.as_ref()?.p50,
            interrupts_per_s: self.interrupts_per_s?,
            host_busy: self.busiest_host(),
            bulk_mbit: self.bulk_bits_per_s.map(|bits| bits / 1e6),
            ..TradeoffPoint::default()
        })
    }
}

/// A figure of a round that settings are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Median latency of a round.
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

    /// The title of its table.
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
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Ratio {
    /// What is compared.
    pub figure: Figure,
    /// The setting above the line.
    pub of: String,
    /// The setting below it.
    pub to: String,
    /// How many clients, where that was varied.
    pub clients: Option<u32>,
    /// The ratio over the rounds.
    #[serde(flatten)]
    pub spread: Spread,
}

/// Plays all of `turns` in `world`, and ends it.
pub fn run(turns: &Turns<'_>, world: Box<dyn World>, caller: &dyn Caller) -> Result<Comparison> {
    of(turns, turns.play(Shard::WHOLE, || Ok(world), caller)?)
}

/// Sums up what has been played of `turns`.
pub fn of(turns: &Turns<'_>, mut played: Played) -> Result<Comparison> {
    let Turns { experiment, options, .. } = *turns;
    let name = experiment.name();
    let environment = played.environment.take();
    let environment = environment.with_context(|| format!("{name}: nothing of it was played"))?;
    let rounds = turns.rounds_of_cells(played);
    refuse_nothing(rounds.iter())?;
    let change_to = options.change_to.as_ref().map(|Text(after)| *after);
    let mut results = Vec::new();
    for (cell, CellRounds { slices, missed }) in turns.cells.iter().zip(&rounds) {
        let (clients, reports_half) = (cell.clients, experiment.reports_half());
        let setting = cell.setting(change_to);
        let rounds = Rounds { setting, clients, slices, missed, reports_half };
        let mut measurement = rounds.measurement(environment.clone());
        measurement.one_way = match change_to {
            Some(after) => one_way::split(slices, cell.moderation, after, options),
            None => one_way::whole(slices, cell.moderation),
        };
        results.push(measurement);
    }
    let (world, ratios, mx) = (environment.world, ratios(&results), experiment.mx(options));
    let crowd = Some(turns.crowd).filter(|crowd| *crowd != Crowd::PAIR);
    Ok(Comparison { experiment: name, world, crowd, mx, results, ratios })
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
                if let Some(spread) = Spread::of(pairs) {
                    let (of, to, clients) = (of.setting.clone(), to.setting.clone(), of.clients);
                    ratios.push(Ratio { figure, of, to, clients, spread });
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
    use crate::slice::NicRecord;
    use crate::world::WorldKind;
    use crate::world::fake::{self, Fake};
    use base::distribution::Distribution;
    use nic::moderation::Moderation;
    use std::cell::Cell;

    /// Of some settings every such round is without an answer.
    fn compare(starved: &'static [&'static str], every: u32) -> Result<Comparison> {
        let rounds = Cell::new(0_u32);
        let play = move |_: &_, setting: Moderation| {
            rounds.set(rounds.get() + 1);
            let starves = starved.contains(&setting.to_string().as_str())
                && rounds.get().is_multiple_of(every);
            let transactions = if starves { 0 } else { 40 };
            Ok(fake::slice(transactions, Distribution::default(), NicRecord::default()))
        };
        let world = Fake { environment: Environment::of("live"), play };
        let asked = fake::run(&["disabled", "delay:75"]);
        run(&Turns::new(&asked, WorldKind::Live, 0)?, Box::new(world), &())
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
        report::json::checks::conforms(&comparison);
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

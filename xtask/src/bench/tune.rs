//! How far `earmark tune` is from the best, and how many trials it takes.
//!
//! For each workload every setting of our NIC is measured, in turns (`--exhaustive`). Goals are
//! made from that table: limits that a part of the settings meets. Then `earmark tune` searches for
//! each goal, without the table, and its pick is looked up there. In virtual time the table is
//! exact. In the live world it is as noisy as the machine, and the best of so many noisy figures
//! looks better than it is; besides, the machine may be another one by then. So pick and best are
//! measured once more, in turns (`--among`), and that is what counts.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use super::environment::Environment;
use super::files::write_world;
use crate::shell;

/// The version of the file's layout.
const SCHEMA: &str = "earmark-tune/2";

/// The longest `rx-usecs` in the tables: beyond, all goals here are missed.
const MAX_USECS: &str = "256";

/// What is tuned for.
const WORKLOADS: [&str; 3] = ["tcp-rr", "loaded-server", "mixed"];

/// Rounds in which pick and best are measured in turns, live.
const REMATCH: u32 = 9;

/// A world, and how it measures.
struct World {
    name: &'static str,
    /// Rounds of the table.
    rounds: u32,
    /// Rounds in which pick and best are measured in turns.
    rematch: u32,
    /// Searches for each goal.
    searches: u32,
    /// Seconds of a measurement, and before it.
    spans: [&'static str; 2],
}

/// What is written of a world.
#[derive(Serialize)]
struct Report {
    environment: Environment,
    cases: Vec<Case>,
    summary: Summary,
}

/// One goal.
#[derive(Serialize)]
struct Case {
    workload: &'static str,
    goal: String,
    /// Settings in the table.
    settings: usize,
    best: String,
    best_figures: Value,
    searches: Vec<Search>,
}

/// One search.
#[derive(Serialize)]
struct Search {
    pick: String,
    pick_figures: Value,
    trials: usize,
    measurements: u64,
    /// By how much the pick's figures are worse than those of the best, both measured in turns: by
    /// its aim, or by how far it is beyond the limit, if that is more.
    distance: f64,
    /// The same by the table.
    table_distance: f64,
}

/// All cases of a world.
#[derive(Serialize)]
struct Summary {
    searches: usize,
    within_5_percent: usize,
    within_5_percent_by_table: usize,
    median_distance: f64,
    greatest_distance: f64,
    most_trials: usize,
}

/// A goal: a figure that is to be small, and a limit on another one.
struct Goal {
    aim: &'static str,
    limit: Option<(&'static str, f64)>,
}

impl Goal {
    fn text(&self) -> String {
        let limit = self.limit.map(|(metric, bound)| match metric {
            "p99" => format!(", p99 < {bound:.1}us"),
            _ => format!(", {metric} < {bound:.0}"),
        });
        format!("min {}{}", self.aim, limit.unwrap_or_default())
    }

    /// How bad figures are: the excess over the limit first, then the aim.
    fn cost(&self, row: &Row) -> Option<(f64, f64)> {
        let aim = row.figure(self.aim)?;
        let Some((metric, bound)) = self.limit else { return Some((0.0, aim)) };
        Some(((row.figure(metric)? / bound - 1.0).max(0.0), aim))
    }

    fn distance(&self, pick: &Row, best: &Row) -> Option<f64> {
        let ((excess, aim), (least_excess, least)) = (self.cost(pick)?, self.cost(best)?);
        let worse = if least > 0.0 { (aim / least - 1.0).max(0.0) } else { 0.0 };
        // Who goes beyond the limit is not excused by a better aim.
        Some(if excess > least_excess { worse.max(excess - least_excess) } else { worse })
    }
}

/// A setting and what was measured.
#[derive(Clone)]
struct Row {
    setting: String,
    figures: Value,
}

impl Row {
    fn figure(&self, name: &str) -> Option<f64> {
        self.figures[name].as_f64()
    }
}

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Rounds of the live world
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only here
    #[arg(long, value_parser = ["live", "virtual"])]
    world: Option<String>,
    /// Where to write the figures, from the root of the repository
    #[arg(long, default_value = "docs/results/tune.json")]
    output: PathBuf,
}

/// Measures, prints, writes the file.
pub(super) fn run(options: &Options) -> Result<()> {
    let environment = Environment::read()?;
    let (rounds, spans) = (options.runs, ["0.5", "0.1"]);
    let live = World { name: "live", rounds, rematch: REMATCH, searches: 3, spans };
    let spans = ["0.1", "0.02"];
    let exact = World { name: "virtual", rounds: 1, rematch: 1, searches: 1, spans };
    let is_wanted = |world: &World| options.world.as_ref().is_none_or(|name| name == world.name);
    for world in [exact, live].iter().filter(|world| is_wanted(world)) {
        if world.name == "virtual" {
            crate::kernel::ensure()?;
        }
        let cases = WORKLOADS.into_iter().map(|workload| workload_cases(world, workload));
        let cases = cases.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect::<Vec<_>>();
        let summary = summed_up(&cases);
        print(world.name, &summary);
        let report = Report { environment: environment.clone(), cases, summary };
        write_world(&report, SCHEMA, world.name, &options.output)?;
    }
    Ok(())
}

fn workload_cases(world: &World, workload: &'static str) -> Result<Vec<Case>> {
    let rounds = world.rounds.to_string();
    let all = ["--goal", "min interrupts", "--max-usecs", MAX_USECS, "--exhaustive", &rounds];
    let table = tune(world, workload, &all)?;
    let table = rows(&table)?;
    let mut cases = Vec::new();
    for goal in goals(&table)? {
        let best = best(&table, &goal)?;
        let mut searches = Vec::new();
        for _ in 0..world.searches {
            searches.push(search(world, workload, (&goal, &table, &best))?);
        }
        let case = Case {
            workload,
            goal: goal.text(),
            settings: table.len(),
            best: best.setting.clone(),
            best_figures: best.figures.clone(),
            searches,
        };
        println!("{} {workload}, {}: best {}", world.name, case.goal, case.best);
        for Search { pick, trials, distance, table_distance, .. } in &case.searches {
            println!(
                "    {:5.1} % off ({:.1} % by the table) after {trials} trials: {pick}",
                100.0 * distance,
                100.0 * table_distance
            );
        }
        cases.push(case);
    }
    Ok(cases)
}

/// Limits that about a half of the settings meet, and no limit at all.
fn goals(table: &[Row]) -> Result<Vec<Goal>> {
    let middle = |metric: &str| -> Result<f64> {
        let mut values: Vec<f64> = table.iter().filter_map(|row| row.figure(metric)).collect();
        values.sort_by(f64::total_cmp);
        let value = values.get(values.len() / 2).with_context(|| format!("no {metric}"))?;
        Ok(1.02 * value)
    };
    Ok(vec![
        Goal { aim: "p50", limit: None },
        Goal { aim: "interrupts", limit: Some(("p99", middle("p99")?)) },
        Goal { aim: "p50", limit: Some(("interrupts", middle("interrupts")?)) },
    ])
}

fn best(table: &[Row], goal: &Goal) -> Result<Row> {
    let costs = table.iter().filter_map(|row| Some((goal.cost(row)?, row)));
    let least = costs.min_by(|(a, _), (b, _)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    Ok(least.context("nothing was measured")?.1.clone())
}

fn search(
    world: &World,
    workload: &str,
    (goal, table, best): (&Goal, &[Row], &Row),
) -> Result<Search> {
    let outcome = tune(world, workload, &["--goal", &goal.text(), "--max-usecs", MAX_USECS])?;
    let trials = rows(&outcome)?;
    let number = outcome["pick"].as_u64().context("no pick")?;
    let pick = trials.get(usize::try_from(number)?).context("no such pick")?;
    let known = table.iter().find(|row| row.setting == pick.setting);
    let known = known.with_context(|| format!("{} is not in the table", pick.setting))?;
    Ok(Search {
        pick: pick.setting.clone(),
        pick_figures: known.figures.clone(),
        trials: trials.len(),
        measurements: outcome["measurements"].as_u64().unwrap_or(0),
        distance: rematch(world, workload, (goal, &pick.setting, &best.setting))?,
        table_distance: goal.distance(known, best).context("the pick was not measured")?,
    })
}

/// Measures a pick and the best in turns; how far the one is from the other.
fn rematch(world: &World, workload: &str, (goal, pick, best): (&Goal, &str, &str)) -> Result<f64> {
    if pick == best {
        return Ok(0.0);
    }
    let (text, rounds) = (goal.text(), world.rematch.to_string());
    let both = ["--goal", &text, "--among", pick, "--among", best, "--exhaustive", &rounds];
    let rows = rows(&tune(world, workload, &both)?)?;
    let row = |setting| rows.iter().find(|row| row.setting == setting);
    let distance = row(pick).zip(row(best)).and_then(|(pick, best)| goal.distance(pick, best));
    distance.context("the pick was not measured again")
}

fn rows(outcome: &Value) -> Result<Vec<Row>> {
    let trials = outcome["trials"].as_array().context("no trials")?;
    let row = |trial: &Value| {
        let setting = trial["setting"].as_str().context("no setting")?.to_owned();
        Ok(Row { setting, figures: trial["figures"].clone() })
    };
    let rows: Vec<Row> = trials.iter().map(row).collect::<Result<_>>()?;
    ensure!(!rows.is_empty(), "nothing was tried");
    Ok(rows)
}

fn tune(world: &World, workload: &str, arguments: &[&str]) -> Result<Value> {
    let [duration, warmup] = world.spans;
    let mut earmark = shell::cargo(["run", "--release", "--quiet", "--package", "earmark", "--"]);
    earmark.args(["tune", "both", "--world", world.name, "--workload", workload]);
    earmark.args(["--duration", duration, "--warmup", warmup, "--json"]).args(arguments);
    // 3: no setting meets the limit of the goal, which is a result here.
    let output = shell::output_or(&mut earmark, 3)?;
    serde_json::from_str(&output).with_context(|| format!("reading `{}`", shell::line(&earmark)))
}

fn summed_up(cases: &[Case]) -> Summary {
    let searches = || cases.iter().flat_map(|case| &case.searches);
    let mut distances: Vec<f64> = searches().map(|search| search.distance).collect();
    distances.sort_by(f64::total_cmp);
    let within = |distance: &f64| *distance <= 0.05;
    Summary {
        searches: distances.len(),
        within_5_percent: distances.iter().filter(|distance| within(distance)).count(),
        within_5_percent_by_table: searches().filter(|it| within(&it.table_distance)).count(),
        median_distance: distances.get(distances.len() / 2).copied().unwrap_or(0.0),
        greatest_distance: distances.last().copied().unwrap_or(0.0),
        most_trials: searches().map(|search| search.trials).max().unwrap_or(0),
    }
}

fn print(world: &str, summary: &Summary) {
    let Summary { searches, within_5_percent, within_5_percent_by_table, .. } = summary;
    println!(
        "{world}: {within_5_percent} of {searches} searches within 5 % \
         ({within_5_percent_by_table} by the table); median {:.1} %, greatest {:.1} %; {} trials at \
         most",
        100.0 * summary.median_distance,
        100.0 * summary.greatest_distance,
        summary.most_trials
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(p50: f64, p99: f64, interrupts: f64) -> Row {
        let figures = serde_json::json!({ "p50": p50, "p99": p99, "interrupts": interrupts });
        Row { setting: format!("rx-usecs {p50}"), figures }
    }

    #[test]
    fn distance_is_by_the_aim_or_beyond_the_limit() {
        let goal = Goal { aim: "interrupts", limit: Some(("p99", 100.0)) };
        let table = [row(50.0, 60.0, 9_000.0), row(60.0, 99.0, 4_000.0), row(80.0, 150.0, 1_000.0)];
        let best = best(&table, &goal).unwrap();
        assert_eq!(best.figure("p99"), Some(99.0));
        let distances: Vec<f64> =
            table.iter().map(|row| goal.distance(row, &best).unwrap()).collect();
        assert_eq!(distances, [1.25, 0.0, 0.5]);
        assert_eq!(goal.text(), "min interrupts, p99 < 100.0us");
        assert!(goal.distance(&row(1.0, 2.0, 3.0), &best).is_some());
    }

    #[test]
    fn nonsense_is_an_error() {
        for outcome in [serde_json::json!({}), serde_json::json!({ "trials": [] })] {
            assert!(rows(&outcome).is_err());
        }
        assert!(goals(&[]).is_err() && best(&[], &Goal { aim: "p50", limit: None }).is_err());
    }
}

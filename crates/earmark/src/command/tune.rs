//! `earmark tune`: the settings of a device that suit a workload.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use nic::moderation::Moderation;
use sys::privilege::become_capable;

use super::apply::{DeviceArgs, patience};
use bench::environment::Environment;
use bench::options::{ExperimentOptions, NicOptions, Ports, Text, duration, seconds};
use bench::world::WorldKind;
use report;
use report::progress::Progress;
use report::terminal::Width;
use report::{errln, outln};
use sys::interrupted;
use tune::device::Device;
use tune::figures::{Figures, Metric};
use tune::goal::{Direction, Goal};
use tune::outcome::{Limits, Outcome, SCHEMA, Verified};
use tune::peer::code::CodeArgs;
use tune::search::{self, Budget, Found, Point, Space, Trial, compare};
use tune::setting::{Change, State};
use tune::transaction::{Took, Transaction, Verdict, check};
use tune::trial::Play;
use tune::workload::{Kind, Terms};
use tune::world::Stage;

/// Rounds in which the pick is measured again, in turns with how the device was.
const VERIFY: u32 = 3;

/// The exit status if no setting meets the limits of the goal. docs/tune.md promises it.
const GOAL_MISSED: u8 = 3;

/// What `earmark tune` takes.
#[derive(Args, Debug)]
pub struct TuneArgs {
    /// The device, such as eth0; with --world, the port or ports of our NIC: a0, b0 or both
    #[arg(value_name = "DEV")]
    pub device: String,
    /// What you want: "p99 < 200us", "min latency, cpu < 30%", "min cpu, p99 < 150us", "max
    /// throughput"
    #[arg(long, value_name = "GOAL", required_unless_present = "command")]
    pub goal: Option<String>,
    /// The far host, on which `earmark serve` runs
    #[arg(long, value_name = "HOST", required_unless_present_any = ["command", "world"])]
    pub peer: Option<String>,
    /// Its pairing code
    #[command(flatten)]
    pub code: CodeArgs,
    /// Try it on a NIC of ours between two hosts of ours instead, live or in virtual time
    #[arg(long, value_enum, conflicts_with_all = ["peer", "command", "confirm_within", "lab"])]
    pub world: Option<WorldKind>,
    /// With --world, how our NIC is at first
    #[arg(long, value_name = "SETTING", requires = "world", default_value = "delay:75")]
    pub strategy: Text<Moderation>,
    /// What the device is tuned for
    #[arg(long, value_enum, default_value = "tcp-rr")]
    pub workload: Kind,
    /// A command of yours instead, whose last number is to be small (or large, with
    /// --higher-is-better)
    #[arg(long, value_name = "CMD", conflicts_with_all = ["peer", "workload", "goal"])]
    pub command: Option<String>,
    /// The number of your command is better when it is smaller, which is usual
    #[arg(long, requires = "command")]
    pub lower_is_better: bool,
    /// The number of your command is better when it is larger
    #[arg(long, requires = "command", conflicts_with = "lower_is_better")]
    pub higher_is_better: bool,
    /// Connections that ask at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub clients: u32,
    /// Requests a second, whatever the answers do
    #[arg(long, value_name = "PER_SECOND", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Option<u32>,
    /// Mbit/s of a bulk flow
    #[arg(long, value_name = "MBIT", value_parser = clap::value_parser!(u32).range(1..))]
    pub bulk_rate: Option<u32>,
    /// Seconds of one measurement
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", value_parser = duration)]
    pub duration: f64,
    /// Seconds before each that do not count
    #[arg(long, default_value_t = 0.2, value_name = "SECONDS", value_parser = seconds)]
    pub warmup: f64,
    /// The longest rx-usecs (or deferral) to try
    #[arg(long, default_value_t = 512, value_name = "USECS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub max_usecs: u64,
    /// Try busy polling, too, which is a setting of the whole machine
    #[arg(long, conflicts_with = "world")]
    pub busy_poll: bool,
    /// Settings to try at most
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(3..=1_000))]
    pub trials: u32,
    /// Try this setting, others named like this, and how the device is, instead of searching;
    /// such as "rx-usecs 50 rx-frames 32"
    #[arg(long, value_name = "SETTING", conflicts_with_all = ["max_usecs", "busy_poll", "trials"])]
    pub among: Vec<Text<Change>>,
    /// Try every setting, in turns, so many times; it takes long
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub exhaustive: Option<u32>,
    /// Find out, and leave the device as it is
    #[arg(long)]
    pub dry_run: bool,
    /// Put the pick into force even if it does not meet the goal, as long as it comes nearer to it
    /// than how the device is; the exit status is 3 all the same
    #[arg(long, conflicts_with_all = ["dry_run", "world"])]
    pub best_effort: bool,
    /// Undo the pick after so many seconds unless `earmark confirm` comes before
    #[arg(long, value_name = "SECONDS", value_parser = patience, conflicts_with = "dry_run")]
    pub confirm_within: Option<f64>,
    /// Write a page with table and picture
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The device
    #[command(flatten)]
    pub at: DeviceArgs,
}

impl TuneArgs {
    fn goal(&self) -> Result<Goal> {
        let Some(text) = &self.goal else {
            let higher = self.higher_is_better;
            return Ok(Goal::of_command(if higher { Direction::Max } else { Direction::Min }));
        };
        let goal: Goal = text.parse().map_err(|why| anyhow!("--goal: {why}"))?;
        for metric in goal.metrics() {
            let kind = self.workload;
            let has = match metric {
                Metric::Throughput => kind.has_throughput(),
                Metric::Cpu | Metric::Interrupts => true,
                Metric::Value => false,
                _ => kind.has_latency(),
            };
            ensure!(has, "--goal: {metric} is not measured by {}; take another goal", kind.name());
        }
        self.check_rates(&goal)?;
        Ok(goal)
    }

    /// Refuses to look for more than is offered.
    fn check_rates(&self, goal: &Goal) -> Result<()> {
        for limit in goal.limits.iter().filter(|limit| limit.direction == Direction::Max) {
            let (flag, offered) = match limit.metric {
                Metric::Transactions => ("--rate", self.rate.map(f64::from)),
                Metric::Throughput => {
                    ("--bulk-rate", self.bulk_rate.map(|rate| 1e6 * f64::from(rate)))
                }
                _ => continue,
            };
            ensure!(
                offered.is_none_or(|offered| offered >= limit.bound),
                "--goal: no setting can meet `{limit}`: {flag} offers {} only",
                limit.metric.tell(offered.unwrap_or_default())
            );
        }
        Ok(())
    }

    /// The settings to try on a device that is like this.
    fn space(&self, before: &State) -> Result<Space> {
        if self.among.is_empty() {
            let space = Space::of(before, self.max_usecs);
            let busy = self.busy_poll.then(|| space.clone().with_busy_polling(before));
            return busy.unwrap_or(Ok(space)).map_err(|why| anyhow!("--busy-poll: {why}"));
        }
        let named: Vec<Change> = self.among.iter().map(|Text(change)| change.clone()).collect();
        Ok(Space::among(&named))
    }

    fn play(&self) -> Result<Play> {
        if let Some(command) = &self.command {
            return Ok(Play::Theirs(command.clone()));
        }
        let millis = |seconds: f64| (seconds * 1e3).round() as u64;
        let peer = self.peer.as_deref().context("name the far host with --peer")?;
        Play::with_peer(self.workload, (peer, self.code.code()?), |here, there| Terms {
            here,
            there,
            clients: self.clients as usize,
            rate: self.rate.map(u64::from),
            bulk_mbit: self.bulk_rate.map(u64::from),
            warmup_ms: millis(self.warmup),
            duration_ms: millis(self.duration),
        })
    }
}

/// A device under trial.
struct Tuner<'a> {
    device: &'a dyn Device,
    play: &'a Play,
    space: &'a Space,
    transaction: Transaction<'a>,
    progress: Progress,
    refused: Vec<(Point, String)>,
    measurements: usize,
}

/// Finds the settings that meet the goal best, and puts them into force if they meet it. The exit
/// status says whether they do.
///
/// # Errors
/// If the workload cannot be played or the device cannot be changed; it is as it was, then.
pub fn run(args: &TuneArgs) -> Result<ExitCode> {
    let goal = args.goal()?;
    if let Some(world) = args.world {
        return in_world(args, world, &goal);
    }
    let (store, device) = args.at.open(&args.device)?;
    let device = device.as_ref();
    let before = device.read()?;
    let space = args.space(&before)?;
    for Text(change) in &args.among {
        check(device, change).with_context(|| format!("--among '{change}'"))?;
    }
    ensure!(
        !space.axes.is_empty() || !args.among.is_empty(),
        "{} ({}) has nothing to tune: no rx-usecs, no rx-frames, no NAPI deferral",
        args.device,
        device.driver()
    );
    let play = args.play()?;
    interrupted::watch().context("take signals")?;
    // A workload that cannot be played, or that takes another way, is no reason to change anything.
    play.once(device, 0)?;
    let transaction = Transaction::begin(device, &store, "tune")?;
    let progress = Progress::new(args.json);
    let (refused, measurements) = (Vec::new(), 0);
    let mut tuner =
        Tuner { device, play: &play, space: &space, transaction, progress, refused, measurements };
    let found = tuner.search(args, &goal)?;
    let rows = Outcome::rows(&space, &goal, &found, &tuner.refused);
    let point = found.trials[found.best].point.clone();
    ensure!(
        goal.aimed(&found.trials[found.best].mean()).is_some(),
        "nothing could be measured of {} on {}; interrupts may not be counted there",
        goal.aim.1,
        args.device
    );
    let (verified, all) = tuner.verify(args, &goal, &found.trials[found.best])?;
    let worse =
        verified.as_ref().and_then(|verified| verified.ratio).is_some_and(|ratio| ratio[0] > 1.0);
    let limits = Limits::of(&goal, &all);
    let is_wanted = limits.goal_met || args.best_effort;
    let applies = !args.dry_run && !worse && is_wanted && point != space.present;
    let took = if applies { tuner.settle(&point)? } else { Vec::new() };
    let outcome = Outcome {
        schema_version: SCHEMA,
        device: args.device.clone(),
        driver: device.driver(),
        workload: play.name(),
        goal: goal.to_string(),
        trials: rows,
        measurements: tuner.measurements,
        present: found.trials.iter().position(|trial| trial.point == space.present),
        pick: found.best,
        rivals: found.rivals.clone(),
        limits,
        price: Outcome::price_of(&space, &found, &before),
        before,
        verified,
        applied: applies,
        took,
        environment: Environment::read("host"),
    };
    let Tuner { transaction, progress, .. } = tuner;
    progress.finish();
    close(transaction, applies, args.confirm_within)?;
    tell(args, &outcome, worse)
}

/// Keeps what is in force, until it is confirmed or for good; or puts the device back.
fn close(transaction: Transaction<'_>, keeps: bool, confirm_within: Option<f64>) -> Result<()> {
    match (keeps, confirm_within) {
        (false, _) => transaction.undo(),
        (true, Some(seconds)) => transaction.keep_for(seconds),
        (true, None) => transaction.keep(),
    }
}

/// Searches as `args` say: few settings, or all of them.
fn find(
    args: &TuneArgs,
    space: &Space,
    goal: &Goal,
    measure: &mut search::Measure<'_>,
) -> Result<Found> {
    if let Some(rounds) = args.exhaustive {
        return search::exhaust(space, goal, rounds, measure);
    }
    let trials = (args.trials as usize).max(space.specials.len());
    let budget = Budget { trials, ..Budget::USUAL };
    // In virtual time a round with the same seed is the same round: one tells all.
    let exact = Budget { rounds: 1, finals: 0, ..budget };
    let budget = if args.world == Some(WorldKind::Virtual) { exact } else { budget };
    search::search(space, goal, budget, measure)
}

/// The same on a NIC of ours in a world of its own, of which nothing is left.
fn in_world(args: &TuneArgs, world: WorldKind, goal: &Goal) -> Result<ExitCode> {
    let ports = match args.device.as_str() {
        "a0" => Ports::A,
        "b0" => Ports::B,
        "both" => Ports::Both,
        other => bail!("our NIC has the ports a0 and b0 (and `both`), not {other}"),
    };
    let privilege = become_capable()?;
    let nic = NicOptions { ports: Some(ports), ..NicOptions::default() };
    let options = ExperimentOptions {
        duration: Some(args.duration),
        warmup: Some(args.warmup),
        clients: Some(args.clients.to_string().parse().map_err(|why| anyhow!("{why}"))?),
        rate: args.rate,
        bulk_rate: args.bulk_rate,
        ..ExperimentOptions::default()
    };
    let Text(present) = args.strategy;
    let seed = 1;
    let world = bench::compare::open(world, &nic, privilege)?;
    let stage = Stage::new(world, args.workload, options, present, seed);
    let (before, progress) = (stage.state(), Progress::new(args.json));
    let space = args.space(&before)?;
    let mut measurements = 0;
    let mut measure = |point: &Point| {
        let change = space.change(point);
        progress.start(1);
        progress.step(&change.to_string());
        measurements += 1;
        // The same seed in virtual time, so that settings alone make the difference.
        let round = if args.world == Some(WorldKind::Virtual) { 0 } else { measurements as u64 };
        stage.once(&change, round)
    };
    let found = find(args, &space, goal, &mut measure)?;
    progress.finish();
    let pick = &found.trials[found.best];
    ensure!(
        goal.aimed(&pick.mean()).is_some(),
        "{} is not measured in the {} world; take another goal",
        goal.aim.1,
        stage.environment().world
    );
    let limits = Limits::of(goal, &pick.mean());
    let outcome = Outcome {
        schema_version: SCHEMA,
        device: args.device.clone(),
        driver: format!("our NIC in the {} world", stage.environment().world),
        workload: args.workload.name(),
        goal: goal.to_string(),
        trials: Outcome::rows(&space, goal, &found, &[]),
        measurements,
        present: found.trials.iter().position(|trial| trial.point == space.present),
        pick: found.best,
        rivals: found.rivals.clone(),
        limits,
        price: Outcome::price_of(&space, &found, &before),
        before,
        verified: None,
        applied: false,
        took: Vec::new(),
        environment: stage.environment().clone(),
    };
    stage.finish()?;
    tell(args, &outcome, false)
}

impl Tuner<'_> {
    fn search(&mut self, args: &TuneArgs, goal: &Goal) -> Result<Found> {
        let space = self.space;
        find(args, space, goal, &mut |point: &Point| self.measure(point))
    }

    /// One trial. A setting that the device refuses has no figures.
    fn measure(&mut self, point: &Point) -> Result<Figures> {
        interrupted::check()?;
        let change = self.space.change(point);
        self.progress.start(1);
        self.progress.step(&change.to_string());
        if change.is_empty() {
            self.transaction.reset()?;
        } else if let Err(error) = self.transaction.set(&change) {
            self.refused.push((point.clone(), format!("{error:#}")));
            self.transaction.reset()?;
            return Ok(Figures::default());
        }
        self.measurements += 1;
        self.play.once(self.device, self.measurements as u64)
    }

    /// Measures the pick again, in turns with how the device was; and the figures of the pick of
    /// all its rounds, those of the search and these.
    fn verify(
        &mut self,
        args: &TuneArgs,
        goal: &Goal,
        pick: &Trial,
    ) -> Result<(Option<Verified>, Figures)> {
        let present = self.space.present.clone();
        if pick.point == present || args.exhaustive.is_some() {
            return Ok((None, pick.mean()));
        }
        let trial = |point: &Point| Trial { point: point.clone(), rounds: Vec::new() };
        let mut pair = [trial(&present), trial(&pick.point)];
        for round in 0..VERIFY {
            for trial in &mut pair {
                let figures = self.measure(&trial.point)?;
                trial.rounds.push((round, figures));
            }
        }
        let doubt = compare(&pair[1], &pair[0], goal);
        let verified = Verified::of(&pair[0], &pair[1], goal, doubt);
        let [_, mut all] = pair;
        all.rounds.extend(pick.rounds.iter().cloned());
        Ok((Some(verified), all.mean()))
    }

    /// Puts the pick into force; what the device took.
    fn settle(&mut self, pick: &Point) -> Result<Vec<Took>> {
        interrupted::check()?;
        let before: State = self.transaction.before().clone();
        let mut took = self.transaction.set(&self.space.change(pick))?;
        let mut was: BTreeMap<_, _> = before.0;
        took.iter_mut().for_each(|took| took.before = was.remove(&took.setting));
        if took.iter().all(|took| took.verdict == Verdict::Ignored && took.before != took.asked) {
            bail!("{} takes nothing of it", self.device.identity().name);
        }
        Ok(took)
    }
}

/// Says what was found; the exit status.
fn tell(args: &TuneArgs, outcome: &Outcome, worse: bool) -> Result<ExitCode> {
    let status =
        if outcome.limits.goal_met { ExitCode::SUCCESS } else { ExitCode::from(GOAL_MISSED) };
    if let Some(path) = &args.report {
        let page = report::render(&outcome.report()).context("draw the report")?;
        std::fs::write(path, page).with_context(|| format!("write {}", path.display()))?;
        errln!("report: {}", path.display());
    }
    if args.json {
        outln!("{}", serde_json::to_string_pretty(outcome)?);
        return Ok(status);
    }
    let width = Width::of_output();
    outln!("{}", outcome.table(width));
    outcome.story().iter().for_each(|line| outln!("{}", width.wrap(line)));
    outcome.took.iter().for_each(|took| outln!("{}: {}", outcome.device, took.words()));
    let lab = args.at.lab_flag();
    let name = &args.device;
    match (outcome.applied, args.confirm_within) {
        (true, Some(seconds)) => {
            outln!(
                "to keep it: earmark confirm {name}{lab}   (within {seconds} s, else it is undone)"
            );
        }
        (true, None) => {
            outln!("in force; way back: earmark rollback {name}{lab}");
            if lab.is_empty() {
                outln!("to keep it after a restart: earmark persist {name}");
            }
        }
        (false, _) if worse => {
            outln!("measured again, it is worse than before: {name} is as it was");
        }
        (false, _) if args.world.is_some() => {}
        (false, _) if outcome.limits.goal_met || outcome.present == Some(outcome.pick) => {
            outln!("{name} is as it was");
        }
        (false, _) => {
            outln!("{name} is as it was; --best-effort puts the nearest into force all the same");
        }
    }
    Ok(status)
}

//! `earmark tune`: the settings of a device that suit a workload.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail, ensure};
use base::quantity::Unit;
use clap::Args;
use nic::moderation::Moderation;

use super::apply::{DeviceArgs, to_confirm};
use bench::options::{
    Clients, ExperimentOptions, NicOptions, Ports, Text, duration, seconds, whole,
};
use bench::world::WorldKind;
use report::progress::Progress;
use report::terminal::Width;
use report::{errln, json, outln, output};
use sys::{ctrl_c, files};
use tune::Expectation;
use tune::Locator;
use tune::Metric;
use tune::Play;
use tune::Recommendation;
use tune::Request;
use tune::TunedWorld;
use tune::Workload;
use tune::device::{TunedDevice, is_unpolled};
use tune::lone;
use tune::peer::CodeArgs;
use tune::threads;
use tune::transaction::check;
use tune::{Budget, Method, Space};
use tune::{Change, Knob, Setting, State};
use tune::{Goal, Sense};

/// The exit status if no setting meets the limits of the goal. docs/tune.md promises it.
const GOAL_MISSED: u8 = 3;

#[derive(Args, Debug)]
pub(crate) struct TuneArgs {
    /// The device, such as eth0; with --world, the port or ports of our NIC: a0, b0 or both
    #[arg(value_name = "DEV")]
    pub(crate) device: String,
    /// What you want: "p99 < 200us", "min cpu, p99 < 150us", "max throughput"
    ///
    /// Also "min latency, cpu < 30%", for example. Numbers alone are us, cores, Mbit/s or times a
    /// second.
    #[arg(long, value_name = "GOAL", required_unless_present = "command")]
    pub(crate) goal: Option<String>,
    /// The far host, on which `earmark serve` runs
    #[arg(long, value_name = "HOST", required_unless_present_any = ["command", "world"])]
    pub(crate) peer: Option<String>,
    #[command(flatten)]
    pub(crate) code: CodeArgs,
    /// Try it on a NIC of ours between two hosts of ours instead, live or in virtual time
    #[arg(long, value_enum, conflicts_with_all = ["peer", "command", "confirm_within", "lab"])]
    pub(crate) world: Option<WorldKind>,
    /// With --world, how our NIC is at first
    #[arg(long, value_name = "SETTING", requires = "world", default_value = "delay:75")]
    pub(crate) strategy: Text<Moderation>,
    /// What the device is tuned for
    #[arg(long, value_enum, default_value = "tcp-rr")]
    pub(crate) workload: Workload,
    /// A command of yours instead, and a number that it prints
    ///
    /// That of netperf, sockperf, ping, iperf3, wrk, memtier_benchmark, fio or redis-benchmark, one
    /// alone on its line, or --metric.
    #[arg(long, value_name = "CMD", conflicts_with_all = ["peer", "workload", "goal"])]
    pub(crate) command: Option<String>,
    /// Which number of your command counts: a regular expression with a group for it, as in
    /// 'p99: ([0-9.]+)', or a path of fields and indices into JSON: `.jobs[0].read.lat_ns.mean`
    #[arg(long, value_name = "REGEX|PATH", requires = "command")]
    pub(crate) metric: Option<Locator>,
    /// The number of your command is better when it is larger
    #[arg(long, requires = "command")]
    pub(crate) higher_is_better: bool,
    /// Connections that ask at once
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) clients: u32,
    /// Requests a second, whatever the answers do
    #[arg(long, value_name = "PER_SECOND", value_parser = whole::<u32>(Unit::PerSecond, 1..=1_000_000))]
    pub(crate) rate: Option<u32>,
    /// Mbit/s of a bulk flow
    #[arg(long, value_name = "MBIT", value_parser = whole::<u32>(Unit::Mbit, 1..=u32::MAX.into()))]
    pub(crate) bulk_rate: Option<u32>,
    /// Seconds of one measurement
    #[arg(long, default_value_t = 1.0, value_name = "SECONDS", value_parser = duration)]
    pub(crate) duration: f64,
    /// Seconds before each that do not count
    #[arg(long, default_value_t = 0.2, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) warmup: f64,
    /// The longest rx-usecs (or deferral) to try
    #[arg(long, default_value_t = 512, value_name = "USECS")]
    #[arg(value_parser = whole::<u64>(Unit::Micros, 1..=100_000))]
    pub(crate) max_usecs: u64,
    /// Try busy polling, too, which is a setting of the whole machine
    #[arg(long, conflicts_with = "world")]
    pub(crate) busy_poll: bool,
    /// Try IRQ suspension, too: --command has to run a server that prefers busy polling where
    /// EARMARK_PREFER_BUSY_POLL is 1, such as any with libearmark-poll.so preloaded
    #[arg(long, requires = "command", conflicts_with = "busy_poll")]
    pub(crate) suspend: bool,
    /// Try these values of a setting, too, which may be of a queue or any number of the network:
    /// queue:1:rx-usecs=0,8 or sysctl:net.core.netdev_budget=150,600
    #[arg(long, value_name = "NAME=VALUE,...", conflicts_with = "world")]
    pub(crate) knob: Vec<Text<Knob>>,
    /// Settings to try at most; without it 10, or 12 on a device that has much to set
    #[arg(long, value_parser = clap::value_parser!(u32).range(3..=1_000))]
    pub(crate) trials: Option<u32>,
    /// Try this setting, others named like this, and how the device is, instead of searching;
    /// such as "rx-usecs 50 rx-frames 32"
    #[arg(long, value_name = "SETTING", conflicts_with_all = ["max_usecs", "busy_poll", "suspend", "knob", "trials"])]
    pub(crate) among: Vec<Text<Change>>,
    /// Try this setting before others, too, and others named like this, such as those of `predict`
    #[arg(long, value_name = "SETTING", conflicts_with = "among")]
    pub(crate) first: Vec<Text<Change>>,
    /// Try every setting, in turns, so many times; it takes long
    #[arg(long, value_name = "ROUNDS", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) exhaustive: Option<u32>,
    /// Let the model of this machine say where to begin: a file of `earmark calibrate --machine`,
    /// or a machine as `bench --machine` takes it
    #[arg(long, value_name = "FILE|NAME", conflicts_with = "command")]
    pub(crate) machine: Option<String>,
    /// Find out, and leave the device as it is
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Put the pick into force even if it does not meet the goal, as long as it comes nearer to it
    /// than how the device is; the exit status is 3 all the same
    #[arg(long, conflicts_with_all = ["dry_run", "world"])]
    pub(crate) best_effort: bool,
    /// Undo the pick after so many seconds unless `earmark confirm` comes before
    #[arg(long, value_name = "SECONDS", value_parser = duration, conflicts_with = "dry_run")]
    pub(crate) confirm_within: Option<f64>,
    /// Write a page with table and picture
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) at: DeviceArgs,
}

impl TuneArgs {
    /// The goal that the user has named; that of a command depends on what it prints.
    fn goal(&self) -> Result<Option<Goal>> {
        let Some(text) = &self.goal else { return Ok(None) };
        let goal: Goal = text.parse().map_err(|why| anyhow!("--goal: {why}"))?;
        for metric in goal.metrics() {
            let workload = self.workload;
            let has = match metric {
                Metric::Throughput => workload.has_throughput(),
                Metric::Cpu | Metric::Interrupts => true,
                Metric::Value | Metric::Polled => false,
                _ => workload.has_latency(),
            };
            ensure!(
                has,
                "--goal: {metric} is not measured by {}; take another goal",
                workload.name()
            );
        }
        self.check_rates(&goal)?;
        Ok(Some(goal))
    }

    /// Refuses to look for more than is offered.
    fn check_rates(&self, goal: &Goal) -> Result<()> {
        for limit in goal.limits.iter().filter(|limit| limit.direction == Sense::Max) {
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
                limit.metric.with_unit(offered.unwrap_or_default())
            );
        }
        Ok(())
    }

    /// The settings to try on a device that is like this.
    fn space(&self, before: &State, single_frame: bool) -> Result<Space> {
        if self.among.is_empty() {
            let of = if single_frame { Space::with_single_frame } else { Space::of };
            let mut space = of(before, self.max_usecs);
            if self.busy_poll {
                space =
                    space.with_busy_polling(before).map_err(|why| anyhow!("--busy-poll: {why}"))?;
            }
            for Text(Knob { setting, values }) in &self.knob {
                let wider = space.with_knob(before, *setting, values);
                space = wider.map_err(|why| anyhow!("--knob: {why}"))?;
            }
            if self.suspend {
                space = space.with_suspension(before).map_err(|why| anyhow!("--suspend: {why}"))?;
            }
            let first: Vec<Change> = self.first.iter().map(|Text(change)| change.clone()).collect();
            return Ok(space.with_first(before, &first));
        }
        let named: Vec<Change> = self.among.iter().map(|Text(change)| change.clone()).collect();
        Ok(Space::among(&named))
    }

    /// How the device is, as far as it may be changed.
    fn before(&self, device: &dyn TunedDevice) -> Result<State> {
        let knobs = self.knob.iter().map(|Text(knob)| knob.setting);
        let mut named: Vec<Setting> = knobs.collect();
        let state = device.read_with(&named).context("--knob")?;
        if let Some(setting) = named.iter().find(|setting| state.get(**setting).is_none()) {
            bail!("--knob: {} ({}) has no {setting}", self.device, device.driver());
        }
        if !self.busy_poll && !self.suspend {
            return Ok(state);
        }
        // Not every device or kernel can suspend its interrupts.
        named.push(Setting::IrqSuspendTimeout);
        Ok(device.read_with(&named).unwrap_or(state))
    }

    /// How settings are chosen for trials.
    fn method(&self, space: &Space) -> Method {
        if let Some(rounds) = self.exhaustive {
            return Method::Exhaustive(rounds);
        }
        let trials = self.trials.map_or(space.usual_trials(), |trials| trials as usize);
        let budget = Budget { trials, ..Budget::USUAL };
        Method::Guided(match self.world {
            // In virtual time a round with the same seed is the same round: one is enough.
            Some(WorldKind::Virtual) => Budget { rounds: 1, finals: 0, ..budget },
            _ => budget,
        })
    }

    fn request<'a>(
        &'a self,
        space: &'a Space,
        goal: &'a Goal,
        expectation: Option<&'a Expectation>,
    ) -> Request<'a> {
        Request {
            device: &self.device,
            space,
            goal,
            method: self.method(space),
            expectation,
            dry_run: self.dry_run,
            best_effort: self.best_effort,
            confirm_within: self.confirm_within,
        }
    }

    /// What a model lets expect, made by `of` a machine, if one is named.
    fn expectation(
        &self,
        of: impl FnOnce(&str) -> Result<Option<Expectation>>,
    ) -> Result<Option<Expectation>> {
        let Some(machine) = &self.machine else { return Ok(None) };
        let expectation = of(machine)?;
        if expectation.is_none() {
            errln!(
                "--machine: the model cannot say what bulk TCP of {} does; trials are in the usual \
                 order",
                self.workload.name()
            );
        }
        Ok(expectation)
    }

    fn options(&self) -> ExperimentOptions {
        ExperimentOptions {
            duration: Some(self.duration),
            warmup: Some(self.warmup),
            rate: self.rate,
            bulk_rate: self.bulk_rate,
            ..ExperimentOptions::default()
        }
    }

    fn play(&self) -> Result<Play> {
        if let Some(command) = &self.command {
            let better = self.higher_is_better.then_some(Sense::Max);
            return Play::of_command(command, self.metric.as_ref(), better);
        }
        let peer = self.peer.as_deref().context("name the far host with --peer")?;
        Play::with_peer(self.workload, peer, self.code.code()?, self.options(), self.clients)
    }
}

/// Finds the settings that meet the goal best, and puts them into force if they meet it. The exit
/// status says whether they do.
pub(crate) fn run(args: &TuneArgs) -> Result<ExitCode> {
    let goal = args.goal()?;
    let recommendation = match args.world {
        Some(world) => in_world(args, world, &goal.context("name the goal with --goal")?),
        None => on_device(args, goal),
    }?;
    print(args, &recommendation)
}

fn on_device(args: &TuneArgs, goal: Option<Goal>) -> Result<Recommendation> {
    args.at.may_change(&args.device)?;
    if args.peer.is_some() {
        args.code.code()?;
    }
    let (store, device) = args.at.open(&args.device)?;
    let device = device.as_ref();
    let before = args.before(device)?;
    // A lone request of the workload would get no answer.
    let now = before.only(|setting| setting == Setting::RxUsecs);
    lone::check(device, &Change(now.0.into_iter().collect()))?;
    let before = tunable(device, before);
    let space = args.space(&before, lone::may_wait(device, &before))?;
    for (option, changes) in [("--among", &args.among), ("--first", &args.first)] {
        for Text(change) in changes {
            check(device, change).with_context(|| format!("{option} '{change}'"))?;
        }
    }
    let knobs = args.knob.iter().flat_map(|Text(knob)| {
        knob.values.iter().map(|value| Change(vec![(knob.setting, value.clone())]))
    });
    let named = args.among.iter().chain(&args.first).map(|Text(change)| change.clone());
    for change in named.chain(knobs) {
        if let Some(wait) = lone::check(device, &change)? {
            bail!("'{change}' is not tried: {wait}");
        }
    }
    ensure!(
        !space.axes.is_empty() || !args.among.is_empty(),
        "{} ({}) has nothing to tune: no rx-usecs, no rx-frames, no NAPI that could defer interrupts",
        args.device,
        device.driver()
    );
    ctrl_c::watch().context("take signals")?;
    let play = args.play()?;
    let goal = match play.measurand() {
        Some(measurand) => {
            errln!("{}", measurand.in_words());
            Goal::of_command(measurand.better)
        }
        None => goal.context("name the goal with --goal")?,
    };
    let progress = Progress::new(args.json);
    let mut step = |change: &Change| {
        progress.start(1);
        progress.step(&change.to_string());
    };
    let expectation = args.expectation(|machine| {
        Expectation::of_device(machine, args.workload, &args.options(), args.clients, &before)
    })?;
    let request = args.request(&space, &goal, expectation.as_ref());
    let recommendation = tune::tune_device(&request, device, &store, &play, &mut step);
    progress.finish();
    recommendation
}

/// What of a device's state a search may change to some end: nothing is deferred where no NAPI
/// instance polls, and no thread polls where it could keep its processor.
fn tunable(device: &dyn TunedDevice, state: State) -> State {
    let state = if threads::may_poll() {
        state
    } else {
        state.only(|setting| setting != Setting::Threaded)
    };
    if !is_unpolled(&device.identity().name) {
        return state;
    }
    let of_polls = [Setting::GroFlushTimeout, Setting::NapiDeferHardIrqs, Setting::Threaded];
    state.only(|setting| !of_polls.contains(&setting))
}

/// The same on a NIC of ours in a world of its own, of which nothing is left.
fn in_world(args: &TuneArgs, world: WorldKind, goal: &Goal) -> Result<Recommendation> {
    let ports = match args.device.as_str() {
        "a0" => Ports::A,
        "b0" => Ports::B,
        "both" => Ports::Both,
        other => bail!("our NIC has the ports a0 and b0 (and `both`), not {other}"),
    };
    let privilege = worlds::privilege([world])?;
    let nic = NicOptions { ports: Some(ports), ..NicOptions::default() };
    // As many as `bench` has.
    let _: Clients = args.clients.to_string().parse().map_err(|why| anyhow!("{why}"))?;
    let world = worlds::open(world, &nic, privilege)?;
    let Text(present) = args.strategy;
    let world = TunedWorld::new(world, args.workload, args.options(), args.clients, present);
    let space = args.space(&world.state(), false)?;
    let progress = Progress::new(args.json);
    let mut step = |change: &Change| {
        progress.start(1);
        progress.step(&change.to_string());
    };
    let expectation = args.expectation(|machine| {
        let (options, nic) = (args.options(), (ports, present));
        Expectation::new(machine, args.workload, &options, args.clients, nic, &world.state())
    })?;
    let request = args.request(&space, goal, expectation.as_ref());
    let recommendation = tune::tune_world(&request, world, &mut step);
    progress.finish();
    recommendation
}

fn write_page(path: &Path, found: &Recommendation) -> Result<()> {
    let page = report::render(&found.report()).context("draw the report")?;
    files::write(path, page.as_bytes()).with_context(|| format!("write {}", path.display()))?;
    errln!("report: {}", path.display());
    Ok(())
}

/// Prints what was found; the exit status.
fn print(args: &TuneArgs, found: &Recommendation) -> Result<ExitCode> {
    let status =
        if found.limits.goal_met { ExitCode::SUCCESS } else { ExitCode::from(GOAL_MISSED) };
    match args.report.as_deref().map_or(Ok(()), |path| write_page(path, found)) {
        Err(why) if found.applied => output::unreported(&output::message(&why)),
        written => written?,
    }
    if args.json {
        json::print(found)?;
        return Ok(status);
    }
    let width = Width::of_output();
    outln!("{}", found.table(width));
    found.sentences().iter().for_each(|line| outln!("{}", width.wrap(line)));
    found.took.iter().for_each(|took| outln!("{}: {}", found.subject.device, took.describe()));
    let flags = args.at.flags();
    let name = &args.device;
    match (found.applied, args.confirm_within) {
        (true, Some(seconds)) => to_confirm(name, &flags, seconds),
        (true, None) => {
            outln!("in force; way back: earmark rollback {name}{flags}");
            if args.at.lab.is_none() {
                outln!("to keep it after a restart: earmark persist {name}");
            }
        }
        (false, _) if found.is_worse() => {
            outln!("measured again, it is worse than before: {name} is as it was");
        }
        (false, _) if args.world.is_some() => {}
        (false, _) if found.limits.goal_met || found.present == Some(found.pick) => {
            outln!("{name} is as it was");
        }
        (false, _) => {
            outln!("{name} is as it was; --best-effort puts the nearest into force all the same");
        }
    }
    Ok(status)
}

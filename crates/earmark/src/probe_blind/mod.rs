//! The blind test: a NIC with a secret setting, in a model, or between hosts of ours in real or in
//! virtual time.
//!
//! On hosts, a prober in host a asks `earmark echo` on host b. It gets a socket and nothing else;
//! the case goes to the NIC and to [`Score`] only.

pub(crate) mod bulk;
mod virtual_case;

use std::collections::BTreeMap;
use std::fs::create_dir;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use blind::{Case, Decoy, Score, Table};
use infer::MeasuredTrain;
use lab::machine::Machine;
use lab::station::ipv4;
use lab::wait::Waiting;
use serde::{Deserialize, Serialize};
use sys::privilege::become_capable;

use crate::command::merge::{Merging, print_shard};
use bench::environment::{Environment, VIRTUAL};
use bench::options::{NicOptions, Ports, Text};
use bench::shard::{Shard, ShardArgs};
use bench::world::World;
use probe::prober::{EchoKind, Prober};
use probe::recording::{self, Origin};
use probe::run::{self, Limits};
use report::{errln, json, outln};
use worlds::live::Live;
use worlds::sweep::{Merged, Results};

/// Addresses of hosts a and b.
const NEAR: Ipv4Addr = ipv4(1);
const FAR: Ipv4Addr = ipv4(2);

/// How long an echo gets to bind its port.
const HEAD_START: Duration = Duration::from_millis(150);

/// No test has more cases.
const MOST_CASES: u64 = 10_000_000;

/// Where cases are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum BlindWorld {
    /// The `nic` crate in made-up time
    Model,
    /// The same with an obstacle in each case
    Hindered,
    /// Namespaces, real time
    Live,
    /// Guests, virtual time
    Virtual,
}

#[derive(clap::Args, Debug)]
pub(crate) struct BlindArgs {
    /// Where cases are played
    #[arg(long, value_enum, default_value_t = BlindWorld::Live)]
    world: BlindWorld,
    /// How many cases
    #[arg(long, default_value_t = 40)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=MOST_CASES))]
    cases: u64,
    /// The seed of the first one; the others follow
    #[arg(long, default_value_t = 9_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=u64::MAX / 2))]
    first_seed: u64,
    /// Keep what each case heard, as `SEED.jsonl` in a new folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "shard")]
    record: Option<PathBuf>,
    /// Judge the cases that such a folder has, and play none
    #[arg(long, value_name = "FOLDER", conflicts_with = "record")]
    replay: Option<PathBuf>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    shard: ShardArgs,
}

impl BlindWorld {
    /// What is near enough: a share, or microseconds.
    const fn near(self) -> (f64, f64) {
        match self {
            Self::Live => (0.05, 5.0),
            Self::Model | Self::Hindered | Self::Virtual => (0.01, 1.0),
        }
    }
}

#[derive(Serialize)]
struct BlindResults {
    first_seed: u64,
    cases: u64,
    /// Of the machine that played hosts; nothing where cases were read, or a model played.
    environment: Option<Environment>,
    table: Table,
    scores: Vec<Score>,
}

/// What a process has scored: a shard's results.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scored {
    environment: Option<Environment>,
    scores: Vec<Score>,
}

impl Results for Scored {
    fn repeats(&self, other: &Self) -> bool {
        self.scores == other.scores && self.difference(other).is_none()
    }
}

impl Scored {
    fn difference(&self, other: &Self) -> Option<String> {
        self.environment.as_ref()?.difference(other.environment.as_ref()?)
    }

    fn sum_up(self, args: &BlindArgs) -> BlindResults {
        let Self { environment, scores } = self;
        let table = Table::of(&scores, args.world.near());
        let BlindArgs { cases, first_seed, .. } = *args;
        BlindResults { first_seed, cases, environment, table, scores }
    }
}

/// Plays the cases, or reads what they heard, and prints the score.
pub(crate) fn run(args: &BlindArgs) -> Result<()> {
    if let Some(folder) = &args.record {
        create_dir(folder).with_context(|| format!("create folder {}", folder.display()))?;
    }
    let scored = scored(args, args.shard.shard.unwrap_or(Shard::WHOLE))?;
    if let Some(shard) = args.shard.shard {
        return print_shard(shard, BTreeMap::new(), args.cases, &scored);
    }
    let outcome = scored.sum_up(args);
    if args.json {
        json::print(&outcome)?;
    } else {
        outln!("{}", outcome.table);
    }
    Ok(())
}

/// Makes one score of those that the shards of `of` have.
pub(crate) fn merge(of: &BlindArgs, merging: &Merging<'_>) -> Result<()> {
    let merged: Merged<Scored> = merging.results()?;
    let mut all = Scored { environment: None, scores: Vec::new() };
    for (shard, scored) in merged.shards {
        let mut seeds: Vec<u64> = scored.scores.iter().map(|score| score.seed).collect();
        seeds.dedup();
        ensure!(
            seeds == of.seeds(shard),
            "shard {shard} has scores that do not match its cases; run it again"
        );
        if let Some(what) = all.difference(&scored) {
            bail!("shards were run in different worlds: {what}");
        }
        all.environment = all.environment.or(scored.environment);
        all.scores.extend(scored.scores);
    }
    // Those of a case are beside each other, in their order.
    all.scores.sort_by_key(|score| score.seed);
    let outcome = all.sum_up(of);
    merging.finish(&outcome, merged.partial.as_ref(), || outln!("{}", outcome.table))
}

impl BlindArgs {
    /// The seeds of the cases that `shard` has.
    fn seeds(&self, shard: Shard) -> Vec<u64> {
        shard.cases(self.cases).map(|case| self.first_seed + case).collect()
    }
}

fn scored(args: &BlindArgs, shard: Shard) -> Result<Scored> {
    let seeds = args.seeds(shard);
    let live = match args.world {
        BlindWorld::Live if args.replay.is_none() => Some(start()?),
        _ => None,
    };
    let all =
        |hear: &(dyn Fn(&Case) -> Result<Vec<MeasuredTrain>> + Sync)| -> Result<Vec<Vec<Score>>> {
            blind::each(&seeds, |seed| score(args, seed, hear)).into_iter().collect()
        };
    let scores: Result<Vec<_>> = match (&live, &args.replay, args.world) {
        // Real time is not to be shared.
        (Some(live), ..) => {
            seeds.iter().map(|seed| score(args, *seed, |case| play(live, case))).collect()
        }
        (None, Some(folder), _) => {
            all(&|case| Ok(recording::read(&recorded(folder, case.seed()))?.1))
        }
        (None, None, BlindWorld::Model | BlindWorld::Hindered) => {
            all(&|case| Ok(blind::hear(case)))
        }
        (None, None, _) => all(&virtual_case::play),
    };
    let scores = scores?.concat();
    let environment = match (live, args.world) {
        (Some(live), _) => {
            let environment = live.environment().clone();
            live.finish()?;
            Some(environment)
        }
        (None, BlindWorld::Virtual) if args.replay.is_none() => {
            Some(worlds::environment::read(VIRTUAL))
        }
        _ => None,
    };
    Ok(Scored { environment, scores })
}

/// Draws the case of a seed, and scores what is made of what `hear` hears of it.
fn score(
    args: &BlindArgs,
    seed: u64,
    hear: impl Fn(&Case) -> Result<Vec<MeasuredTrain>>,
) -> Result<Vec<Score>> {
    let case = match args.world {
        BlindWorld::Model => Case::draw(seed),
        BlindWorld::Hindered => Case::draw_hindered(seed),
        BlindWorld::Live => Case::draw_live(seed),
        BlindWorld::Virtual => Case::draw_virtual(seed),
    };
    let heard = hear(&case).with_context(|| format!("play case {seed}"))?;
    if let Some(folder) = &args.record {
        let origin = Origin::new(FAR.to_string(), EchoKind::Udp);
        recording::write(&recorded(folder, seed), &origin, &heard)?;
    }
    let scores = Score::of(&case, &infer::judge(&heard));
    for score in scores.iter().filter(|score| !score.right) {
        errln!("{}", serde_json::to_string(score)?);
    }
    Ok(scores)
}

fn start() -> Result<Live> {
    let privilege = become_capable()?;
    let options = NicOptions { wait: Some(Text(Waiting::Precise)), ..NicOptions::default() };
    Live::start(2, &options, privilege)
}

fn recorded(folder: &Path, seed: u64) -> PathBuf {
    folder.join(format!("{seed}.jsonl"))
}

/// Programs that run beside a probe; they end with it.
struct Beside(Vec<Child>);

impl Drop for Beside {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended by itself needs no killing.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn play(live: &Live, case: &Case) -> Result<Vec<MeasuredTrain>> {
    let (theirs, mine) = case.holds();
    live.set_ports(Ports::A, mine.setting)?;
    live.set_ports(Ports::B, theirs.setting)?;
    let [a, b] = [0, 1].map(|host| live.machines()[host].as_ref());
    let mut beside = Beside(Vec::new());
    let mut start = |machine: &dyn Machine, program: &std::ffi::OsStr, words: &[String]| {
        let mut command = machine.command(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        machine.spawn(&mut command).map(|child| beside.0.push(child))
    };
    let earmark = std::env::current_exe().context("find the earmark program itself")?;
    if let Some(Decoy::BusyCore { .. }) = case.decoy() {
        start(b, "sh".as_ref(), &["-c".to_owned(), "while :; do :; done".to_owned()])?;
    }
    start(b, earmark.as_os_str(), &virtual_case::echo_words(case))?;
    if let Some(words) = bulk::words(case, FAR) {
        start(a, earmark.as_os_str(), &words)?;
    }
    sleep(HEAD_START);
    let host = a.host().context("host a is a namespace")?;
    host.enter_net(|| -> Result<_> {
        let mut prober = Prober::find(&FAR.to_string(), Some(EchoKind::Udp), None)?;
        let mut plan = run::plan(&prober, Limits::default());
        run::run(&mut prober, &mut plan)?;
        Ok(plan.heard().to_vec())
    })?
}

//! The blind test on hosts of ours: a NIC with a secret setting, in real time, or in virtual time.
//!
//! A prober in host a asks `earmark echo` on host b. It gets a socket and nothing else; the case
//! goes to the NIC and to [`Score`] only.

mod addresses;
pub mod bulk;
mod virtual_case;

use std::fs::create_dir;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use blind::{Case, Decoy, Score, Table};
use infer::Heard;
use lab::machine::Machine;
use lab::wait::Waiting;
use serde::Serialize;
use sys::privilege::become_capable;

use addresses::FAR;
use bench::environment::{Environment, VIRTUAL};
use bench::options::{NicOptions, Ports, Text};
use bench::world::World;
use bench::world::live::Live;
use probe::prober::{EchoKind, Prober};
use probe::recording::{self, Origin};
use probe::run::{self, Limits};
use report::{errln, outln};

/// How long an echo gets to bind its port.
const HEAD_START: Duration = Duration::from_millis(150);

/// Where cases are played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum BlindWorld {
    /// Namespaces, real time
    Live,
    /// Guests, virtual time
    Virtual,
}

/// What `earmark probe-blind` takes.
#[derive(clap::Args, Debug)]
pub struct BlindArgs {
    /// Where
    #[arg(long, value_enum, default_value_t = BlindWorld::Live)]
    world: BlindWorld,
    /// How many cases
    #[arg(long, default_value_t = 40)]
    cases: u64,
    /// The seed of the first one; the others follow
    #[arg(long, default_value_t = 9_000)]
    first_seed: u64,
    /// Keep what each case heard, as `SEED.jsonl` in a new folder
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// Judge the cases that such a folder has, and play none
    #[arg(long, value_name = "FOLDER", conflicts_with = "record")]
    replay: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl BlindWorld {
    /// What is near enough: a share, or microseconds.
    const fn near(self) -> (f64, f64) {
        match self {
            Self::Live => (0.05, 5.0),
            Self::Virtual => (0.01, 1.0),
        }
    }
}

#[derive(Serialize)]
struct BlindResults {
    first_seed: u64,
    cases: u64,
    /// Of the machine that played; nothing where cases were read.
    environment: Option<Environment>,
    table: Table,
    scores: Vec<Score>,
}

/// Plays the cases, or reads what they heard, and prints the score.
///
/// # Errors
/// If hosts cannot be had, an echo does not answer, or a file cannot be read or written.
pub fn run(args: &BlindArgs) -> Result<()> {
    if let Some(folder) = &args.record {
        create_dir(folder).with_context(|| format!("create folder {}", folder.display()))?;
    }
    let seeds = args.first_seed..args.first_seed + args.cases;
    let live = match args.world {
        BlindWorld::Live if args.replay.is_none() => Some(start()?),
        _ => None,
    };
    let scores: Result<Vec<_>> = match (&live, &args.replay) {
        // Real time is not to be shared.
        (Some(live), _) => seeds.map(|seed| score(args, seed, |case| play(live, case))).collect(),
        (None, Some(folder)) => {
            let read = |case: &Case| Ok(recording::read(&recorded(folder, case.seed()))?.1);
            blind::each(seeds, |seed| score(args, seed, read)).into_iter().collect()
        }
        (None, None) => {
            blind::each(seeds, |seed| score(args, seed, virtual_case::play)).into_iter().collect()
        }
    };
    let scores = scores?.concat();
    let environment = match (live, args.world) {
        (Some(live), _) => {
            let environment = live.environment().clone();
            live.finish()?;
            Some(environment)
        }
        (None, BlindWorld::Virtual) if args.replay.is_none() => Some(Environment::read(VIRTUAL)),
        _ => None,
    };
    let table = Table::of(&scores, args.world.near());
    if args.json {
        let BlindArgs { cases, first_seed, .. } = *args;
        let outcome = BlindResults { first_seed, cases, environment, table, scores };
        outln!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        outln!("{table}");
    }
    Ok(())
}

/// Draws the case of a seed, and scores what is made of what `hear` hears of it.
fn score(
    args: &BlindArgs,
    seed: u64,
    hear: impl Fn(&Case) -> Result<Vec<Heard>>,
) -> Result<Vec<Score>> {
    let case = match args.world {
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

fn play(live: &Live, case: &Case) -> Result<Vec<Heard>> {
    let (theirs, mine) = case.settings();
    live.set_ports(Ports::A, mine)?;
    live.set_ports(Ports::B, theirs)?;
    let [a, b] = [0, 1].map(|host| live.machines()[host].as_ref());
    let mut beside = Beside(Vec::new());
    let mut start = |machine: &dyn Machine, program: &std::ffi::OsStr, words: &[String]| {
        let mut command = machine.command(program);
        command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        machine.spawn(&mut command).map(|child| beside.0.push(child))
    };
    let earmark = std::env::current_exe().context("find the earmark program itself")?;
    let mut words = vec!["echo".to_owned()];
    match case.decoy() {
        Some(Decoy::SlowServer { takes }) => {
            words.extend(["--work-us".to_owned(), format!("{takes:.0}")]);
        }
        Some(Decoy::BusyCore { .. }) => {
            start(b, "sh".as_ref(), &["-c".to_owned(), "while :; do :; done".to_owned()])?;
        }
        _ => {}
    }
    start(b, earmark.as_os_str(), &words)?;
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

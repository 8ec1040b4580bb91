//! The blind test in the live world: hosts of ours, a NIC with a secret setting, real time.
//!
//! A prober in host a asks `earmark echo` on host b. It gets a socket and nothing else; the case
//! goes to the NIC and to [`Score`] only.

use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result};
use blind::{Case, Decoy, Score, Table};
use linux::machine::Machine;
use linux::privilege::become_capable;
use linux::wait::Waiting;
use serde::Serialize;

use super::kind::{Asker, Kind};
use super::run::{self, Limits};
use crate::environment::Environment;
use crate::options::{NicOptions, Ports, Text};
use crate::say::{note, say};
use crate::world::live::Live;

/// What is near enough in the live world: a share, or microseconds.
const NEAR: (f64, f64) = (0.05, 5.0);

/// How long an echo gets to bind its port.
const HEAD_START: Duration = Duration::from_millis(150);

/// What `earmark probe-blind` takes.
#[derive(clap::Args, Debug)]
pub struct BlindArgs {
    /// How many cases
    #[arg(long, default_value_t = 40)]
    cases: u64,
    /// The seed of the first one; the others follow
    #[arg(long, default_value_t = 9_000)]
    first_seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Outcome {
    first_seed: u64,
    cases: u64,
    environment: Environment,
    table: Table,
    scores: Vec<Score>,
}

/// Plays the cases and prints the score.
///
/// # Errors
/// If hosts cannot be had, or an echo does not answer.
pub fn run(args: &BlindArgs) -> Result<()> {
    let privilege = become_capable()?;
    let options = NicOptions { wait: Some(Text(Waiting::Precise)), ..NicOptions::default() };
    let live = Live::start(2, &options, privilege)?;
    let mut scores = Vec::new();
    for seed in args.first_seed..args.first_seed + args.cases {
        let case = Case::draw_live(seed);
        let new = play(&live, &case).with_context(|| format!("play case {seed}"))?;
        for score in new.iter().filter(|score| !score.right) {
            note!("{}", serde_json::to_string(score)?);
        }
        scores.extend(new);
    }
    let table = Table::of(&scores, NEAR);
    if args.json {
        use crate::world::World;
        let environment = live.environment().clone();
        let BlindArgs { cases, first_seed, .. } = *args;
        let outcome = Outcome { first_seed, cases, environment, table, scores };
        say!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        say!("{table}");
    }
    live.finish()
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

fn play(live: &Live, case: &Case) -> Result<Vec<Score>> {
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
    if case.bulk() > 0.0 {
        let gap = format!("{:.4}", 1.0 / case.bulk());
        start(a, "ping".as_ref(), &["-q", "-i", &gap, "b"].map(str::to_owned))?;
    }
    sleep(HEAD_START);
    let host = a.host().context("host a is a namespace")?;
    let heard = host.enter_net(|| -> Result<_> {
        let mut asker = Asker::find("10.9.0.2", Some(Kind::Udp), None)?;
        let mut plan = run::plan(&asker, Limits::default());
        run::run(&mut asker, &mut plan, |_| {})?;
        Ok(plan.heard().to_vec())
    })??;
    Ok(Score::of(case, &infer::judge(&heard)))
}

//! `earmark mpirun`: an unmodified MPI program on hosts of ours, over our NIC.
//!
//! The MPI's own launcher runs on host a and starts its helpers on the others through a remote
//! shell of ours (`shell.rs`). Each rank gets its environment from a script on its host
//! (`rank_setup.rs`), so that all launchers work the same way.

mod launcher;
mod rank_setup;
mod results;
pub(crate) mod shell;
mod variables;

use std::ffi::OsString;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::Args;
use lab::host::Host;
use lab::station::{IPV4_PREFIX, Station};
use lab::{MAX_HOSTS, names};
use nic::moderation::Moderation;

use crate::command::code;
use crate::command::lab::{lab, outlive_sigint, wait};
use bench::applicability::{HostKind, Use};
use bench::experiment::USUAL_SETTING;
use bench::options::{Hosts, NicOptions, Text};
use bench::world::World;
use launcher::{Launcher, Mpi, require_program};
use report::terminal::Width;
use report::{errln, json};
use results::{MpiResults, SettingRuns};
use sys::files::{self, writable};
use variables::Net;
use worlds::live::Live;
use worlds::setup;

#[derive(Args, Debug)]
pub(crate) struct MpirunArgs {
    /// How many ranks, spread over the hosts
    #[arg(short = 'n', long, default_value_t = 2, value_name = "RANKS")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) ranks: u16,
    /// How many hosts
    #[arg(short = 'N', long, default_value_t = 2, value_name = "HOSTS")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=MAX_HOSTS as i64))]
    pub(crate) nodes: u16,
    /// Whose launcher to use
    #[arg(long, value_enum, default_value_t)]
    pub(crate) mpi: Mpi,
    /// The launcher: mpirun of Open MPI 4 or 5, or mpiexec of MPICH; without it, the one on $PATH
    #[arg(long, value_name = "PATH")]
    pub(crate) launcher: Option<PathBuf>,
    /// Where our provider for libfabric is; without it, beside this program
    #[arg(long, value_name = "DIR")]
    pub(crate) provider: Option<PathBuf>,
    /// What carries the program's messages; several are compared: earmark,tcp
    #[arg(long, value_enum, value_delimiter = ',', default_value = "earmark")]
    pub(crate) net: Vec<Net>,
    /// Settings to compare, in turn, as in delay:75,disabled,marked:75
    #[arg(long, value_delimiter = ',', value_name = "SETTINGS", hide_possible_values = true)]
    pub(crate) compare: Vec<Text<Moderation>>,
    /// How often each setting has its turn (A B A B ...)
    #[arg(long, default_value_t = 1, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,
    /// Also write what was counted as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print the environment for a launcher of your own, on real hosts, and run nothing
    #[arg(long, conflicts_with_all = ["program", "compare", "json", "launcher"])]
    pub(crate) print_env: bool,
    #[command(flatten, next_help_heading = "NIC and cable")]
    pub(crate) nic: NicOptions,
    /// The program and its arguments
    #[arg(required_unless_present = "print_env", trailing_var_arg = true)]
    #[arg(value_name = "PROGRAM")]
    pub(crate) program: Vec<OsString>,
}

/// Runs of the program, one after the other.
struct RunLoop<'a> {
    args: &'a MpirunArgs,
    launcher: Launcher,
    live: &'a Live,
    /// The hosts that have ranks, and how many.
    places: Vec<(String, usize)>,
    had_sigint: &'a AtomicBool,
}

/// Runs what `args` ask for; the exit status of the program.
pub(crate) fn run(args: &MpirunArgs) -> Result<ExitCode> {
    if args.print_env {
        let directory = rank_setup::directory(&rank_setup::library(args.provider.as_deref())?)?;
        variables::print(args.mpi, &directory.to_string_lossy());
        return Ok(ExitCode::SUCCESS);
    }
    let settings = settings(args)?;
    let hosts = args.nic.hosts.unwrap_or_default();
    ensure!(
        hosts == Hosts::Namespaces,
        "--hosts {hosts}: launchers of MPIs start programs in namespaces alone; leave it out"
    );
    args.nic.check_taken(&[Use { experiment: None, place: HostKind::Namespaces }])?;
    setup::check(&args.nic)?;
    require_program(&args.program[0])?;
    let launcher = Launcher::find(args.mpi, args.launcher.as_deref())?;
    let library = if args.net.contains(&Net::Earmark) {
        launcher.require_ofi()?;
        Some(rank_setup::library(args.provider.as_deref())?)
    } else {
        None
    };
    if let Some(path) = &args.json {
        writable(path, 0)
            .with_context(|| format!("write {}; choose another place", path.display()))?;
    }
    let live = lab(usize::from(args.nodes).max(2), &args.nic)?;
    let had_sigint = outlive_sigint()?;
    let places = spread(usize::from(args.ranks), usize::from(args.nodes));
    let runs = RunLoop { args, launcher, live: &live, places, had_sigint: &had_sigint };
    let cases = settings.iter().flat_map(|setting| args.net.iter().map(|net| (*setting, *net)));
    let (status, results) = runs.all(&cases.collect::<Vec<_>>(), library.as_deref())?;
    let words: Vec<_> = args.program.iter().map(|word| word.to_string_lossy()).collect();
    let results = MpiResults {
        mpi: runs.launcher.to_string(),
        program: words.join(" "),
        ranks: args.ranks.into(),
        results,
        environment: live.environment().clone(),
    };
    live.finish()?;
    errln!("{}", results::table(&results, Width::of_output()));
    if let Some(path) = &args.json {
        let text = json::text(&results)? + "\n";
        files::write(path, text.as_bytes()).with_context(|| {
            format!("write {}; free some space or choose another place", path.display())
        })?;
    }
    Ok(ExitCode::from(status as u8))
}

/// The settings that have their turns.
fn settings(args: &MpirunArgs) -> Result<Vec<Moderation>> {
    if args.compare.is_empty() {
        return Ok(vec![args.nic.only_setting(USUAL_SETTING)?]);
    }
    ensure!(
        !args.nic.name_a_setting(),
        "--compare names whole settings: drop --strategy, --rx-usecs, --rx-frames"
    );
    let settings: Vec<_> = args.compare.iter().map(|Text(setting)| *setting).collect();
    settings.iter().try_for_each(|setting| args.nic.check(*setting))?;
    args.nic.check_lane_is_used(&settings)?;
    Ok(settings)
}

/// Hosts and how many of the ranks each has; those without one are left out.
fn spread(ranks: usize, nodes: usize) -> Vec<(String, usize)> {
    let share = |(number, name)| (name, ranks / nodes + usize::from(number < ranks % nodes));
    names(nodes).into_iter().enumerate().map(share).filter(|(_, ranks)| *ranks > 0).collect()
}

impl RunLoop<'_> {
    /// Runs each case in turn, again and again, until all have run or one fails; the exit status
    /// of the last one.
    fn all(
        &self,
        cases: &[(Moderation, Net)],
        library: Option<&Path>,
    ) -> Result<(i32, Vec<SettingRuns>)> {
        let machines = self.live.machines();
        let hosts: Vec<&Host> = machines.iter().filter_map(|machine| machine.host()).collect();
        let stations = Station::all(&names(hosts.len()));
        let mut listeners = Vec::new();
        for (host, station) in hosts.iter().zip(&stations) {
            listeners.push(rank_setup::furnish(host, station, &self.launcher, library)?);
        }
        let network = format!("{}/{IPV4_PREFIX}", network(&stations[0]));
        std::thread::scope(|scope| {
            let mut ends = Vec::new();
            for listener in listeners {
                // Its end is that of what the remote shells still do.
                let (end, until) = UnixStream::pair()?;
                shell::serve(scope, listener, &hosts, until);
                ends.push(end);
            }
            self.in_turn(cases, &network)
        })
    }

    fn in_turn(
        &self,
        cases: &[(Moderation, Net)],
        network: &str,
    ) -> Result<(i32, Vec<SettingRuns>)> {
        let new = |(setting, net): &(Moderation, Net)| SettingRuns::new(setting.to_string(), *net);
        let mut results: Vec<_> = cases.iter().map(new).collect();
        let total = cases.len() * self.args.repeat as usize;
        let mut status = 0;
        let each = (0..self.args.repeat).flat_map(|_| cases.iter().enumerate());
        for (turn, (number, (setting, net))) in each.enumerate() {
            if total > 1 {
                errln!("{}/{total}: {setting}, {}", turn + 1, net.name());
            }
            self.live.set(*setting)?;
            let before = self.live.snapshot()?;
            let begin = Instant::now();
            let mut child = self.start(*net, network, total == 1)?;
            status = code(wait(&mut child, self.live)?);
            let wall = begin.elapsed();
            results[number].add(status, wall, &self.live.snapshot()?.since(&before));
            if status != 0 || self.had_sigint.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok((status, results))
    }

    fn start(&self, net: Net, network: &str, alone: bool) -> Result<Child> {
        let mut command: Command = self.launcher.command(&self.places, network);
        command.arg(rank_setup::rank(net)).args(&self.args.program);
        rank_setup::prepare(&mut command);
        if !alone {
            command.stdin(Stdio::null());
        }
        Ok(self.live.machines()[0].spawn(&mut command)?)
    }
}

/// The network that a station is in.
fn network(station: &Station) -> std::net::Ipv4Addr {
    let mask = u32::MAX << (32 - IPV4_PREFIX);
    (u32::from(station.ipv4) & mask).into()
}

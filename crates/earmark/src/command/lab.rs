//! `earmark lab`: your own programs on the two hosts.

use std::ffi::OsString;
use std::process::{Child, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use lab::machine::Machine;
use lab::{MAX_HOSTS, names};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use sys::privilege::become_capable;

use super::code;
use bench::applicability::Use;
use bench::experiment::USUAL_SETTING;
use bench::options::NicOptions;
use bench::world::WorldKind;
use clap::Args;
use report::errln;
use report::shell::quoted;
use worlds::live::Live;
use worlds::setup;
use worlds::virtual_lab::{self, PortChange};

/// The time in which programs run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Time {
    /// The clock of this machine.
    #[default]
    Real,
    /// That of a calendar, which all hosts share.
    Virtual,
}

#[derive(Args, Debug)]
pub(crate) struct LabRunArgs {
    /// A shell command for a host: a, b, c and so on, which know each other by these names; may be
    /// given more than once. There are as many hosts as are named, and always a and b
    #[arg(long, num_args = 2, required_unless_present = "command", value_names = ["HOST", "CMD"])]
    pub(crate) on: Vec<String>,
    /// End when the commands of this host (or `all`) have ended; the others are stopped
    ///
    /// Without it: host a, where clients usually are, or the first one on which something runs.
    /// The commands of the other hosts start first.
    #[arg(long, value_name = "HOST")]
    pub(crate) until: Option<String>,
    /// Whose time it is: in virtual time hosts are guests with kernels of their own, nothing
    /// depends on the speed of this machine, and a run with the same seed is the same again
    #[arg(long, value_enum, default_value_t)]
    pub(crate) time: Time,
    /// Change a port so many seconds after the commands that are waited for start, as `earmark nic
    /// set` would: --at 0.5 'b0 link down'; may be given more than once, with --time virtual
    #[arg(long, num_args = 2, value_names = ["SECONDS", "SETTINGS"])]
    pub(crate) at: Vec<String>,
    #[command(flatten)]
    pub(crate) nic: NicOptions,
    /// A program on host a, and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

/// What the commands of the other host get to start listening, before the first client starts.
const HEAD_START: Duration = Duration::from_millis(500);

/// What a program gets to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// How often it is looked whether a host has ended while a command runs.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The exit status of a shell for a program that SIGINT has ended.
const ENDED_BY_SIGINT: i32 = 128 + signal_hook::consts::SIGINT;

/// Runs the commands of `args`.
pub(crate) fn run(args: &LabRunArgs) -> Result<ExitCode> {
    let mut commands = commands(&args.on)?;
    if !args.command.is_empty() {
        let words: Vec<_> = args.command.iter().map(|word| quoted(word)).collect();
        commands.push((0, format!("exec {}", words.join(" "))));
    }
    let awaited = awaited(args.until.as_deref(), &commands)?;
    let world = if args.time == Time::Virtual { WorldKind::Virtual } else { WorldKind::Live };
    check_taken(world, &args.nic)?;
    ensure!(
        world == WorldKind::Virtual || args.at.is_empty(),
        "--at is for virtual time; type `earmark nic set` while the lab runs, or give --time virtual"
    );
    if world == WorldKind::Virtual {
        become_capable()?;
        let moderation = args.nic.only_setting(USUAL_SETTING)?;
        let changes = args.at.chunks_exact(2).map(|pair| PortChange::parse(&pair[0], &pair[1]));
        let changes = changes.collect::<Result<_>>()?;
        let status = virtual_lab::run(&commands, &awaited, &args.nic, moderation, changes)?;
        return Ok(ExitCode::from(status as u8));
    }
    let hosts = commands.iter().map(|(host, _)| host + 1).fold(2, usize::max);
    let live = lab(hosts, &args.nic)?;
    outlive_sigint()?;
    let (mut others, mut waited) = (Vec::new(), Vec::new());
    for (host, command) in commands.iter().filter(|(host, _)| !awaited.contains(host)) {
        others.push(start(&*live.machines()[*host], command, Stdio::null())?);
    }
    if !others.is_empty() {
        sleep(HEAD_START);
    }
    for (host, command) in commands.iter().filter(|(host, _)| awaited.contains(host)) {
        let input = if waited.is_empty() { Stdio::inherit() } else { Stdio::null() };
        waited.push(start(&*live.machines()[*host], command, input)?);
    }
    let mut status = 0;
    for child in &mut waited {
        let ended = code(wait(child, &live)?);
        status = if status == 0 { ended } else { status };
    }
    end(&mut others)?;
    live.snapshot()?;
    live.finish()?;
    Ok(ExitCode::from(status as u8))
}

/// Runs a shell on a host.
pub(crate) fn shell(on: &str, options: &NicOptions) -> Result<ExitCode> {
    check_taken(WorldKind::Live, options)?;
    let number = host_number(on)?;
    let live = lab(2.max(number + 1), options)?;
    outlive_sigint()?;
    let host = &*live.machines()[number];
    errln!(
        "Host {on}; another one is {}. Try `ping {0}`, `earmark nic show`, `earmark nic set b0 rx-usecs 50`; \
         `exit` ends the lab.",
        if on == "a" { "b" } else { "a" }
    );
    let status = run_shell(host, &[])?;
    live.finish()?;
    Ok(status)
}

/// Runs the user's shell on a host, with these variables.
pub(crate) fn run_shell(host: &dyn Machine, variables: &[(&str, OsString)]) -> Result<ExitCode> {
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    let mut command = host.command(&shell);
    command.envs(variables.iter().map(|(name, value)| (*name, value)));
    let status = code(host.spawn(&mut command)?.wait().context("wait for the shell")?);
    Ok(ExitCode::from(status as u8))
}

/// A lab of that many hosts, with the setting of `options` in force.
pub(super) fn lab(hosts: usize, options: &NicOptions) -> Result<Live> {
    let privilege = become_capable()?;
    let moderation = options.only_setting(USUAL_SETTING)?;
    Live::with_setting(hosts, options, Some(moderation), privilege)
}

/// Refuses options that a lab in `world` does not take.
fn check_taken(world: WorldKind, options: &NicOptions) -> Result<()> {
    options.check_taken(&[Use { experiment: None, place: options.place(world) }])?;
    setup::check(options)
}

/// Pairs of host and command.
fn commands(words: &[String]) -> Result<Vec<(usize, String)>> {
    let pairs = words.chunks_exact(2);
    pairs.map(|pair| Ok((host_number(&pair[0])?, pair[1].clone()))).collect()
}

fn host_number(name: &str) -> Result<usize> {
    let named = names(MAX_HOSTS).iter().position(|known| known == name);
    named.with_context(|| format!("there is no host {name}; hosts are named a, b, c and so on"))
}

/// The hosts whose commands are waited for.
fn awaited(until: Option<&str>, commands: &[(usize, String)]) -> Result<Vec<usize>> {
    let mut busy: Vec<usize> = commands.iter().map(|(host, _)| *host).collect();
    busy.sort_unstable();
    busy.dedup();
    match until {
        Some("all" | "both") => Ok(busy),
        None => Ok(busy.into_iter().take(1).collect()),
        Some(name) => {
            let host = host_number(name)?;
            ensure!(
                busy.contains(&host),
                "--until {name}: nothing runs on that host; give it a command with --on"
            );
            Ok(vec![host])
        }
    }
}

fn start(host: &dyn Machine, command: &str, input: Stdio) -> Result<Child> {
    let mut shell = host.command("/bin/sh".as_ref());
    shell.arg("-c").arg(command).stdin(input);
    Ok(host.spawn(&mut shell)?)
}

/// Waits for a command, as long as there are hosts to talk to: one whose peer has died may never
/// end.
pub(super) fn wait(child: &mut Child, live: &Live) -> Result<ExitStatus> {
    // Polling without a pause would take time from the hosts, which share this machine.
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let interval = Timespec { tv_sec: 0, tv_nsec: POLL_INTERVAL.as_nanos() as i64 };
    loop {
        if let Some(status) = child.try_wait().context("wait for a command")? {
            return Ok(status);
        }
        for machine in live.machines() {
            if let Some(end) = machine.end() {
                bail!("host {} has ended: {end}", machine.name());
            }
        }
        match poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&interval)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno).context("wait for a command"),
        }
    }
}

/// Stops what runs until it is stopped: asks first, so that a server can say what it has to say.
fn end(children: &mut [Child]) -> Result<()> {
    for child in children.iter_mut() {
        if child.try_wait()?.is_none() {
            kill_process(Pid::from_child(child), Signal::TERM)?;
        }
    }
    let deadline = Instant::now() + GRACE;
    for child in children {
        while child.try_wait()?.is_none() && Instant::now() < deadline {
            sleep(Duration::from_millis(20));
        }
        // Whatever is left goes with its host.
    }
    Ok(())
}

/// The programs get SIGINT, from the terminal or from this process, and may have something to say;
/// a second one ends all. Tells whether there was one.
pub(crate) fn outlive_sigint() -> Result<Arc<AtomicBool>> {
    sys::sigint::outlive(ENDED_BY_SIGINT).context("wait for SIGINT")
}

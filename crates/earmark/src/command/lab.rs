//! `earmark lab`: your own programs on the two hosts.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use linux::host::Host;
use linux::privilege::become_capable;

use crate::cli::LabRunArgs;
use crate::experiment::{A, B, USUAL_SETTING};
use crate::options::NicOptions;
use crate::world::live::Live;

/// What the commands of the other host get to start listening, before the first client starts.
const HEAD_START: Duration = Duration::from_millis(500);

/// What a program gets to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);

/// The exit status of a shell for a program that was interrupted.
const INTERRUPTED: i32 = 128 + signal_hook::consts::SIGINT;

/// Runs the commands of `args`.
///
/// # Errors
/// If the lab cannot be built or a command cannot be started.
pub fn run(args: &LabRunArgs) -> Result<ExitCode> {
    let commands = commands(&args.on)?;
    let has = |host| commands.iter().any(|(on, _)| *on == host);
    let awaited: &[usize] = match args.until.as_deref() {
        Some("both") => &[A, B],
        Some("b") => &[B],
        Some(_) => &[A],
        None if has(A) => &[A],
        None => &[B],
    };
    if !awaited.iter().any(|&host| has(host)) {
        bail!("--until names a host on which nothing runs; give it a command with --on");
    }
    let live = lab(&args.nic)?;
    outlive_interrupts()?;
    let (mut others, mut waited) = (Vec::new(), Vec::new());
    for (host, command) in commands.iter().filter(|(host, _)| !awaited.contains(host)) {
        others.push(start(&live.hosts()[*host], command, Stdio::null())?);
    }
    if !others.is_empty() {
        sleep(HEAD_START);
    }
    for (host, command) in commands.iter().filter(|(host, _)| awaited.contains(host)) {
        let input = if waited.is_empty() { Stdio::inherit() } else { Stdio::null() };
        waited.push(start(&live.hosts()[*host], command, input)?);
    }
    let mut status = 0;
    for child in &mut waited {
        let ended = code(child.wait().context("wait for a command")?);
        status = if status == 0 { ended } else { status };
    }
    end(&mut others)?;
    live.snapshot()?;
    live.finish()?;
    Ok(ExitCode::from(status as u8))
}

/// Runs a shell on a host.
///
/// # Errors
/// If the lab cannot be built or there is no shell.
pub fn shell(on: &str, options: &NicOptions) -> Result<ExitCode> {
    let live = lab(options)?;
    outlive_interrupts()?;
    let host = &live.hosts()[host_number(on)?];
    let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
    eprintln!(
        "Host {on}; the other one is {}. Try `ping {0}`, `earmark nic show`, `earmark nic set b0 rx-usecs 50`; \
         `exit` ends the lab.",
        if on == "a" { "b" } else { "a" }
    );
    let mut child = host.spawn(&mut Command::new(shell))?;
    let status = code(child.wait().context("wait for the shell")?);
    live.finish()?;
    Ok(ExitCode::from(status as u8))
}

fn lab(options: &NicOptions) -> Result<Live> {
    let privilege = become_capable()?;
    let live = Live::start(options, privilege)?;
    live.set(options.moderation(USUAL_SETTING)?)?;
    Ok(live)
}

/// Pairs of host and command.
fn commands(words: &[String]) -> Result<Vec<(usize, String)>> {
    let pairs = words.chunks_exact(2);
    pairs.map(|pair| Ok((host_number(&pair[0])?, pair[1].clone()))).collect()
}

fn host_number(name: &str) -> Result<usize> {
    match name {
        "a" => Ok(A),
        "b" => Ok(B),
        _ => bail!("there is no host {name}; the hosts are a and b"),
    }
}

fn start(host: &Host, command: &str, input: Stdio) -> Result<Child> {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(command).stdin(input);
    Ok(host.spawn(&mut shell)?)
}

/// Stops what runs until it is stopped: asks first, so that a server can say what it has to say.
fn end(children: &mut [Child]) -> Result<()> {
    for child in children.iter_mut() {
        if child.try_wait()?.is_none() {
            let pid = rustix::process::Pid::from_child(child);
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        }
    }
    let patience = Instant::now() + GRACE;
    for child in children {
        while child.try_wait()?.is_none() && Instant::now() < patience {
            sleep(Duration::from_millis(20));
        }
        // Whatever is left goes with its host.
    }
    Ok(())
}

/// The exit status as a shell tells it: the program's own, or 128 and the signal.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// The terminal sends Ctrl-C to the programs, too, and they may have something to say; a second one
/// ends all.
fn outlive_interrupts() -> Result<()> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let signal = signal_hook::consts::SIGINT;
    signal_hook::flag::register_conditional_shutdown(
        signal,
        INTERRUPTED,
        Arc::clone(&interrupted),
    )?;
    signal_hook::flag::register(signal, interrupted)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_name_their_host() {
        let words = ["b", "iperf3 -s", "a", "iperf3 -c b"].map(str::to_owned);
        let expected = vec![(B, "iperf3 -s".to_owned()), (A, "iperf3 -c b".to_owned())];
        assert_eq!(commands(&words).unwrap(), expected);
        let error = commands(&["c".into(), "true".into()]).unwrap_err().to_string();
        assert!(error.contains("the hosts are a and b"), "{error}");
    }
}

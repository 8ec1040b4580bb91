//! The guard: a process beside one that changes a device, which undoes the change when that one
//! dies.
//!
//! # Theory of operation
//!
//! The guard is this same binary, started before the first change, in a session of its own, so that
//! neither Ctrl-C nor the end of a terminal reaches it. It reads from a pipe whose other end its
//! owner alone holds. While the owner lives it says nothing; then
//!
//! - `done`: all is kept, or undone already. The guard ends.
//! - `wait`: the guard waits until the user confirms, which takes the change out of the journal's
//!   *trying*, or until the time that the journal names, and then undoes it.
//! - the end of the pipe: the owner is dead. The guard takes its lock and undoes what the journal
//!   says.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::device::{self, Device, Identity, Reopened};
use super::failpoint::{KILL_AT, KILL_GUARD_AT, guarded_by};
use super::journal::{Held, Journal, Store};
use super::transaction::undo::{current, since_boot, undo};
use report::errln;

/// How often a guard that waits looks whether the user has confirmed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The owner's end of a guard.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    life: ChildStdin,
    words: BufReader<ChildStdout>,
}

impl Guard {
    /// Starts the guard of a device, and waits until it is ready.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(store: &Store, device: &Identity) -> Result<Self> {
        // The file may have been replaced meanwhile; this is what runs.
        let mut command = Command::new("/proc/self/exe");
        command.arg("guard").arg(store.directory()).arg(serde_json::to_string(device)?);
        command.env_remove(KILL_AT).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(step) = std::env::var_os(KILL_GUARD_AT) {
            command.env(KILL_AT, step);
        }
        let mut child = command.spawn().context("start the guard that undoes changes")?;
        let life = child.stdin.take().context("the guard has no standard input")?;
        let output = child.stdout.take().context("the guard has no standard output")?;
        let (mut words, mut line) = (BufReader::new(output), String::new());
        words.read_line(&mut line).context("wait for the guard")?;
        if line.trim() != "ready" {
            let status = child.wait().context("wait for the guard")?;
            bail!("the guard that undoes changes did not start ({status}); nothing was changed");
        }
        guarded_by(child.id());
        Ok(Self { child, life, words })
    }

    /// Sends the guard away: there is nothing to undo.
    ///
    /// # Errors
    /// If it cannot be waited for.
    pub fn dismiss(mut self) -> Result<()> {
        // If it is gone already, somebody has killed it; it is not needed any more.
        let _ = self.life.write_all(b"done\n");
        drop(self.life);
        self.child.wait().context("wait for the guard").map(drop)
    }

    /// Leaves the guard behind, to wait for the user's confirmation.
    ///
    /// # Errors
    /// If it is gone.
    pub fn wait_for_confirmation(mut self) -> Result<()> {
        let mut line = String::new();
        self.life
            .write_all(b"wait\n")
            .and_then(|()| self.words.read_line(&mut line))
            .context("tell the guard to wait; was it killed?")?;
        ensure!(
            line.trim() == "waits",
            "the guard does not wait for the confirmation; was it killed?"
        );
        Ok(())
    }
}

/// Is the guard of `device`.
///
/// # Errors
/// If the change cannot be undone.
pub fn run(directory: &Path, device: &str) -> Result<ExitCode> {
    // It may be the leader of a group already; then it is out of reach of a terminal, too.
    let _ = rustix::process::setsid();
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        // Whoever wants to end this ends its owner. The other end of this pair reads nothing.
        let (sender, _) = UnixStream::pair().context("make a pair of sockets")?;
        signal_hook::low_level::pipe::register(signal, sender).context("take signals")?;
    }
    let identity: Identity = serde_json::from_str(device).context("read the device")?;
    let store = Store::find(Some(directory))?;
    let _ = std::env::set_current_dir("/");
    write_word("ready")?;
    let mut words = String::new();
    let mut first = [0; 5];
    let mut input = std::io::stdin().lock();
    while let Ok(read) = input.read(&mut first) {
        if read == 0 {
            break;
        }
        words.push_str(&String::from_utf8_lossy(&first[..read]));
        if words.ends_with('\n') {
            break;
        }
    }
    match words.trim() {
        "done" => {}
        "wait" => await_confirmation(&store, &identity)?,
        _ => mend_own(&store, &identity)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write_word(word: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{word}").and_then(|()| output.flush()).context("answer the owner")
}

/// The owner has died: undoes what it has done.
fn mend_own(store: &Store, identity: &Identity) -> Result<()> {
    let held = store.hold(identity)?;
    if undo_if_there(store, identity, &held, |_| true)? {
        errln!("{} is as it was: the change was not finished", identity.name);
    }
    Ok(())
}

/// Waits until the change is confirmed or its time is over.
fn await_confirmation(store: &Store, identity: &Identity) -> Result<()> {
    // The owner waits for our answer with the lock of the device: this is its change. The next
    // look may find another one, which has a guard of its own.
    let own = store.read(identity)?.and_then(|journal| journal.trying);
    let until = own.as_ref().and_then(|trying| trying.until);
    let until = until.context("the change has no time until which to wait")?;
    let is_own = |journal: &Journal| journal.trying == own;
    // Whoever looks for orphans holds this lock for a moment, too, and the guard of a change that
    // was just confirmed until it glances again; on a busy machine that takes a while.
    let waiting = (0..500).find_map(|_| match store.guard(identity) {
        Ok(None) => {
            sleep(Duration::from_millis(10));
            None
        }
        outcome => Some(outcome),
    });
    let _waiting = waiting.context("somebody else waits for a confirmation")??;
    write_word("waits")?;
    // Nobody reads what is said from here on: whoever waits for the owner's output has it all.
    let nowhere = File::options().write(true).open("/dev/null").context("open /dev/null")?;
    for stream in [rustix::stdio::dup2_stdout, rustix::stdio::dup2_stderr] {
        stream(&nowhere).context("part with the terminal")?;
    }
    while store.read(identity)?.is_some_and(|journal| is_own(&journal)) {
        let left = Duration::from_nanos(until.saturating_sub(since_boot()));
        if left.is_zero() {
            let held = store.hold(identity)?;
            return undo_if_there(store, identity, &held, is_own).map(drop);
        }
        sleep(left.min(POLL_INTERVAL));
    }
    Ok(())
}

fn undo_if_there(
    store: &Store,
    identity: &Identity,
    held: &Held,
    wanted: impl Fn(&Journal) -> bool,
) -> Result<bool> {
    let Reopened::Here(device) = device::reopen(identity)? else { return Ok(false) };
    let device: &dyn Device = device.as_ref();
    let mut journal = current(store, device)?;
    if journal.trying.is_none() || !wanted(&journal) {
        return Ok(false);
    }
    undo(device, store, held, &mut journal)?;
    Ok(true)
}

//! The guard: a process beside one that changes a device, which undoes the change when that one
//! dies, or is stopped.
//!
//! # Theory of operation
//!
//! The guard is this same binary, started before the first change, in a session of its own, so that
//! neither Ctrl-C nor the end of a terminal reaches it. It reads from a pipe whose other end its
//! owner alone holds.
//!
//! - `check`: the guard answers whether the change is in force.
//! - `wait`: it answers, and waits until the user confirms, which takes the change out of the
//!   journal's *trying*, or until the time that the journal names, and then undoes it.
//! - `stand by`: the same, as the second of two guards.
//! - `done`: all is kept, or undone already. It ends.
//! - the end of the pipe: the owner is dead. The guard takes its lock and undoes what the journal
//!   says.
//!
//! **A stopped owner** (Ctrl-Z, SIGSTOP, a debugger) would leave a trial in force for as long. The
//! guard looks at it once a second, and after some seconds of standstill puts the device back in
//! its place: the owner has the lock, and cannot act. From then on the answer of the guard is
//! `undone`. An owner that goes on asks before it relies on a measurement or keeps a change, gets
//! that answer, and undoes what it has done since.
//!
//! **Two guards wait** for a confirmation, and both undo the change when its time is over. The
//! first has the lock `.guard`; the second takes that when the first has died, and the one that has
//! it starts a second one when there is none. So both have to be killed at once, and then it is
//! left to the next command ([`super::recover`]).

mod stopped;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getppid, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::device::{self, Identity, Reopened, TunedDevice};
use super::failpoint::{KILL_AT, KILL_GUARD_AT, guarded_by};
use super::journal::{Held, Journal, Store};
use super::transaction::undo::{current, put_back, since_boot, undo};
use report::errln;
use stopped::{Standstill, switches_if_stopped};

/// How often a guard that waits looks whether the user has confirmed.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How often a guard looks whether its owner is stopped.
const LOOK_INTERVAL: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The answers of a guard: the change is in force, or it has undone it.
const IN_FORCE: &str = "in force";
const UNDONE: &str = "undone";

/// The owner's end of a guard.
#[derive(Debug)]
pub struct Guard {
    child: Child,
    life: ChildStdin,
    words: BufReader<ChildStdout>,
}

impl Guard {
    /// Starts the guard of a device, and waits until it is ready.
    pub fn start(store: &Store, device: &Identity) -> Result<Self> {
        // The file may have been replaced meanwhile; this is what runs.
        let mut command = Command::new("/proc/self/exe");
        command.arg("guard").arg(store.directory()).arg(serde_json::to_string(device)?);
        command.env_remove(KILL_AT).env_remove(KILL_GUARD_AT);
        if let Some(step) = std::env::var_os(KILL_GUARD_AT) {
            command.env(KILL_AT, step);
        }
        let guard = Self::spawn(&mut command)?;
        guarded_by(guard.child.id());
        Ok(guard)
    }

    #[cfg(test)]
    pub(crate) fn that_has_undone() -> Self {
        let answers = "echo ready; while read word && [ $word != done ]; do echo undone; done";
        Self::spawn(Command::new("sh").args(["-c", answers])).unwrap()
    }

    fn spawn(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().context("start the guard that undoes changes")?;
        let life = child.stdin.take().context("the guard has no standard input")?;
        let output = child.stdout.take().context("the guard has no standard output")?;
        let (mut words, mut line) = (BufReader::new(output), String::new());
        words.read_line(&mut line).context("wait for the guard")?;
        if line.trim() != "ready" {
            let status = child.wait().context("wait for the guard")?;
            bail!("the guard that undoes changes did not start ({status}); nothing was changed");
        }
        Ok(Self { child, life, words })
    }

    /// Whether the change is in force; else the guard has undone it, because this process was
    /// stopped.
    pub(crate) fn is_in_force(&mut self) -> Result<bool> {
        self.ask("check")
    }

    /// Leaves the guard behind, to wait for the user's confirmation; `false` as for
    /// [`is_in_force`](Self::is_in_force), and then it does not wait.
    pub(crate) fn wait_for_confirmation(&mut self) -> Result<bool> {
        self.ask("wait")
    }

    pub(crate) fn dismiss(mut self) -> Result<()> {
        // If it is gone already, somebody has killed it; it is not needed any more.
        let _ = self.say("done");
        drop(self.life);
        self.child.wait().context("wait for the guard").map(drop)
    }

    /// Starts a second guard beside this process, which is one that waits.
    fn stand_by(store: &Store, device: &Identity) -> Result<Self> {
        let mut guard = Self::start(store, device)?;
        guard.ask("stand by")?;
        Ok(guard)
    }

    fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn ask(&mut self, word: &str) -> Result<bool> {
        let mut answer = String::new();
        let asked = self.say(word).and_then(|()| self.words.read_line(&mut answer));
        match (asked, answer.trim()) {
            (Ok(_), IN_FORCE) => Ok(true),
            (Ok(_), UNDONE) => Ok(false),
            _ => {
                // Its end of the pipe is closed, so it has ended or is about to.
                let how = self.child.wait().context("wait for the guard")?;
                bail!("the guard that undoes changes has ended ({how}); start this again")
            }
        }
    }

    fn say(&mut self, word: &str) -> std::io::Result<()> {
        // It does not answer while it is stopped.
        let guard = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let _ = guard.map(|guard| kill_process(guard, Signal::CONT));
        self.life.write_all(format!("{word}\n").as_bytes())
    }
}

/// Is the guard of `device`.
pub fn run(directory: &Path, device: &str) -> Result<ExitCode> {
    // It may be the leader of a group already; then it is out of reach of a terminal, too.
    let _ = rustix::process::setsid();
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        // To end this process, end its owner. The other end of this pair reads nothing.
        let (sender, _) = UnixStream::pair().context("make a pair of sockets")?;
        signal_hook::low_level::pipe::register(signal, sender).context("take signals")?;
    }
    let identity: Identity = serde_json::from_str(device).context("read the device")?;
    let store = Store::find(Some(directory))?;
    let _ = std::env::set_current_dir("/");
    let owner = getppid();
    write_word("ready").context("answer the owner")?;
    let (mut standstill, mut is_undone) = (Standstill::default(), false);
    while let Some(word) = next_word() {
        match word.as_str() {
            "" => {
                if standstill.look(owner.and_then(switches_if_stopped)) {
                    is_undone |= stand_in(&store, &identity, is_undone);
                }
                continue;
            }
            "done" => return Ok(ExitCode::SUCCESS),
            "wait" | "stand by" if !is_undone => {
                await_confirmation(&store, &identity, word == "wait")?;
                return Ok(ExitCode::SUCCESS);
            }
            _ => {}
        }
        // An owner that does not listen has died, which is seen next.
        let _ = write_word(if is_undone { UNDONE } else { IN_FORCE });
    }
    undo_own(&store, &identity)?;
    Ok(ExitCode::SUCCESS)
}

/// What the owner says; an empty word if it says nothing for a while, `None` if it is dead.
fn next_word() -> Option<String> {
    let input = rustix::stdio::stdin();
    let mut ready = [PollFd::from_borrowed_fd(input, PollFlags::IN)];
    match poll(&mut ready, Some(&LOOK_INTERVAL)) {
        Ok(0) | Err(Errno::INTR) => return Some(String::new()),
        _ => {}
    }
    // It writes a word at once, and the next one only after an answer.
    let mut word = [0; 16];
    let read = rustix::io::read(input, &mut word).ok().filter(|read| *read > 0)?;
    Some(String::from_utf8_lossy(&word[..read]).trim().to_owned())
}

fn write_word(word: &str) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{word}").and_then(|()| output.flush())
}

fn undo_own(store: &Store, identity: &Identity) -> Result<()> {
    let held = store.hold(identity)?;
    if undo_if_there(store, identity, &held, |_| true)? {
        errln!("{} is as it was: the change was not finished", identity.name);
    }
    Ok(())
}

/// The owner is stopped, and has the lock of the device: puts the device back in its place. Whether
/// there was something to put back; it is said once, and the journal keeps it for the owner.
fn stand_in(store: &Store, identity: &Identity, was_said: bool) -> bool {
    let name = &identity.name;
    let try_to = || -> Result<bool> {
        let Reopened::Here(device) = device::reopen(identity)? else { return Ok(false) };
        let Some(trying) = current(store, device.as_ref())?.trying else { return Ok(false) };
        put_back(device.as_ref(), &trying.before)?;
        if !was_said {
            let (what, process) = (trying.what, trying.process);
            errln!("{name} is as it was, since `earmark {what}`, process {process}, is stopped");
        }
        Ok(true)
    };
    try_to().unwrap_or_else(|error| {
        errln!("{error:#}");
        true
    })
}

/// Waits until the change is confirmed or its time is over, as the first of two guards or as the
/// second.
fn await_confirmation(store: &Store, identity: &Identity, is_first: bool) -> Result<()> {
    // The owner waits for our answer with the lock of the device: this is its change. The next
    // look may find another one, which has guards of its own.
    let own = store.read(identity)?.and_then(|journal| journal.trying);
    let until = own.as_ref().and_then(|trying| trying.until);
    let until = until.context("the change has no time until which to wait")?;
    let is_own = |journal: &Journal| journal.trying == own;
    let mut first = if is_first { Some(become_first(store, identity)?) } else { None };
    let second = || Guard::stand_by(store, identity).ok();
    let mut other = first.as_ref().and_then(|_| second());
    // What is printed from here on has no reader: who waits for the owner's output has it.
    let nowhere = File::options().write(true).open("/dev/null").context("open /dev/null")?;
    rustix::stdio::dup2_stderr(&nowhere).context("part with the terminal")?;
    // An owner that died before this answer has asked for it all the same.
    let _ = write_word(IN_FORCE);
    rustix::stdio::dup2_stdout(&nowhere).context("part with the terminal")?;
    // A journal that cannot be read now may be later.
    while store.read(identity).map_or(true, |journal| journal.is_some_and(|it| is_own(&it))) {
        let left = Duration::from_nanos(until.saturating_sub(since_boot()));
        if left.is_zero() {
            let held = store.hold(identity)?;
            return undo_if_there(store, identity, &held, is_own).map(drop);
        }
        first = first.or_else(|| store.guard(identity).ok().flatten());
        if first.is_some() && !other.as_mut().is_some_and(Guard::lives) {
            other = second();
        }
        sleep(left.min(POLL_INTERVAL));
    }
    Ok(())
}

/// Takes the lock of the first guard. A command that looks for orphans has it for a moment, too,
/// and the guards of a change that was just confirmed until they look again; on a busy machine that
/// takes a while.
fn become_first(store: &Store, identity: &Identity) -> Result<Held> {
    let first = (0..500).find_map(|_| match store.guard(identity) {
        Ok(None) => {
            sleep(Duration::from_millis(10));
            None
        }
        outcome => outcome.transpose(),
    });
    first.context("another guard waits for a confirmation")?
}

fn undo_if_there(
    store: &Store,
    identity: &Identity,
    held: &Held,
    wanted: impl Fn(&Journal) -> bool,
) -> Result<bool> {
    let Reopened::Here(device) = device::reopen(identity)? else { return Ok(false) };
    let device: &dyn TunedDevice = device.as_ref();
    let mut journal = current(store, device)?;
    if journal.trying.is_none() || !wanted(&journal) {
        return Ok(false);
    }
    undo(device, store, held, &mut journal)?;
    Ok(true)
}

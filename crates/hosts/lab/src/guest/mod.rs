//! A Linux host with a kernel of its own.
//!
//! A guest is a [`Host`] with one program in it: a User-Mode Linux, that is, a Linux kernel that
//! was built to run as an ordinary process. Its network interface is a real virtio device with a
//! real driver, so the guest's own `ethtool -C` reaches our NIC, and its clock can be driven from
//! outside. The host around it sees to the rest: when this process ends, in whatever way, the host
//! ends, and everything in it.
//!
//! ```text
//! this process ── Host (namespaces) ─┬─ kernel ── init ── programs      guest
//!      │  └─ hub ──── console ───────┘   │
//!      │      └────── sockets ── proxies of programs                    host
//!      └─ NIC ─────── /run/nic.sock ─────┘
//! ```
//!
//! Its files are those of the machine, as the host sees them, and its kernel has no right to write
//! any (`confine`); `/tmp`, `/run` and `/dev/shm` are the guest's own. What it writes there is gone
//! with it. The working directory of a program is kept if the guest has such a directory.
//!
//! [`init`] is process 1 of the guest. In real time it takes orders from the hub, and a program
//! is started as with a host: [`Machine::spawn`] starts a proxy ([`exec`]), which is an ordinary
//! child. In virtual time there is nothing from outside at all: init follows a script, and
//! [`Guest::events`] tells what happened.

mod channel;
#[cfg(any(test, feature = "checks"))]
pub(crate) mod checks;
mod confine;
pub mod exec;
mod hub;
pub mod init;
pub mod protocol;
mod settings;
mod waiter;

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use crate::error::LabError;
use crate::host::Host;
use crate::machine::Machine;
use channel::Channel;
use protocol::{GUEST, GuestEvent, Order};
use settings::{PROGRAMS, SETTINGS};

pub use settings::{GuestNic, GuestSettings};

/// How many of the kernel's last messages are kept.
const KEPT_LINES: usize = 20;

/// The longest line of them, in bytes; what is longer counts as several.
const MAX_LINE: u64 = 4096;

/// How long a kernel may take to end that has closed its console.
const END_WITHIN: Duration = Duration::from_secs(10);

/// How long the last words of a kernel that has ended are waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a kernel says that has too little room for the registers of the processor, as those before
/// 6.13 have for AMX. That of `earmark kernel` has enough.
const FEW_REGISTERS: &str = "set fp regs failed";

/// What a kernel says that may not execute process 1.
const NOT_ALLOWED: &str = "failed (error -13)";

/// What a kernel said that did not get far.
fn first_words(messages: &[String]) -> String {
    let words = last_words(messages);
    if messages.iter().any(|line| line.contains(NOT_ALLOWED)) {
        return words + "; let it be executed, by guests of root as well: chmod a+rx PROGRAM";
    }
    if messages.is_empty() || messages.iter().any(|line| line.contains(FEW_REGISTERS)) {
        return words + "; try another kernel: earmark kernel";
    }
    words
}

fn last_words(messages: &[String]) -> String {
    if messages.is_empty() {
        return "it said nothing".to_owned();
    }
    format!("its last messages:\n  {}", messages.join("\n  "))
}

/// A guest. Dropping it ends it, and every program in it.
#[derive(Debug)]
pub struct Guest {
    // Dropped in this order: the hub closes the console, then the host ends what is left.
    owner: UnixStream,
    orders: Channel,
    kernel: Child,
    hub: Option<JoinHandle<()>>,
    events: Receiver<(u32, GuestEvent)>,
    messages: Arc<Mutex<VecDeque<String>>>,
    /// Keeps the messages, until no process is left that writes any.
    keeper: JoinHandle<()>,
    exec: Vec<String>,
    host: Host,
}

impl Guest {
    /// Starts the kernel inside `host`, and does not wait until it is ready: several guests may
    /// boot at once, and in virtual time nothing happens before the calendar says so.
    ///
    /// The sockets of NIC and calendar must be there; see [`Host::listen`].
    pub fn start(host: Host, settings: &GuestSettings) -> Result<Self, LabError> {
        let prepare = |what| {
            let guest = host.name().to_owned();
            move |cause| prepare_error(&guest, what, cause)
        };
        let json = serde_json::to_vec(settings).expect("settings are text");
        host.enter(|| std::fs::write(SETTINGS, json))?.map_err(prepare("write the settings"))?;
        let listener = host.listen(PROGRAMS)?;
        let (owner, theirs) = UnixStream::pair().map_err(prepare("make a pair of sockets"))?;
        let ours = owner.try_clone().map_err(prepare("make a pair of sockets"))?;
        let orders = ours
            .try_clone()
            .and_then(|same| Channel::new(same.into(), ours.into()))
            .map_err(prepare("make a channel"))?;
        let (sender, events) = hub::events();
        let programs = [Some(settings.kernel.as_path()), settings.init.first().map(Path::new)];
        let programs: Vec<_> = programs.into_iter().flatten().collect();
        let confine = || confine::confine(&programs);
        let mut kernel = host.spawn_confined(&mut settings.command(), confine)?;
        let pidfd = pidfd_open(Pid::from_child(&kernel), PidfdFlags::empty());
        if let Some(cpu) = settings.cpu {
            // Elsewhere it only takes longer.
            let _ = sys::cpu::pin(Some(Pid::from_child(&kernel)), cpu);
        }
        let ends = hub::Ends {
            kernel: pidfd.map_err(io::Error::from).map_err(prepare("open the kernel's pidfd"))?,
            from_guest: kernel.stdout.take().expect("it is piped").into(),
            to_guest: kernel.stdin.take().expect("it is piped").into(),
            listener,
            owner: theirs,
            events: sender,
        };
        // Output that is not read yet makes the guest wait, which in virtual time it should
        // not notice. Where the limit is lower, the pipe stays as it is.
        let _ = rustix::pipe::fcntl_setpipe_size(&ends.from_guest, 1 << 20);
        let messages = Arc::default();
        let stderr = kernel.stderr.take().expect("it is piped");
        let keeper = keep_messages(stderr, Arc::clone(&messages));
        let keeper = keeper.map_err(prepare("start a thread"))?;
        let hub = Some(hub::start(host.name(), ends).map_err(prepare("start the hub"))?);
        let exec = settings.exec.clone();
        Ok(Self { owner, orders, kernel, hub, events, messages, keeper, exec, host })
    }

    /// Waits until the guest takes orders, or begins with its script.
    pub fn await_ready(&mut self, patience: Duration) -> Result<(), LabError> {
        match self.events.recv_timeout(patience) {
            Ok(_) => Ok(()),
            Err(RecvTimeoutError::Timeout) => Err(LabError::refused(format!(
                "boot guest {}: it is not ready after {patience:?}; {}",
                self.host.name(),
                last_words(&self.messages())
            ))),
            Err(RecvTimeoutError::Disconnected) => Err(self.ended(false)),
        }
    }

    /// Why a guest has no more [events](Self::events), if it was not the end of its script:
    /// `ready` if it had come so far.
    ///
    /// Waits for the kernel, which closes its console a moment before it ends, and kills one that
    /// goes on.
    pub fn ended(&mut self, ready: bool) -> LabError {
        let guest = self.host.name().to_owned();
        if !self.await_end(END_WITHIN) {
            let what = format!("(killed: it had not ended {END_WITHIN:?} after its console)");
            self.messages.lock().unwrap_or_else(PoisonError::into_inner).push_back(what);
            // Waiting for it shows what became of it.
            let _ = self.kernel.kill();
        }
        let ended = self.kernel.wait();
        // What it said last may not have been read yet. A helper that outlives it may say more.
        let deadline = Instant::now() + LAST_WORDS;
        while !self.keeper.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let status = match ended {
            Ok(status) => status,
            Err(cause) => return prepare_error(&guest, "wait for the kernel", cause),
        };
        let messages = self.messages();
        let (boot, words) =
            if ready { ("", last_words(&messages)) } else { ("boot ", first_words(&messages)) };
        LabError::refused(format!("{boot}guest {guest}: its kernel has ended ({status}); {words}"))
    }

    /// What a guest with a script does: the number of the program and what became of it.
    ///
    /// The first event is [`GuestEvent::Ready`], which [`Guest::await_ready`] takes. There are no
    /// more when the guest has ended.
    pub fn events(&self) -> &Receiver<(u32, GuestEvent)> {
        &self.events
    }

    /// The last messages of the kernel and of process 1.
    pub fn messages(&self) -> Vec<String> {
        let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        messages.iter().cloned().collect()
    }

    /// The process that is the guest's kernel.
    pub fn kernel_pid(&self) -> u32 {
        self.kernel.id()
    }

    /// The host around the guest.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Whether the guest still runs.
    pub fn is_running(&self) -> bool {
        // Looks without reaping: the status is for the caller that waits for it.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let kernel = Pid::from_child(&self.kernel);
        matches!(waitid(WaitId::Pid(kernel), look), Ok(None))
    }

    /// Waits until the guest has ended by itself. False if it has not.
    pub fn await_end(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while self.is_running() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        !self.is_running()
    }

    /// Asks the guest to power off, and ends it if it has not after `patience`. True if it has.
    pub fn power_off(mut self, patience: Duration) -> bool {
        self.orders.push(GUEST, &Order::PowerOff);
        // A hub that is gone has gone with its guest.
        let _ = self.orders.flush();
        self.await_end(patience)
    }
}

impl Machine for Guest {
    fn name(&self) -> &str {
        self.host.name()
    }

    fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new(self.exec.first().map_or("earmark", String::as_str));
        command.args(self.exec.iter().skip(1)).arg(PROGRAMS).arg(program);
        command
    }

    fn spawn(&self, command: &mut Command) -> Result<Child, LabError> {
        self.host.spawn(command)
    }

    fn end(&self) -> Option<String> {
        let why = || {
            format!(
                "its kernel, process {}, has ended; {}",
                self.kernel_pid(),
                last_words(&self.messages())
            )
        };
        (!self.is_running()).then(why)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // Either is an error only if it has happened already.
        let _ = self.owner.shutdown(Shutdown::Both);
        let _ = self.kernel.kill();
        let _ = self.kernel.wait();
        // The hub does not wait for who takes events any more.
        self.events = hub::events().1;
        if let Some(hub) = self.hub.take() {
            let _ = hub.join();
        }
    }
}

fn prepare_error(guest: &str, what: &str, cause: io::Error) -> LabError {
    let remedy = "check the limits on processes and open files: ulimit -u -n";
    LabError::new(format!("{what} for guest {guest}"), cause, remedy)
}

/// Keeps the last lines of the kernel's messages, until it ends.
fn keep_messages(
    stderr: impl Read + Send + 'static,
    messages: Arc<Mutex<VecDeque<String>>>,
) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("guest-messages".to_owned()).spawn(move || {
        let mut stderr = BufReader::new(stderr);
        let mut line = Vec::new();
        // Its lines end as those of a terminal do, and need not be text, or end.
        while matches!(stderr.by_ref().take(MAX_LINE).read_until(b'\n', &mut line), Ok(1..)) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            // What explains a panic stands above the addresses that it ends with.
            if text.is_empty() || text.starts_with(' ') {
                continue;
            }
            let mut messages = messages.lock().unwrap_or_else(PoisonError::into_inner);
            messages.push_back(text);
            if messages.len() > KEPT_LINES {
                messages.pop_front();
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn init_that_may_not_be_executed_is_named_with_what_to_do() {
        let said = "Kernel panic - not syncing: Requested init /a/earmark failed (error -13).";
        let words = first_words(&[said.to_owned()]);
        assert!(words.contains("/a/earmark") && words.ends_with("chmod a+rx PROGRAM"), "{words}");
    }

    #[test]
    fn messages_of_a_kernel_are_bounded() {
        let messages = Arc::<Mutex<VecDeque<String>>>::default();
        let endless = io::repeat(b'x').take(100 * MAX_LINE);
        let said = endless.chain(&b"\r\n  address\r\n\xffthe end\r\n"[..]);
        keep_messages(said, Arc::clone(&messages)).unwrap().join().unwrap();
        let messages = messages.lock().unwrap();
        assert_eq!(messages.len(), KEPT_LINES);
        assert!(messages.iter().all(|line| line.len() as u64 <= MAX_LINE));
        assert_eq!(messages.back().unwrap(), "\u{fffd}the end");
    }
}

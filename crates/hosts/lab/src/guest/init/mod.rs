//! Process 1 of a guest: `earmark guest-init`.
//!
//! It makes the guest what its settings say, reports that it is ready, and then carries out orders:
//! from the console, or, in virtual time, from a script that came with the settings. It reaps
//! whatever ends, and powers off when it is ordered to, when the console is closed, or at the end
//! of the script.
//!
//! It is one loop on one thread. What a program writes is only read if the console has room, one
//! piece at a time and in turns, so a chatty program delays its neighbours but does not stop them.

mod error;
mod modules;
mod program;
mod script;
mod setup;
mod signal;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::process::{WaitOptions, wait};
use rustix::system::{RebootCommand, reboot};
use rustix::termios::{OptionalActions, tcdrain, tcgetattr, tcsetattr};

use super::channel::{Channel, message};
use super::protocol::{GUEST, GuestEvent, Order, OutputStream, Status};
use super::waiter::Waiter;
pub use error::InitError;
use error::doing;
use program::Program;
use script::Script;

/// How much may wait for the console before programs have to wait, too.
const BUSY: usize = 64 * 1024;

/// How often a program that has ended is looked after while something keeps its terminal open.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Is process 1 until the guest ends. Returns only what went wrong, which the caller should print:
/// the guest's standard error is kept by those who started it.
pub fn run() -> InitError {
    if rustix::process::getpid().as_raw_nonzero().get() != 1 {
        return InitError { what: "be process 1: this is no guest".into(), cause: None };
    }
    let outcome = setup::settings().and_then(|settings| {
        setup::setup(&settings)?;
        let script = settings.script.clone();
        let init = Init::new(script).map_err(doing("open the console"))?;
        init.run().map_err(doing("serve the console"))?;
        setup::disconnect(&settings)
    });
    match outcome {
        Ok(()) => {
            let error = reboot(RebootCommand::PowerOff).err().map(io::Error::from);
            InitError { what: "power off".into(), cause: error }
        }
        Err(error) => error,
    }
}

/// Ends the guest at once, after whatever was printed.
pub fn power_off() {
    // What it said to the console may still be on its way.
    let _ = tcdrain(rustix::stdio::stderr());
    let _ = reboot(RebootCommand::PowerOff);
}

#[derive(Clone, Copy)]
enum Peer {
    Orders,
    Console,
    Children,
    TimedCommand,
    Input(u32),
    Output(u32, OutputStream),
}

struct Init {
    console: Channel,
    /// Readable when a child has ended.
    children: UnixStream,
    programs: BTreeMap<u32, Program>,
    script: Option<Script>,
    is_over: bool,
}

impl Init {
    fn new(cues: Option<Vec<super::protocol::TimedCommand>>) -> io::Result<Self> {
        let (children, notify) = UnixStream::pair()?;
        children.set_nonblocking(true)?;
        signal_hook::low_level::pipe::register(libc::SIGCHLD, notify)?;
        let script = cues.map(Script::new).transpose()?;
        let mut init = Self {
            console: console()?,
            children,
            programs: BTreeMap::new(),
            script,
            is_over: false,
        };
        init.console.greet();
        init.console.push(GUEST, &GuestEvent::Ready);
        Ok(init)
    }

    fn run(mut self) -> io::Result<()> {
        while !self.is_over {
            self.reap();
            self.settle();
            if self.script.as_ref().is_some_and(Script::is_over) && self.programs.is_empty() {
                break;
            }
            for peer in self.wait()? {
                self.serve(peer)?;
            }
        }
        for program in self.programs.values() {
            program.signal(libc::SIGKILL, true);
        }
        self.console.push(GUEST, &GuestEvent::PoweringOff);
        while let Some(output) = self.console.output() {
            let mut waiter = Waiter::new();
            waiter.writable(output, ());
            waiter.wait(None)?;
            self.console.flush()?;
        }
        tcdrain(self.console.input()).map_err(Into::into)
    }

    fn wait(&self) -> io::Result<Vec<Peer>> {
        let mut waiter = Waiter::new();
        waiter.readable(self.children.as_fd(), Peer::Children);
        match &self.script {
            None => waiter.readable(self.console.input(), Peer::Orders),
            Some(script) => {
                if let Some(timer) = script.timer() {
                    waiter.readable(timer, Peer::TimedCommand);
                }
            }
        }
        if let Some(output) = self.console.output() {
            waiter.writable(output, Peer::Console);
        }
        let mut timeout = None;
        for (&number, program) in &self.programs {
            if let Some(input) = program.wants_to_write() {
                waiter.writable(input, Peer::Input(number));
            }
            if self.console.backlog() < BUSY {
                for (stream, output) in program.wants_to_read() {
                    waiter.readable(output, Peer::Output(number, stream));
                }
            }
            if program.is_lingering() {
                timeout = Some(POLL_INTERVAL);
            }
        }
        waiter.wait(timeout)
    }

    fn serve(&mut self, peer: Peer) -> io::Result<()> {
        match peer {
            Peer::Orders => {
                match self.console.fill()? {
                    // Room for as many more.
                    Some(count) => self.console.push(GUEST, &GuestEvent::Credit(count as u64)),
                    None => self.is_over = true,
                }
                while let Some((program, bytes)) = self.console.next()? {
                    self.obey(program, message(&bytes)?);
                }
            }
            Peer::Console => self.console.flush()?,
            Peer::Children => drop(rustix::io::read(&self.children, &mut [0; 64])),
            Peer::TimedCommand => {
                let due = self.script.as_mut().map(Script::due).transpose()?;
                for cue in due.into_iter().flatten() {
                    self.obey(cue.program, cue.order);
                }
            }
            Peer::Input(number) => {
                let event = self.programs.get_mut(&number).and_then(Program::write);
                self.tell(number, event);
            }
            Peer::Output(number, stream) => {
                let event = self.programs.get_mut(&number).and_then(|program| program.read(stream));
                self.tell(number, event);
            }
        }
        Ok(())
    }

    fn tell(&mut self, number: u32, event: Option<GuestEvent>) {
        if let Some(event) = event {
            self.console.push(number, &event);
        }
    }

    fn obey(&mut self, number: u32, order: Order) {
        match order {
            Order::PowerOff => self.is_over = true,
            Order::Spawn(spawn) => match Program::start(spawn) {
                Ok(program) => {
                    self.programs.insert(number, program);
                    self.console.push(number, &GuestEvent::Started);
                }
                Err(error) => {
                    let errno = error.raw_os_error().unwrap_or(libc::EIO);
                    self.console.push(number, &GuestEvent::Failed(errno));
                }
            },
            order => {
                // Orders may cross the end of their program.
                let Some(program) = self.programs.get_mut(&number) else { return };
                match order {
                    Order::Input(bytes) => program.input(&bytes),
                    Order::CloseInput => program.close_input(),
                    Order::Credit(stream, count) => program.credit(stream, count),
                    Order::CloseOutput(stream) => program.close_output(stream),
                    Order::Resize(size) => program.resize(size),
                    Order::Signal { number, group } => program.signal(number, group),
                    Order::Abandon => program.abandon(),
                    Order::Spawn(_) | Order::PowerOff => unreachable!("they are handled above"),
                }
            }
        }
    }

    /// Takes note of all children that have ended, those that were left to us among them.
    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            let signal = status.terminating_signal().map(Status::Signal);
            let status = signal.or(status.exit_status().map(Status::Code));
            let program = self.programs.values_mut().find(|program| program.pid() == pid);
            if let (Some(program), Some(status)) = (program, status) {
                program.ended(status);
            }
        }
    }

    /// Hands out what programs that have ended have left, and then their status.
    fn settle(&mut self) {
        let console = &mut self.console;
        self.programs.retain(|&number, program| {
            while console.backlog() < BUSY {
                let Some(event) = program.leftover() else { break };
                console.push(number, &event);
            }
            let Some(status) = program.is_settled() else { return true };
            if !program.is_abandoned() {
                console.push(number, &GuestEvent::Exited(status));
            }
            false
        });
    }
}

/// The console that carries orders and events, as a line that changes no byte.
fn console() -> io::Result<Channel> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let console = open("/dev/tty1", flags, Mode::empty())?;
    let mut line = tcgetattr(&console)?;
    line.make_raw();
    tcsetattr(&console, OptionalActions::Now, &line)?;
    Channel::new(console.try_clone()?, console)
}

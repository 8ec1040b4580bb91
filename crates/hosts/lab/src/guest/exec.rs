//! The proxy of a program in a guest: a process of this machine that behaves like it.
//!
//! It hands on its own arguments, environment, working directory and input; it writes what the
//! program writes, passes signals on, and ends as the program ends. So a process that starts
//! the proxy has a child like any other.
//!
//! If input and output are a terminal, the program gets a terminal in the guest, and the one here
//! is made raw: keys travel as bytes and mean what the guest's terminal says they mean. It is
//! restored on every exit but an untimely death by `SIGKILL`.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::io::{Errno, read, write};
use rustix::stdio::{dup2_stdin, stderr, stdin, stdout};
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use super::channel::{Channel, message};
use super::protocol::{GuestEvent, Order, OutputStream, Size, Spawn, WINDOW};
use super::waiter::Waiter;
use sys::signals::register;

/// What a pipe takes at once without blocking if it takes anything.
const CHUNK: usize = 4096;

/// Signals that a terminal sends to a whole process group.
const OF_TERMINALS: [i32; 3] = [SIGINT, SIGQUIT, SIGHUP];

const PASSED_ON: [i32; 7] = [SIGINT, SIGQUIT, SIGHUP, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH];

/// Why a proxy could not do its work, and the exit status that shells give in this case.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ExecError {
    message: String,
    /// 127 for a program that is missing, 126 for one that cannot be started, 125 for the rest.
    pub code: i32,
}

/// Runs a program in the guest whose hub listens at `socket`; its exit status, as a shell tells it.
pub fn run(socket: &Path, words: Vec<OsString>) -> Result<i32, ExecError> {
    let program = words.first().map_or_else(String::new, |word| word.to_string_lossy().into());
    let failed = |code, message| ExecError { message, code };
    let stream = UnixStream::connect(socket).map_err(|cause| {
        let what = "start programs with `earmark lab`, not by hand";
        failed(125, format!("reach the guest: {cause}; {what}"))
    })?;
    let broken = |cause: io::Error| failed(125, format!("run {program} in the guest: {cause}"));
    let mut proxy = Proxy::new(stream).map_err(broken)?;
    // Restores the terminal when it goes.
    let _raw = proxy.terminal.then(RawTerminal::enter).transpose().map_err(broken)?;
    proxy.start(words);
    match proxy.carry() {
        Ok(Ending::Exited(code)) => Ok(code),
        Ok(Ending::Failed(errno)) => {
            let cause = io::Error::from_raw_os_error(errno);
            let code = if errno == libc::ENOENT { 127 } else { 126 };
            let next = "check that it is installed and in PATH";
            Err(failed(code, format!("start {program}: {cause}; {next}")))
        }
        Ok(Ending::Gone) => {
            let why = "or sends more than it may; was it killed?";
            Err(failed(125, format!("the guest has ended before {program}, {why}")))
        }
        Err(cause) => Err(broken(cause)),
    }
}

/// A terminal that passes every key on, until this value goes.
struct RawTerminal {
    before: Termios,
}

impl RawTerminal {
    fn enter() -> io::Result<Self> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(stdin(), OptionalActions::Drain, &raw)?;
        Ok(Self { before })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &self.before);
    }
}

enum Ending {
    Exited(i32),
    Failed(i32),
    Gone,
}

/// What has arrived for one of our outputs and is not written yet.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    closed: bool,
}

impl Pending {
    /// Adds what has arrived: no more than the window has room for.
    fn add(&mut self, bytes: Vec<u8>) -> io::Result<()> {
        if self.closed {
            return Ok(());
        }
        if (self.bytes.len() + bytes.len()) as u64 > WINDOW {
            let what = "the guest sends more output than it may; end it";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        self.bytes.extend(bytes);
        Ok(())
    }
}

struct Proxy {
    guest: Channel,
    signals: SignalDelivery<UnixStream, SignalOnly>,
    terminal: bool,
    /// How much input the guest takes; nothing once the input is at its end.
    room: Option<u64>,
    output: Pending,
    error: Pending,
    ending: Option<Ending>,
}

#[derive(Clone, Copy)]
enum Peer {
    FromGuest,
    ToGuest,
    Signals,
    Input,
    Output(OutputStream),
}

impl Proxy {
    fn new(stream: UnixStream) -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        let signals = register(PASSED_ON, |signals| {
            SignalDelivery::with_pipe(read, write, SignalOnly, signals)
        })?;
        Ok(Self {
            guest: Channel::new(stream.try_clone()?.into(), stream.into())?,
            signals,
            terminal: isatty(stdin()) && isatty(stdout()),
            room: Some(WINDOW),
            output: Pending::default(),
            error: Pending::default(),
            ending: None,
        })
    }

    fn start(&mut self, words: Vec<OsString>) {
        let directory = std::env::current_dir().unwrap_or_else(|_| "/".into());
        let spawn = Spawn {
            words: words.into_iter().map(Into::into).collect(),
            environment: std::env::vars_os()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            directory: directory.into_os_string().into(),
            input: true,
            terminal: self.terminal.then(size),
            window: Some(WINDOW),
        };
        self.guest.push(0, &Order::Spawn(spawn));
    }

    /// Carries bytes back and forth until the program has ended and all it wrote is written.
    fn carry(mut self) -> io::Result<Ending> {
        loop {
            let drained = self.output.bytes.is_empty() && self.error.bytes.is_empty();
            if let Some(ending) = self.ending.take_if(|_| drained) {
                return Ok(ending);
            }
            for peer in self.wait()? {
                match peer {
                    Peer::FromGuest => self.read_guest()?,
                    // A hub that is gone shows in reading.
                    Peer::ToGuest => self.guest.flush().unwrap_or(()),
                    Peer::Signals => self.pass_signals(),
                    Peer::Input => self.take_input()?,
                    Peer::Output(stream) => self.write(stream),
                }
            }
        }
    }

    fn wait(&self) -> io::Result<Vec<Peer>> {
        let mut waiter = Waiter::new();
        waiter.readable(self.signals.get_read().as_fd(), Peer::Signals);
        if self.ending.is_none() {
            waiter.readable(self.guest.input(), Peer::FromGuest);
            if let Some(output) = self.guest.output() {
                waiter.writable(output, Peer::ToGuest);
            }
            // A guest may say that it has room, and read nothing.
            let is_read = (self.guest.backlog() as u64) < WINDOW;
            if is_read && self.room.is_some_and(|room| room > 0) {
                waiter.readable(stdin(), Peer::Input);
            }
        }
        for (pending, stream) in
            [(&self.output, OutputStream::Output), (&self.error, OutputStream::Error)]
        {
            if !pending.bytes.is_empty() {
                waiter.writable(descriptor(stream), Peer::Output(stream));
            }
        }
        waiter.wait(None)
    }

    fn read_guest(&mut self) -> io::Result<()> {
        if self.guest.fill()?.is_none() {
            self.ending.get_or_insert(Ending::Gone);
        }
        while let Some((_, bytes)) = self.guest.next()? {
            match message(&bytes)? {
                GuestEvent::Output(stream, bytes) => self.pending(stream).add(bytes)?,
                GuestEvent::Credit(count) => {
                    self.room = self.room.map(|room| room.saturating_add(count));
                }
                GuestEvent::InputClosed => {
                    self.room = None;
                    // A process that writes to us finds a broken pipe, as with the program.
                    if !self.terminal {
                        dup2_stdin(std::fs::File::open("/dev/null")?)?;
                    }
                }
                GuestEvent::Exited(status) => self.ending = Some(Ending::Exited(status.code())),
                GuestEvent::Failed(errno) => self.ending = Some(Ending::Failed(errno)),
                GuestEvent::Started | GuestEvent::Ready | GuestEvent::PoweringOff => {}
            }
        }
        Ok(())
    }

    fn take_input(&mut self) -> io::Result<()> {
        let Some(room) = &mut self.room else { return Ok(()) };
        let mut buffer = [0; CHUNK];
        let most = usize::try_from(*room).unwrap_or(CHUNK).min(CHUNK);
        match read(stdin(), &mut buffer[..most]) {
            Ok(count) if count > 0 => {
                *room -= count as u64;
                self.guest.push(0, &Order::Input(buffer[..count].to_vec()));
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The end; also that of a terminal that is gone, and of an input that never was.
            Ok(_) | Err(_) => {
                self.room = None;
                self.guest.push(0, &Order::CloseInput);
            }
        }
        Ok(())
    }

    /// Writes what goes without blocking, and lets the program have as much room again.
    fn write(&mut self, stream: OutputStream) {
        let pending = self.pending(stream);
        let most = pending.bytes.len().min(CHUNK);
        match write(descriptor(stream), &pending.bytes[..most]) {
            Ok(count) => {
                pending.bytes.drain(..count);
                self.guest.push(0, &Order::Credit(stream, count as u64));
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // No process reads it any more. The program finds out as it would without us.
            Err(_) => {
                *pending = Pending { bytes: Vec::new(), closed: true };
                self.guest.push(0, &Order::CloseOutput(stream));
            }
        }
    }

    fn pending(&mut self, stream: OutputStream) -> &mut Pending {
        match stream {
            OutputStream::Output => &mut self.output,
            OutputStream::Error => &mut self.error,
        }
    }

    fn pass_signals(&mut self) {
        for number in self.signals.pending() {
            let order = match number {
                SIGWINCH if self.terminal => Order::Resize(size()),
                SIGWINCH => continue,
                number => Order::Signal { number, group: OF_TERMINALS.contains(&number) },
            };
            self.guest.push(0, &order);
        }
    }
}

fn descriptor(stream: OutputStream) -> BorrowedFd<'static> {
    match stream {
        OutputStream::Output => stdout(),
        OutputStream::Error => stderr(),
    }
}

fn size() -> Size {
    let size = tcgetwinsize(stdin()).ok();
    size.map_or(Size { rows: 24, columns: 80 }, |size| Size {
        rows: size.ws_row,
        columns: size.ws_col,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_beyond_the_window_is_not_kept() {
        let mut pending = Pending::default();
        pending.add(vec![0; WINDOW as usize - 1]).unwrap();
        pending.add(vec![0]).unwrap();
        assert!(pending.add(vec![0]).unwrap_err().to_string().contains("more output than it may"));
        assert_eq!(pending.bytes.len() as u64, WINDOW);
    }
}

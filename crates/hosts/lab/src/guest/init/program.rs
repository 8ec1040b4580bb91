//! A program in the guest, seen by process 1.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::process::{Pid, ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::signal::send_signal;
use crate::guest::protocol::{GuestEvent, OutputStream, Size, Spawn, Status};

/// How much of an output is read at once: what the console takes at once.
const CHUNK: usize = 4000;

/// How long the last words of a program may take through a terminal that something else keeps open.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What a program writes, until it has closed it.
struct ProgramOutput {
    descriptor: OwnedFd,
    /// How many bytes may still be read of it; without limit if absent.
    room: Option<u64>,
}

pub(super) struct Program {
    pid: Pid,
    has_terminal: bool,
    /// Where its input goes, and what is to go there; the end of input follows when it is closed.
    input: Option<OwnedFd>,
    waiting: Vec<u8>,
    input_ends: bool,
    output: Option<ProgramOutput>,
    error: Option<ProgramOutput>,
    ended: Option<(Status, Instant)>,
    abandoned: bool,
}

impl Program {
    pub(super) fn start(spawn: Spawn) -> io::Result<Self> {
        let words: Vec<OsString> = spawn.words.into_iter().map(Into::into).collect();
        let [name, arguments @ ..] = &words[..] else {
            return Err(io::Error::from_raw_os_error(libc::ENOENT));
        };
        let mut command = Command::new(name);
        command.args(arguments).env_clear();
        command.envs(
            spawn
                .environment
                .into_iter()
                .map(|(name, value)| (OsString::from(name), OsString::from(value))),
        );
        let directory = OsString::from(spawn.directory);
        let is_there = Path::new(&directory).is_dir();
        command.current_dir(if is_there { directory } else { "/".into() });
        match spawn.terminal {
            Some(size) => Self::start_on_terminal(command, size, spawn.window),
            None => Self::start_on_pipes(command, spawn.input, spawn.window),
        }
    }

    fn start_on_pipes(mut command: Command, input: bool, window: Option<u64>) -> io::Result<Self> {
        command.stdin(if input { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        // A signal for its group must not reach us.
        let mut child = command.process_group(0).spawn()?;
        let pid = Pid::from_child(&child);
        let input = child.stdin.take().map(OwnedFd::from);
        let output = child.stdout.take().map(OwnedFd::from);
        let error = child.stderr.take().map(OwnedFd::from);
        let all = [&input, &output, &error];
        all.into_iter().flatten().try_for_each(|descriptor| ioctl_fionbio(descriptor, true))?;
        let limited = |descriptor| ProgramOutput { descriptor, room: window };
        Ok(Self {
            output: output.map(limited),
            error: error.map(limited),
            ..Self::new(pid, false, input)
        })
    }

    fn start_on_terminal(
        mut command: Command,
        size: Size,
        window: Option<u64>,
    ) -> io::Result<Self> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let theirs = ioctl_tiocgptpeer(&ours, flags)?;
        tcsetwinsize(&ours, winsize(size))?;
        command.stdin(theirs.try_clone()?).stdout(theirs.try_clone()?).stderr(theirs);
        let lead_session = || {
            setsid()?;
            ioctl_tiocsctty(rustix::stdio::stdin())?;
            Ok(())
        };
        // SAFETY: between fork and exec it makes two system calls and touches no memory. Only the
        // child itself can start a session and make the terminal that of its session.
        unsafe { command.pre_exec(lead_session) };
        let child = command.spawn()?;
        // The command has the other end open, too, and would hide that the program closed its own.
        drop(command);
        ioctl_fionbio(&ours, true)?;
        let output = ProgramOutput { descriptor: ours.try_clone()?, room: window };
        Ok(Self { output: Some(output), ..Self::new(Pid::from_child(&child), true, Some(ours)) })
    }

    fn new(pid: Pid, has_terminal: bool, input: Option<OwnedFd>) -> Self {
        Self {
            pid,
            has_terminal,
            input,
            waiting: Vec::new(),
            input_ends: false,
            output: None,
            error: None,
            ended: None,
            abandoned: false,
        }
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    pub(super) fn input(&mut self, bytes: &[u8]) {
        if self.input.is_some() {
            self.waiting.extend(bytes);
        }
    }

    pub(super) fn close_input(&mut self) {
        self.input_ends = true;
        self.close_finished_input();
    }

    /// A terminal stays open: it is the output, too.
    fn close_finished_input(&mut self) {
        if self.input_ends && self.waiting.is_empty() && !self.has_terminal {
            self.input = None;
        }
    }

    pub(super) fn wants_to_write(&self) -> Option<BorrowedFd<'_>> {
        self.input.as_ref().filter(|_| !self.waiting.is_empty()).map(AsFd::as_fd)
    }

    /// Writes input as far as the program takes it; what is to be reported.
    pub(super) fn write(&mut self) -> Option<GuestEvent> {
        let input = self.input.as_ref()?;
        match write(input, &self.waiting) {
            Ok(count) => {
                self.waiting.drain(..count);
                self.close_finished_input();
                Some(GuestEvent::Credit(count as u64))
            }
            Err(Errno::AGAIN | Errno::INTR) => None,
            Err(_) => {
                self.waiting.clear();
                self.input = None;
                Some(GuestEvent::InputClosed)
            }
        }
    }

    fn outputs(&mut self, stream: OutputStream) -> &mut Option<ProgramOutput> {
        match stream {
            OutputStream::Output => &mut self.output,
            OutputStream::Error => &mut self.error,
        }
    }

    pub(super) fn credit(&mut self, stream: OutputStream, count: u64) {
        if let Some(output) = self.outputs(stream) {
            output.room = output.room.map(|room| room + count);
        }
    }

    pub(super) fn close_output(&mut self, stream: OutputStream) {
        *self.outputs(stream) = None;
    }

    /// The outputs that may be read.
    pub(super) fn wants_to_read(&self) -> impl Iterator<Item = (OutputStream, BorrowedFd<'_>)> {
        let both = [(OutputStream::Output, &self.output), (OutputStream::Error, &self.error)];
        both.into_iter().filter_map(|(stream, output)| {
            let output = output.as_ref().filter(|output| output.room != Some(0))?;
            Some((stream, output.descriptor.as_fd()))
        })
    }

    /// Reads some output; what is to be reported.
    pub(super) fn read(&mut self, stream: OutputStream) -> Option<GuestEvent> {
        let output = self.outputs(stream).as_mut()?;
        let room = output.room.and_then(|room| usize::try_from(room).ok()).unwrap_or(CHUNK);
        let mut buffer = [0; CHUNK];
        match read(&output.descriptor, &mut buffer[..room.min(CHUNK)]) {
            // A read of no bytes is no end.
            _ if room == 0 => None,
            Ok(count) if count > 0 => {
                output.room = output.room.map(|room| room - count as u64);
                Some(GuestEvent::Output(stream, buffer[..count].to_vec()))
            }
            Err(Errno::AGAIN | Errno::INTR) => None,
            // The end of a pipe, or of a terminal, which says EIO.
            Ok(_) | Err(_) => {
                *self.outputs(stream) = None;
                None
            }
        }
    }

    pub(super) fn resize(&self, size: Size) {
        if let (true, Some(terminal)) = (self.has_terminal, &self.output) {
            // A terminal that is just being closed needs no size.
            let _ = tcsetwinsize(&terminal.descriptor, winsize(size));
        }
    }

    pub(super) fn signal(&self, number: i32, group: bool) {
        // Its number may belong to somebody else by now.
        if self.ended.is_none() {
            send_signal(self.pid, number, group);
        }
    }

    pub(super) fn abandon(&mut self) {
        self.signal(libc::SIGKILL, true);
        self.abandoned = true;
        (self.input, self.output, self.error) = (None, None, None);
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    pub(super) fn ended(&mut self, status: Status) {
        self.ended = Some((status, Instant::now()));
    }

    /// What a program that has ended has left in its outputs, one piece at a time.
    ///
    /// Others may have inherited an output and keep it open, but what they write after the
    /// program's end is not the program's. What is in a pipe at that moment, is; a terminal may
    /// still be about to pass it on.
    pub(super) fn leftover(&mut self) -> Option<GuestEvent> {
        let (_, moment) = self.ended?;
        for stream in [OutputStream::Output, OutputStream::Error] {
            if let Some(event) = self.read(stream) {
                return Some(event);
            }
            let patient = self.has_terminal && moment.elapsed() < LAST_WORDS;
            if let Some(ProgramOutput { room: None | Some(1..), .. }) = self.outputs(stream)
                && !patient
            {
                *self.outputs(stream) = None;
            }
        }
        None
    }

    /// Whether it has ended and something else keeps its terminal open.
    pub(super) fn is_lingering(&self) -> bool {
        self.ended.is_some() && self.has_terminal
    }

    /// Its status, if it has ended and all it wrote was handed out.
    pub(super) fn is_settled(&self) -> Option<Status> {
        let settled = self.output.is_none() && self.error.is_none();
        self.ended.filter(|_| settled).map(|(status, _)| status)
    }
}

fn winsize(size: Size) -> Winsize {
    Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 }
}

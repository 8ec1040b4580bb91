//! The clock of one guest.

use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use base::time::Instant;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::message::{Message, Op, SIZE};
use super::shared::Shared;
use super::{BEGINNING_OF_TIME, NEVER};

/// What a guest's clock is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not connected yet.
    Absent,
    /// It has introduced itself, and waits until it may begin.
    Starting(u32),
    /// The guest runs, and time stands still.
    Running,
    /// The guest waits for its turn.
    Waiting,
    /// It is gone.
    Gone,
}

/// The calendar's end of one guest's clock.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) name: String,
    listener: UnixListener,
    stream: Option<UnixStream>,
    pub(super) state: State,
    /// When the guest wants to run next, if it has said so by a message.
    pub(super) request: Option<Instant>,
    seq: u32,
    unread: Vec<u8>,
}

impl Client {
    pub(super) fn new(name: String, listener: UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let state = State::Absent;
        Ok(Self { name, listener, stream: None, state, request: None, seq: 0, unread: Vec::new() })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.stream.as_ref().map_or_else(|| self.listener.as_fd(), AsFd::as_fd)
    }

    /// Takes the guest's connection; whether it has come.
    pub(super) fn accept(&mut self) -> io::Result<bool> {
        if self.stream.is_some() {
            return Ok(false);
        }
        let (stream, _) = match self.listener.accept() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            accepted => accepted?,
        };
        stream.set_nonblocking(true)?;
        self.stream = Some(stream);
        Ok(true)
    }

    /// Reads what the guest has said and answers it; `now` becomes the guest's if it says so.
    ///
    /// Turns of one that shares memory are not acknowledged.
    pub(super) fn listen(&mut self, now: &mut Instant, shares: bool) -> Result<(), String> {
        let mut bytes = [0; 64 * SIZE];
        let Some(stream) = &mut self.stream else { return Ok(()) };
        match stream.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => {
                self.state = State::Gone;
                self.request = None;
                return Ok(());
            }
            Ok(count) => self.unread.extend_from_slice(&bytes[..count]),
        }
        let whole = self.unread.len() - self.unread.len() % SIZE;
        let messages: Vec<u8> = self.unread.drain(..whole).collect();
        for bytes in messages.chunks_exact(SIZE) {
            let bytes = bytes.first_chunk().copied().unwrap_or_default();
            let message = Message::from_bytes(bytes).ok_or_else(|| {
                format!("guest {}: unknown message {bytes:?} from its clock", self.name)
            })?;
            self.obey(message, now, shares)?;
        }
        Ok(())
    }

    fn obey(&mut self, message: Message, now: &mut Instant, shares: bool) -> Result<(), String> {
        let mut answer = 0;
        match message.op {
            Op::Ack => return Ok(()),
            Op::Start => {
                self.state = State::Starting(message.seq);
                return Ok(());
            }
            Op::Request => {
                let wanted = Instant::from_nanos(message.time);
                self.request = (wanted < NEVER).then_some(wanted.max(*now));
            }
            Op::Wait => {
                self.state = State::Waiting;
                if shares {
                    return Ok(());
                }
            }
            Op::Get => answer = now.as_nanos(),
            Op::Update if message.time >= NEVER.as_nanos() => {
                return Err(format!("guest {}: its clock says that time has ended", self.name));
            }
            Op::Update => *now = Instant::from_nanos(message.time).max(*now),
            Op::GetTimeOfDay => answer = BEGINNING_OF_TIME + now.as_nanos(),
            Op::Run | Op::FreeUntil => {
                return Err(format!("guest {}: its clock sent {:?}", self.name, message.op));
            }
        }
        self.say(message.ack(answer));
        Ok(())
    }

    /// Lets a guest that has introduced itself begin, as number `number` of those that share
    /// memory.
    pub(super) fn begin(&mut self, number: u16, shared: &Shared) -> io::Result<()> {
        let State::Starting(seq) = self.state else { return Ok(()) };
        let Some(stream) = &self.stream else { return Ok(()) };
        self.state = State::Running;
        // The kernel takes two descriptors, for shared memory and for a log that it does not write.
        let log = File::open("/dev/null")?;
        let fds = [shared.fd(), log.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        let ack = Message { op: Op::Ack, seq, time: number.into() }.to_bytes();
        sendmsg(stream, &[IoSlice::new(&ack)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Whether its time has begun, or is over.
    pub(super) fn has_begun(&self) -> bool {
        !matches!(self.state, State::Absent | State::Starting(_))
    }

    /// Whether time has to wait: the guest runs, or has still to come.
    pub(super) fn holds_time(&self) -> bool {
        !matches!(self.state, State::Waiting | State::Gone)
    }

    pub(super) fn run(&mut self, now: Instant) {
        self.request = None;
        self.state = State::Running;
        self.seq += 1;
        self.say(Message { op: Op::Run, seq: self.seq, time: now.as_nanos() });
    }

    /// A guest that is gone will be noticed when it is next listened to.
    fn say(&mut self, message: Message) {
        if let Some(stream) = &mut self.stream {
            let _ = stream.write_all(&message.to_bytes());
        }
    }
}

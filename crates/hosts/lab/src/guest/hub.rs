//! The multiplexer between a guest's console and those who have programs in it.
//!
//! One thread of this process passes frames on. On one side is the console; on the other a
//! connection for each program, whose first order is to start it. The connection's number becomes
//! the number of the program. A connection that ends before its program takes the program with it.
//!
//! ```text
//! earmark guest-exec ──socket──┐
//! earmark guest-exec ──socket──┤ hub ──console── init (process 1 of the guest) ── programs
//! this process ─────socketpair─┘
//! ```
//!
//! Nothing here can grow without bounds: connections that may send are those whose console has
//! room. What the guest sends is bounded by the windows of its programs, and a program that sends
//! more is given up. While events of the guest are not taken, its console is not read.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::channel::{Channel, message};
use super::protocol::{GUEST, GuestEvent, Order};
use super::waiter::Waiter;
use sys::streams::is_lack;

/// How much may wait for the console before connections have to wait, too.
const BUSY: usize = 64 * 1024;

/// How many bytes the guest's console may have taken that process 1 has not read.
///
/// A terminal that has 4096 asks its driver to wait, and that of User-Mode Linux, up to this day,
/// does not come back from that: it reads no more, ever. So it must not come to that.
const CONSOLE_ROOM: usize = 3072;

/// The longest event of a guest, in bytes: a piece of output has 4000.
const LONGEST_EVENT: usize = 8 * 1024;

/// How many events may wait for who takes them, before those on the console have to wait, too.
const EVENTS: usize = 4096;

/// How much may wait for a connection whose program keeps to its windows: both outputs in pieces of
/// a byte take less.
const UNTAKEN: usize = 4 << 20;

/// The most that is read of a console whose kernel has ended: what its pipe holds.
const REST: usize = 1 << 20;

/// How long it takes until what found no room, or could not be accepted, is tried again.
const PAUSE: Duration = Duration::from_millis(2);

/// The number of a program, and what became of it.
pub(super) type ProgramEvent = (u32, GuestEvent);

/// A way for events about the guest itself, and about programs that no connection has started.
pub(super) fn events() -> (SyncSender<ProgramEvent>, Receiver<ProgramEvent>) {
    sync_channel(EVENTS)
}

pub(super) struct Ends {
    /// The process that is the guest's kernel. Helpers of it may outlive it and keep its console
    /// open, so that alone does not tell its end.
    pub(super) kernel: OwnedFd,
    pub(super) from_guest: OwnedFd,
    pub(super) to_guest: OwnedFd,
    /// Where programs come from.
    pub(super) listener: UnixListener,
    /// Orders to the guest itself; its end ends the hub.
    pub(super) owner: UnixStream,
    /// Events about the guest itself, and about programs that no connection has started.
    pub(super) events: SyncSender<ProgramEvent>,
}

pub(super) fn start(name: &str, ends: Ends) -> io::Result<JoinHandle<()>> {
    let mut console = Channel::new(ends.from_guest, ends.to_guest)?;
    console.allow(CONSOLE_ROOM);
    let hub = Hub {
        kernel: ends.kernel,
        console,
        owner: Channel::new(ends.owner.try_clone()?.into(), ends.owner.into())?,
        listener: ends.listener,
        events: ends.events,
        untaken: VecDeque::new(),
        accepts: true,
        greeted: false,
        clients: BTreeMap::new(),
        last: GUEST,
    };
    hub.listener.set_nonblocking(true)?;
    // The end of the hub closes the console and all connections, so all clients notice.
    thread::Builder::new().name(format!("hub-{name}")).spawn(move || drop(hub.run()))
}

struct Hub {
    kernel: OwnedFd,
    console: Channel,
    owner: Channel,
    listener: UnixListener,
    events: SyncSender<ProgramEvent>,
    untaken: VecDeque<ProgramEvent>,
    /// Whether connections are accepted: not right after one that could not be.
    accepts: bool,
    greeted: bool,
    clients: BTreeMap<u32, Channel>,
    last: u32,
}

#[derive(Clone, Copy)]
enum Peer {
    Kernel,
    FromGuest,
    ToGuest,
    Owner,
    Listener,
    FromClient(u32),
    ToClient(u32),
}

impl Hub {
    fn run(mut self) -> io::Result<()> {
        loop {
            let ready = self.wait()?;
            self.accepts = true;
            self.pass_events();
            for peer in ready {
                match peer {
                    Peer::Kernel => return self.drain(),
                    Peer::FromGuest => {
                        if self.console.fill()?.is_none() {
                            return Ok(());
                        }
                        self.read_guest()?;
                    }
                    Peer::ToGuest => self.console.flush()?,
                    Peer::Owner => {
                        if self.owner.fill()?.is_none() {
                            return Ok(());
                        }
                        while let Some((program, bytes)) = self.owner.next()? {
                            self.console.pass(program, &bytes);
                        }
                    }
                    Peer::Listener => self.accept(),
                    Peer::FromClient(number) => self.read_client(number),
                    Peer::ToClient(number) => {
                        let client = self.clients.get_mut(&number);
                        if client.is_some_and(|client| client.flush().is_err()) {
                            self.leave(number);
                        }
                    }
                }
            }
        }
    }

    fn wait(&self) -> io::Result<Vec<Peer>> {
        let mut waiter = Waiter::new();
        if self.untaken.is_empty() {
            waiter.readable(self.console.input(), Peer::FromGuest);
        }
        waiter.readable(self.kernel.as_fd(), Peer::Kernel);
        waiter.readable(self.owner.input(), Peer::Owner);
        // Before the greeting the console echoes whatever is written to it.
        if self.greeted {
            if self.accepts {
                waiter.readable(self.listener.as_fd(), Peer::Listener);
            }
            if let Some(output) = self.console.output() {
                waiter.writable(output, Peer::ToGuest);
            }
        }
        for (&number, client) in &self.clients {
            if self.console.backlog() < BUSY {
                waiter.readable(client.input(), Peer::FromClient(number));
            }
            if let Some(output) = client.output() {
                waiter.writable(output, Peer::ToClient(number));
            }
        }
        let is_waiting = self.untaken.is_empty() && self.accepts;
        waiter.wait((!is_waiting).then_some(PAUSE))
    }

    fn read_guest(&mut self) -> io::Result<()> {
        if !self.greeted {
            self.greeted = self.console.is_greeted();
            if !self.greeted {
                return Ok(());
            }
        }
        while let Some((program, bytes)) = self.console.next()? {
            if bytes.len() > LONGEST_EVENT {
                let what = format!("an event of {} bytes is none", bytes.len());
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            if let Some(client) = self.clients.get_mut(&program) {
                client.pass(program, &bytes);
                if client.backlog() > UNTAKEN {
                    self.leave(program);
                }
            } else if program == GUEST || program > self.last {
                match message(&bytes)? {
                    GuestEvent::Credit(bytes) if program == GUEST => {
                        self.console.allow(usize::try_from(bytes).unwrap_or(0));
                    }
                    event => self.untaken.push_back((program, event)),
                }
            }
        }
        self.pass_events();
        Ok(())
    }

    fn pass_events(&mut self) {
        while let Some(event) = self.untaken.pop_front() {
            // Without a receiver, events are dropped.
            if let Err(TrySendError::Full(event)) = self.events.try_send(event) {
                return self.untaken.push_front(event);
            }
        }
    }

    /// The kernel has ended: passes on what it said before.
    fn drain(mut self) -> io::Result<()> {
        let mut left = REST;
        while left > 0
            && let Some(count) = self.console.fill()?.filter(|count| *count > 0)
        {
            left = left.saturating_sub(count);
            self.read_guest()?;
        }
        for client in self.clients.values_mut() {
            // One that does not take it has gone, or does not look.
            let _ = client.flush();
        }
        // They hear of the end before anybody is waited for.
        self.clients.clear();
        self.untaken.into_iter().try_for_each(|event| self.events.send(event)).unwrap_or(());
        Ok(())
    }

    fn accept(&mut self) {
        let stream = match self.listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) => {
                self.accepts = !is_lack(&error);
                return;
            }
        };
        let channel = stream.try_clone().and_then(|same| Channel::new(same.into(), stream.into()));
        if let Ok(channel) = channel {
            self.last += 1;
            self.clients.insert(self.last, channel);
        }
    }

    fn read_client(&mut self, number: u32) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        let goes_on = matches!(client.fill(), Ok(Some(_)));
        while let Ok(Some((_, bytes))) = client.next() {
            self.console.pass(number, &bytes);
        }
        if !goes_on {
            self.leave(number);
        }
    }

    /// A connection has ended; if its program has ended before, the guest does not mind.
    fn leave(&mut self, number: u32) {
        if self.clients.remove(&number).is_some() {
            self.console.push(number, &Order::Abandon);
        }
    }
}

#[cfg(test)]
mod tests;

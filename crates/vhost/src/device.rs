//! The device: a listening socket, at most one guest, and the rings of its queue pairs.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

use base::time::Instant;
use nic::port::Port;
use rustix::event::{Timespec, epoll};

use super::command::AskedAt;
use super::config::DeviceSettings;
use super::connection::Connection;
use super::message::{Header, Request};
use super::notify::Watched;
use super::reaper::ForeignFd;
use super::receive::Receiver;
use super::ring::Chain;
use super::send::Sender;
use super::session::{Answer, ProtocolViolation, Session, Watching};
use hostside::processor::{Busy, Processor};
use hostside::trace::Watch;
use hostside::{Attachment, Fetched, HostSide, Service, VirtualHost};

/// What the device's epoll reports.
const LISTENER: u64 = 0;
const CONNECTION: u64 = 1;
const BACKEND: u64 = 2;
/// A kick of whatever ring: all are looked at anyway.
const KICK: u64 = 3;
/// The end of the process that has connected.
const PROCESS: u64 = 4;

/// Messages, and control commands, that are taken in one round: other ports wait meanwhile.
const BATCH: usize = 16;

/// Descriptors and mappings that wait to be closed, at which a frontend is sent away.
const MAX_UNCLOSED: usize = 512;

/// The largest number of queue pairs: their rings have numbers of 8 bits in messages.
const MAX_PAIRS: u16 = 64;

/// A virtio-net device that a vhost-user frontend can connect to: the host's side of a port.
///
/// Its port has as many queues as the device has pairs. Receive ring `2 i` and transmit ring
/// `2 i + 1` belong to queue `i`.
#[derive(Debug)]
pub struct Device {
    settings: DeviceSettings,
    listener: UnixListener,
    /// Connections are accepted. They are not while too much waits to be closed.
    accepts: bool,
    watching: Watching,
    guest: Option<Guest>,
    lost: Option<String>,
    receivers: Vec<Receiver>,
    senders: Vec<Sender>,
    /// The transmit queue whose turn it is.
    turn: usize,
    /// What went wrong where it could not be acted upon.
    violation: Option<ProtocolViolation>,
    /// Pairs that the port spreads its frames over.
    spread: u16,
    /// For each ring: when the interrupt that was raised for it reaches the guest. One that is
    /// raised meanwhile comes with it.
    calls: Vec<Option<Instant>>,
    /// Rings whose interrupts wait for the guest's turn.
    raised: Vec<usize>,
    /// The guest's processor, if what it does costs time. Work is for whoever has sent a frame.
    processor: Option<Processor<Vec<u8>>>,
    /// Where in the control ring the guest was last asked to kick.
    command_asked_at: Option<AskedAt>,
    chain: Chain,
}

/// A connected frontend.
#[derive(Debug)]
struct Guest {
    connection: Watched<Connection>,
    session: Session,
    /// The process that connected, where it can be seen from here.
    _process: Option<Watched<OwnedFd>>,
    /// It has ended.
    has_ended: bool,
    /// An answer that waits until what was kicked has been taken.
    owed: Option<Vec<u8>>,
    /// Pairs that the guest uses, if it says so by a command.
    pairs: u16,
}

impl Device {
    /// A device that waits for a frontend on `listener`.
    ///
    /// # Errors
    /// If the socket cannot be watched.
    pub fn new(listener: UnixListener, mut settings: DeviceSettings) -> io::Result<Self> {
        settings.pairs = settings.pairs.clamp(1, MAX_PAIRS);
        listener.set_nonblocking(true)?;
        let watching = Watching::new(KICK, BACKEND)?;
        let pairs = usize::from(settings.pairs);
        let mut device = Self {
            listener,
            accepts: false,
            watching,
            guest: None,
            lost: None,
            receivers: (0..pairs).map(|_| Receiver::default()).collect(),
            senders: (0..pairs).map(|_| Sender::new(Instant::ZERO)).collect(),
            turn: 0,
            violation: None,
            spread: settings.pairs,
            calls: vec![None; 2 * pairs + 1],
            raised: Vec::new(),
            processor: (settings.inband && !settings.costs.are_zero())
                .then(|| Processor::new(settings.costs)),
            command_asked_at: None,
            chain: Chain::default(),
            settings,
        };
        device.watch_listener()?;
        Ok(device)
    }

    fn watch_listener(&mut self) -> io::Result<()> {
        let token = epoll::EventData::new_u64(LISTENER);
        epoll::add(&*self.watching.epoll, &self.listener, token, epoll::EventFlags::IN)?;
        self.accepts = true;
        Ok(())
    }

    /// Whether a frontend is connected.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.guest.is_some()
    }

    /// Why the last guest is gone, if none has come since.
    #[must_use]
    pub fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Frames of the guest that were longer than any port takes.
    #[must_use]
    pub fn too_long(&self) -> u64 {
        self.senders.iter().map(|sender| sender.too_long).sum()
    }

    /// Takes what has come at the descriptors.
    fn listen(&mut self) {
        let mut space = [const { MaybeUninit::uninit() }; 16];
        // Edges of kicks are taken off by this; nothing is to be done for them.
        let waited = epoll::wait(&*self.watching.epoll, &mut space, Some(&Timespec::default()));
        let Ok((events, _)) = waited else { return };
        let has = |token| events.iter().any(|event| event.data.u64() == token);
        let mut outcome = Ok(());
        if has(CONNECTION) {
            outcome = self.converse();
        }
        if has(BACKEND) {
            outcome = outcome.and_then(|()| self.check_backend());
        }
        if let Some(guest) = &mut self.guest {
            guest.has_ended |= has(PROCESS);
        }
        outcome = outcome.and_then(|()| self.check_frontend());
        self.account(outcome);
        // Last, because a guest may come right after the end of the one before.
        if has(LISTENER) {
            self.accept();
        }
    }

    /// Whether the frontend is one to keep.
    fn check_frontend(&self) -> Result<(), ProtocolViolation> {
        let Some(guest) = &self.guest else { return Ok(()) };
        // Its connection would have ended by itself, but for what it has passed. Without that the
        // process may have handed the connection over to another, as managers of machines do.
        if guest.has_ended
            && (guest.session.holds_sockets() || guest.connection.inside.holds_descriptors())
        {
            return Err(ProtocolViolation::Ended);
        }
        if self.watching.reaper.pending() > MAX_UNCLOSED {
            return Err(ProtocolViolation::Unclosed);
        }
        Ok(())
    }

    fn accept(&mut self) {
        while self.watching.reaper.pending() <= MAX_UNCLOSED {
            let Ok((stream, _)) = self.listener.accept() else { return };
            let Watching { epoll, reaper, .. } = &self.watching;
            let connection = Connection::new(ForeignFd::new(stream.into(), reaper));
            if self.guest.is_some() {
                continue; // The port has its guest; this one finds its connection closed.
            }
            let process = process_of(connection.as_fd());
            let process = process.and_then(|fd| Watched::process(epoll, fd, PROCESS).ok());
            if let Ok(connection) = Watched::connection(epoll, connection, CONNECTION) {
                let session = Session::new(&self.settings, self.watching.clone());
                self.guest = Some(Guest {
                    connection,
                    session,
                    _process: process,
                    has_ended: false,
                    owed: None,
                    pairs: 1,
                });
                self.lost = None;
                self.command_asked_at = None;
                self.receivers.iter_mut().for_each(Receiver::forget);
                self.senders.iter_mut().for_each(Sender::forget);
            }
        }
        // Whoever connects now waits until the reaper has caught up.
        self.accepts = epoll::delete(&*self.watching.epoll, &self.listener).is_err();
    }

    /// Obeys messages, until there are none or one has to wait for its answer.
    fn converse(&mut self) -> Result<(), ProtocolViolation> {
        let Some(guest) = &mut self.guest else { return Ok(()) };
        for _ in 0..BATCH {
            if guest.owed.is_some() {
                break;
            }
            let Some(incoming) = guest.connection.inside.receive()? else { break };
            let request = Request::parse(&incoming.header, &incoming.payload)?;
            guest.obey(&incoming.header, request, incoming.fds)?;
        }
        Ok(())
    }

    fn check_backend(&mut self) -> Result<(), ProtocolViolation> {
        self.guest.as_mut().map_or(Ok(()), |guest| guest.session.check_backend())
    }

    /// Ends the connection; the port may be connected anew.
    fn lose(&mut self, violation: &ProtocolViolation) {
        self.guest = None;
        self.lost = Some(violation.to_string());
        self.calls.fill(None);
        self.raised.clear();
    }

    fn account(&mut self, outcome: Result<(), ProtocolViolation>) {
        if let Err(violation) = self.violation.take().map_or(outcome, Err) {
            // Memory that was taken away reads as zeros, in which rules seem to be broken.
            let poisoned = self.guest.as_ref().is_some_and(|guest| guest.session.is_poisoned());
            self.lose(if poisoned { &ProtocolViolation::Poisoned } else { &violation });
        }
    }
}

/// The process at the other end of a socket; none if it is not in sight of ours.
fn process_of(socket: BorrowedFd<'_>) -> Option<OwnedFd> {
    let credentials = rustix::net::sockopt::socket_peercred(socket).ok()?;
    rustix::process::pidfd_open(credentials.pid, rustix::process::PidfdFlags::empty()).ok()
}

impl Guest {
    fn obey(
        &mut self,
        header: &Header,
        request: Request,
        fds: Vec<ForeignFd>,
    ) -> Result<(), ProtocolViolation> {
        match self.session.handle(header, request, fds)? {
            Answer::Nothing => {}
            Answer::Now(message) => self.connection.inside.send(&message)?,
            Answer::WhenServed(message) => self.owed = Some(message),
        }
        Ok(())
    }
}

impl HostSide for Device {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.watching.epoll.as_fd()]
    }

    fn sync(&mut self, now: Instant, ready: bool, port: &mut Port<Vec<u8>>, watch: &mut Watch) {
        if ready {
            self.listen();
        }
        if !self.accepts && self.watching.reaper.pending() == 0 {
            // Without a listener nobody can connect, which shows.
            let _ = self.watch_listener();
        }
        let outcome = self.look(now, port, watch);
        self.account(outcome);
        if self.guest.is_none() {
            port.queues_mut().iter_mut().for_each(|queue| queue.set_size(0));
        }
    }

    fn make_room(&mut self, port: &mut Port<Vec<u8>>) {
        let Some(guest) = &mut self.guest else { return };
        let queues = port.queues_mut().iter_mut().zip(&self.receivers);
        for (pair, (queue, receiver)) in queues.enumerate() {
            let index = 2 * pair;
            if let Some(live) = guest.session.ring(index)
                && let Err(error) = receiver.resize(live.ring, queue)
            {
                self.violation = Some(ProtocolViolation::Ring { index, error });
            }
        }
    }

    fn transmit(&mut self, now: Instant, _: usize, frame: &mut Vec<u8>) -> io::Result<Fetched> {
        Ok(self.take_frame(now, frame).unwrap_or_else(|violation| {
            // The port is closed at the end of the round, when it is at hand.
            self.violation = Some(violation);
            Fetched::Nothing
        }))
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn serve(&mut self, now: Instant, service: &mut Service<'_>) -> io::Result<()> {
        let outcome = self.serve_rings(now, service);
        self.account(outcome);
        if self.guest.is_none() {
            let queues = service.port.queues_mut().iter_mut().zip(&mut self.receivers);
            queues.for_each(|(queue, receiver)| receiver.discard(now, queue, service.pool));
        } else if !self.settings.inband {
            self.raise_irqs(now);
            self.send_irqs();
        }
        Ok(())
    }

    fn evict(&mut self) -> bool {
        let had_guest = self.guest.is_some();
        if had_guest {
            self.lose(&ProtocolViolation::Evicted);
        }
        had_guest
    }

    fn refused(&self) -> u64 {
        self.receivers.iter().map(|receiver| receiver.refused).sum()
    }

    fn attachment(&self) -> Option<Attachment> {
        Some(Attachment {
            connected: self.is_connected(),
            lost: self.lost.clone(),
            pairs_used: if self.is_connected() { self.spread } else { 0 },
            pairs: self.settings.pairs,
            too_long: self.too_long(),
        })
    }

    fn virtual_time(&mut self) -> Option<&mut dyn VirtualHost> {
        if self.settings.inband { Some(self) } else { None }
    }

    fn deadline(&self) -> Option<Instant> {
        self.guest.as_ref()?;
        let senders = self.senders.iter().filter_map(Sender::deadline);
        let receivers = self.receivers.iter().filter_map(Receiver::deadline);
        let work = self.processor.as_ref().and_then(Processor::work_ends_at);
        senders.chain(receivers).chain(work).min()
    }

    fn busy(&self, now: Instant) -> Option<Busy> {
        self.processor.as_ref().map(|processor| processor.busy(now))
    }
}

impl VirtualHost for Device {
    fn next_irq_at(&self) -> Option<Instant> {
        self.calls.iter().flatten().min().copied()
    }

    fn raise_irqs(&mut self, now: Instant) -> bool {
        let mut any = false;
        for (index, call) in self.calls.iter_mut().enumerate() {
            if call.take_if(|at| *at <= now).is_some() {
                any = true;
                if !self.raised.contains(&index) {
                    self.raised.push(index);
                }
            }
        }
        any
    }

    fn send_irqs(&mut self) {
        let Some(guest) = &mut self.guest else { return self.raised.clear() };
        for index in self.raised.drain(..) {
            if let Err(violation) = guest.session.call(index) {
                // A guest that cannot take them loses the port in the next round.
                self.violation = Some(violation);
            }
        }
    }

    fn take_irqs(&mut self) -> u64 {
        // A kernel that finds them in memory has 64 rings at most.
        let bits = self.raised.drain(..).filter_map(|index| 1_u64.checked_shl(index as u32));
        bits.fold(0, |rings, bit| rings | bit)
    }

    fn answer_kick(&mut self) {
        let Some(guest) = &mut self.guest else { return };
        if let Some(owed) = guest.owed.take()
            && let Err(violation) = guest.connection.inside.send(&owed)
        {
            self.violation = Some(violation.into());
        }
    }
}

mod rings;

#[cfg(test)]
mod guest;
#[cfg(test)]
mod tests;

#![doc = include_str!("theory.md")]

mod coalesce;
mod command;
mod config;
mod costs;
mod receive;
mod rings;
mod send;

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixListener;

use base::time::Instant;
use nic::port::Port;
use nic::rss::{DEFAULT_KEY, Indirection, Rss};

use crate::transport::frontend::Frontend;
use crate::transport::ring::{Chain, MAX_SEGMENTS};
use crate::transport::session::ProtocolViolation;
use command::AskedAt;
use hostside::processor::{Busy, Processor};
use hostside::trace::Watch;
use hostside::{Attachment, Fetched, HostSide, Service, VirtualHost};
use receive::Receiver;
use send::Sender;

pub use coalesce::coalesce;
pub use config::{CTRL_VQ, DeviceSettings, MQ, MRG_RXBUF, RSS};

/// Control commands that are taken in one round: other ports wait meanwhile.
const BATCH: usize = 16;

/// Descriptors after which frames wait for the next round: those of a hostile guest may have many.
const DESCRIPTORS: usize = MAX_SEGMENTS;

/// The largest number of queue pairs: their rings have numbers of 8 bits in messages.
const MAX_PAIRS: u16 = 64;

/// A virtio-net device that a vhost-user frontend can connect to: the host's side of a port.
///
/// Its port has as many queues as the device has pairs. Receive ring `2 i` and transmit ring
/// `2 i + 1` belong to queue `i`.
#[derive(Debug)]
pub struct Device {
    settings: DeviceSettings,
    frontend: Frontend,
    /// Pairs that the guest uses, if it says so by a command.
    pairs: u16,
    receivers: Vec<Receiver>,
    senders: Vec<Sender>,
    /// The transmit queue whose turn it is.
    turn: usize,
    /// Descriptors of the frames that were taken in this round.
    descriptors: usize,
    /// Pairs that the port spreads its frames over.
    spread: u16,
    /// The guest has set a key and a table of its own.
    is_spread_by_guest: bool,
    /// The guest's processor, if what it does costs time. Work is for the sender of a frame.
    processor: Option<Processor<Vec<u8>>>,
    /// Where in the control ring the guest was last asked to kick.
    command_asked_at: Option<AskedAt>,
    chain: Chain,
}

impl Device {
    /// A device that waits for a frontend on `listener`.
    pub fn new(listener: UnixListener, mut settings: DeviceSettings) -> io::Result<Self> {
        settings.pairs = settings.pairs.clamp(1, MAX_PAIRS);
        let pairs = usize::from(settings.pairs);
        Ok(Self {
            frontend: Frontend::new(listener, settings.session())?,
            pairs: 1,
            receivers: (0..pairs).map(|_| Receiver::default()).collect(),
            senders: (0..pairs).map(|_| Sender::new(Instant::ZERO)).collect(),
            turn: 0,
            descriptors: 0,
            spread: settings.pairs,
            is_spread_by_guest: false,
            processor: (settings.inband && !settings.costs.are_zero())
                .then(|| Processor::new(settings.costs)),
            command_asked_at: None,
            chain: Chain::default(),
            settings,
        })
    }

    /// Whether a frontend is connected.
    pub fn is_connected(&self) -> bool {
        self.frontend.is_connected()
    }

    /// Why the last guest is gone, if none has come since.
    pub fn lost(&self) -> Option<&str> {
        self.frontend.lost()
    }

    /// Frames of the guest that were longer than any port takes.
    pub fn too_long(&self) -> u64 {
        self.senders.iter().map(|sender| sender.too_long).sum()
    }
}

impl HostSide for Device {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.frontend.fd()]
    }

    fn sync(&mut self, now: Instant, ready: bool, port: &mut Port<Vec<u8>>, watch: &mut Watch) {
        self.descriptors = 0;
        if self.frontend.sync(ready) {
            self.pairs = 1;
            self.command_asked_at = None;
            if std::mem::take(&mut self.is_spread_by_guest) {
                self.spread = self.settings.pairs;
                port.set_rss(self.spread, Rss::new(DEFAULT_KEY, Indirection::equal(self.spread)));
                port.spread_over(self.spread);
            }
            self.receivers.iter_mut().for_each(Receiver::forget);
            self.senders.iter_mut().for_each(Sender::forget);
        }
        let outcome = self.look(now, port, watch);
        self.frontend.account(outcome);
        if !self.is_connected() {
            port.queues_mut().iter_mut().for_each(|queue| queue.set_size(0));
        }
    }

    fn make_room(&mut self, port: &mut Port<Vec<u8>>) {
        let Some(session) = self.frontend.session() else { return };
        let queues = port.queues_mut().iter_mut().zip(&self.receivers);
        let mut violation = None;
        for (pair, (queue, receiver)) in queues.enumerate() {
            let index = 2 * pair;
            if let Some(live) = session.ring(index)
                && let Err(error) = receiver.resize(live.ring, queue)
            {
                violation = Some(ProtocolViolation::Ring(index, error));
            }
        }
        violation.into_iter().for_each(|violation| self.frontend.accuse(violation));
    }

    fn transmit(&mut self, now: Instant, _: usize, frame: &mut Vec<u8>) -> io::Result<Fetched> {
        Ok(self.take_frame(now, frame).unwrap_or_else(|violation| {
            // The port is closed at the end of the round, when it is at hand.
            self.frontend.accuse(violation);
            Fetched::Nothing
        }))
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn serve(&mut self, now: Instant, service: &mut Service<'_>) -> io::Result<()> {
        let outcome = self.serve_rings(now, service);
        self.frontend.account(outcome);
        if !self.is_connected() {
            let queues = service.port.queues_mut().iter_mut().zip(&mut self.receivers);
            queues.for_each(|(queue, receiver)| receiver.discard(now, queue, service.pool));
        } else if !self.settings.inband {
            self.frontend.raise_irqs(now);
            self.frontend.send_irqs();
        }
        Ok(())
    }

    fn evict(&mut self) -> bool {
        self.frontend.evict()
    }

    fn refused(&self) -> u64 {
        self.receivers.iter().map(|receiver| receiver.refused).sum()
    }

    fn attachment(&self) -> Option<Attachment> {
        Some(Attachment {
            connected: self.is_connected(),
            lost: self.lost().map(str::to_owned),
            pairs_used: if self.is_connected() { self.spread } else { 0 },
            pairs: self.settings.pairs,
            too_long: self.too_long(),
        })
    }

    fn virtual_time(&mut self) -> Option<&mut dyn VirtualHost> {
        if self.settings.inband { Some(&mut self.frontend) } else { None }
    }

    fn deadline(&self) -> Option<Instant> {
        if !self.is_connected() {
            return None;
        }
        let senders = self.senders.iter().filter_map(Sender::deadline);
        let receivers = self.receivers.iter().filter_map(Receiver::deadline);
        let work = self.processor.as_ref().and_then(Processor::work_ends_at);
        senders.chain(receivers).chain(work).min()
    }

    fn busy(&self, now: Instant) -> Option<Busy> {
        self.processor.as_ref().map(|processor| processor.busy(now))
    }
}

//! The transmit side of one queue pair: from the guest's buffers to the wire, and the moderation of
//! transmit completions.

use base::time::Instant;
use nic::moderation::{Moderation, Profile, Unseen};
use nic::vector::Vector;

use super::coalesce::coalesce;
use super::receive::{PACKET_HEADER, in_buffer};
use crate::transport::memory::Access;
use crate::transport::ring::{self, Chain, DriverEvent, Ring, RingError};
use crate::transport::session::LiveRing;
use hostside::Fetched;
use hostside::charge::Outbox;
use hostside::processor::Processor;

/// The longest frame that is taken from a guest.
const MAX_FRAME: u64 = nic::port::MAX_FRAME as u64;

#[derive(Debug)]
pub(super) struct Sender {
    generation: u32,
    /// The guest looks at all completions before this number without a further interrupt.
    signalled: u16,
    /// When the first completion since then was.
    first: Option<Instant>,
    moderation: Moderation,
    vector: Vector,
    /// The setting has changed since the timer was last set.
    changed: bool,
    /// The ring position at which the guest was last asked to kick.
    asked_at: Option<u16>,
    chain: Chain,
    /// A frame that leaves when sending it has cost its time.
    outbox: Outbox,
    /// Frames that were too long for any port.
    pub(super) too_long: u64,
}

impl Sender {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            generation: 0,
            signalled: 0,
            first: None,
            moderation: Moderation::DISABLED,
            vector: Vector::new(Moderation::DISABLED, now),
            changed: false,
            asked_at: None,
            chain: Chain::default(),
            outbox: Outbox::default(),
            too_long: 0,
        }
    }

    /// Another guest has come: its rings have nothing to do with those before.
    pub(super) fn forget(&mut self) {
        self.generation = 0;
    }

    fn follow(&mut self, live: &LiveRing<'_>) {
        if live.generation != self.generation {
            self.generation = live.generation;
            self.signalled = live.ring.published();
            self.first = None;
            self.asked_at = None;
            self.outbox.reset();
        }
    }

    /// Takes the next frame, if there is one. If there is none, the guest is asked to kick when
    /// there is, unless the owner polls all the time.
    pub(super) fn take(
        &mut self,
        live: &mut LiveRing<'_>,
        polled: bool,
        frame: &mut Vec<u8>,
    ) -> Result<Fetched, RingError> {
        self.follow(live);
        loop {
            self.chain.clear();
            let Some(head) = live.ring.take(live.memory, &mut self.chain)? else {
                if polled || !self.ask(live.ring)? {
                    return Ok(Fetched::Nothing);
                }
                continue;
            };
            if self.asked_at.take().is_some() {
                live.ring.want_no_kick();
            }
            let taken = self.gather(live, frame)?;
            live.ring.add_used(head, 0);
            return Ok(if taken { Fetched::Frame } else { Fetched::Dropped });
        }
    }

    /// How many descriptors the frame had that was [taken](Self::take) last.
    pub(super) fn descriptors(&self) -> usize {
        self.chain.readable.len()
    }

    /// The same where sending costs time.
    pub(super) fn take_at_cost(
        &mut self,
        (now, processor): (Instant, &mut Processor<Vec<u8>>),
        live: &mut LiveRing<'_>,
        polled: bool,
        frame: &mut Vec<u8>,
    ) -> Result<Fetched, RingError> {
        self.follow(live);
        let mut outbox = std::mem::take(&mut self.outbox);
        let taken = outbox.take(now, processor, frame, |frame| self.take(live, polled, frame));
        self.outbox = outbox;
        taken
    }

    /// Asks for a kick; whether something had come before the guest could see that.
    fn ask(&mut self, ring: &mut Ring) -> Result<bool, RingError> {
        if self.asked_at == Some(ring.base()) {
            return Ok(false);
        }
        self.asked_at = Some(ring.base());
        ring.ask_for_kick();
        Ok(ring.available()? > 0)
    }

    /// Copies the frame out of the chain, without its header.
    fn gather(&mut self, live: &LiveRing<'_>, frame: &mut Vec<u8>) -> Result<bool, RingError> {
        let length = ring::length(&self.chain.readable).saturating_sub(PACKET_HEADER as u64);
        if length > MAX_FRAME {
            self.too_long += 1;
            return Ok(false);
        }
        let length = length as usize;
        live.ring.prefetch(live.memory, Access::Read, PACKET_HEADER + length);
        // Without clearing it first: bytes that are there already need no zeros.
        frame.resize(length, 0);
        self.chain.read(live.memory, PACKET_HEADER as u64, frame).map_err(in_buffer)?;
        Ok(true)
    }

    /// Shows the guest what was taken; whether it is to be called.
    pub(super) fn serve(&mut self, now: Instant, live: &mut LiveRing<'_>) -> bool {
        self.follow(live);
        let completed = live.ring.flush_used();
        if completed {
            self.first.get_or_insert(now);
        }
        let shown = live.ring.published().wrapping_sub(self.signalled);
        let asked = match live.ring.driver_event() {
            DriverEvent::Nothing => false,
            DriverEvent::All => shown > 0,
            DriverEvent::After(index) => index.wrapping_sub(self.signalled) < shown,
        };
        let anew = completed || self.vector.is_masked() || std::mem::take(&mut self.changed);
        let interrupt = if asked && anew {
            let oldest = self.first;
            let unseen = Unseen { packets: shown.into(), oldest, ..Unseen::default() };
            self.vector.rearm(now, &unseen)
        } else {
            self.vector.advance(now)
        };
        // Half a turn of the indices: further, and the guest's event index would be ambiguous.
        let call = asked && (interrupt.is_some() || shown > u16::MAX / 2);
        if call || !asked {
            // A guest that does not ask looks at all this before it stops looking.
            self.signalled = live.ring.published();
            self.first = None;
        }
        call
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.vector.deadline()
    }

    /// Takes the guest's coalescing parameters; `false` if they cannot be.
    pub(super) fn coalesce(&mut self, now: Instant, profile: Profile) -> bool {
        let Profile { rx_usecs, rx_frames } = profile;
        let Ok(moderation) = coalesce(self.moderation, rx_usecs, rx_frames) else { return false };
        self.moderation = moderation;
        // What is pending is handed over in the same round, by `serve`.
        let _ = self.vector.set_moderation(now, moderation, &Unseen::default());
        self.changed = true;
        true
    }

    pub(super) fn in_force(&self) -> Profile {
        let Moderation { rx_usecs, rx_frames, .. } = self.moderation;
        Profile { rx_usecs, rx_frames }
    }
}

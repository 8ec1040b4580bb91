//! A timeline for the tests of one moderator, in microseconds: what happens when, and what it
//! answers.

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::Instant;
use crate::vector::Vector;

/// A moderator in its vector, with a host that polls and re-arms when the test says so.
pub(super) struct Timeline<M> {
    vector: Vector<M>,
    unseen: Unseen,
}

impl<M: Moderator> Timeline<M> {
    pub(super) fn of(moderator: M) -> Self {
        Self { vector: Vector::with_moderator(moderator), unseen: Unseen::default() }
    }

    /// The DMA of an ordinary packet completes, and no other is pending.
    pub(super) fn packet(&mut self, at: u64) -> Interrupt {
        self.completes(at, false, 0)
    }

    /// The DMA of a marked packet completes, and no other is pending.
    pub(super) fn marked(&mut self, at: u64) -> Interrupt {
        self.completes(at, true, 0)
    }

    /// A packet arrives, and its DMA takes longer than the test.
    pub(super) fn arrives(&mut self, at: u64) {
        let now = Instant::from_micros(at);
        let descriptor =
            Descriptor { length: 64, marked: false, arrived_at: now, completed_at: now };
        self.unseen.dma_pending += 1;
        self.vector.packet_arrived(now, &descriptor);
    }

    /// The DMA of a packet completes while `pending` more are under way.
    pub(super) fn completes(&mut self, at: u64, marked: bool, pending: u32) -> Interrupt {
        let now = Instant::from_micros(at);
        let descriptor = Descriptor { length: 64, marked, arrived_at: now, completed_at: now };
        self.unseen.packets += 1;
        self.unseen.marked += u32::from(marked);
        self.unseen.oldest.get_or_insert(now);
        self.unseen.newest = Some(now);
        self.unseen.dma_pending = pending;
        self.vector.packet_arrived(now, &descriptor);
        self.vector.dma_completed(now, &descriptor, pending)
    }

    /// A transmission completes.
    pub(super) fn transmitted(&mut self, at: u64) -> Interrupt {
        self.unseen.oldest.get_or_insert(Instant::from_micros(at));
        self.vector.transmit_completed(Instant::from_micros(at))
    }

    /// Waits for the deadline: when it is, and the interrupt.
    pub(super) fn expires(&mut self) -> Option<(u64, Reason)> {
        let deadline = self.vector.deadline()?;
        let reason = self.vector.advance(deadline)?;
        Some((deadline.as_nanos() / 1_000, reason))
    }

    /// The host takes everything.
    pub(super) fn host_polls(&mut self) {
        self.unseen = Unseen { dma_pending: self.unseen.dma_pending, ..Unseen::default() };
    }

    /// The host re-arms, with what completed since its last poll.
    pub(super) fn host_rearms(&mut self, at: u64) -> Interrupt {
        self.vector.rearm(Instant::from_micros(at), &self.unseen)
    }

    /// The host polls and re-arms in the same moment, as one that is fast enough does.
    pub(super) fn host_answers(&mut self, at: u64) -> Interrupt {
        self.host_polls();
        self.host_rearms(at)
    }
}

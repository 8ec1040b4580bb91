//! `rx-frames`: enough packets have gathered.

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::Instant;

/// Interrupts when the timer does, or when `limit` packets have gathered, whichever is first.
#[derive(Clone, Debug)]
pub struct Frames<T> {
    timer: T,
    limit: u32,
    gathered: u32,
}

impl<T> Frames<T> {
    /// Bounds `timer` by a count of frames; a `limit` of 0 leaves the timer alone, as `rx-frames 0`
    /// does.
    #[must_use]
    pub fn new(timer: T, limit: u32) -> Self {
        Self { timer, limit, gathered: 0 }
    }

    /// Changes the limit.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// The timer underneath, to retune it.
    pub fn timer_mut(&mut self) -> &mut T {
        &mut self.timer
    }

    fn enough(&self) -> bool {
        self.limit > 0 && self.gathered >= self.limit
    }
}

impl<T: Moderator> Moderator for Frames<T> {
    forward_moderator!(timer: chosen packet_arrived transmit_completed timer_expired deadline);

    #[inline]
    fn dma_completed(&mut self, now: Instant, descriptor: &Descriptor, pending: u32) -> Interrupt {
        // Without a limit it may wrap: it is not read then.
        self.gathered = self.gathered.wrapping_add(1);
        let timer = self.timer.dma_completed(now, descriptor, pending);
        if self.enough() { Some(Reason::Frames) } else { timer }
    }

    #[inline]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        self.gathered = unseen.packets;
        let timer = self.timer.host_rearmed(now, unseen);
        if self.enough() { Some(Reason::Rearm) } else { timer }
    }

    #[inline]
    fn interrupt_raised(&mut self, now: Instant) {
        self.gathered = 0;
        self.timer.interrupt_raised(now);
    }
}

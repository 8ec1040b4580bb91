//! The interrupt vector of one queue: the contract between a moderator and a host.
//!
//! Packets are signalled to a host once, and it then takes them in its own time. As soon as a
//! vector raises its interrupt it is masked. The host polls, and when a poll finds less than its
//! budget it re-arms, handing over what has completed since. That hand-over closes the race between
//! the last poll and the re-arm: a packet that slips in between is in `unseen`, and either it is
//! due, then the answer is an interrupt, or its timer goes on.
//!
//! ```text
//!           interrupt                poll .. poll
//!   armed ─────────────▶ masked ─────────────────▶ re-arm ──▶ armed, or at once masked again
//! ```

use crate::descriptor::Descriptor;
use crate::moderation::{Interrupt, Moderation, Moderator, Phase, Reason, Strategy, Unseen};
use crate::time::Instant;

/// One interrupt vector, moderated.
///
/// Whenever a call returns a reason, the caller delivers the interrupt to the host; the vector is
/// masked from then on, until [`rearm`](Self::rearm).
#[derive(Clone, Debug)]
pub struct Vector<M = Strategy> {
    moderator: M,
    masked: bool,
    last_interrupt: Option<Instant>,
    phase: Phase,
}

impl Vector<Strategy> {
    /// An armed vector with the strategy that `moderation` names.
    #[must_use]
    pub fn new(moderation: Moderation, now: Instant) -> Self {
        Self::in_phase(moderation, Phase::default(), now)
    }

    /// The same; whenever a setting with a free-running tick comes into force, the tick starts in
    /// `phase`.
    #[must_use]
    pub fn in_phase(moderation: Moderation, phase: Phase, now: Instant) -> Self {
        Self { phase, ..Self::with_moderator(Strategy::new(moderation, phase, now)) }
    }

    /// Changes the setting while packets may be pending: none is lost, none waits longer than the
    /// new rule says.
    #[must_use = "the host is to be interrupted if there is a reason"]
    pub fn set_moderation(
        &mut self,
        now: Instant,
        moderation: Moderation,
        unseen: &Unseen,
    ) -> Interrupt {
        self.moderator = Strategy::new(moderation, self.phase, now);
        // The gap of a throttle counts from the last interrupt, whatever strategy raised it.
        if let Some(last) = self.last_interrupt {
            self.moderator.interrupt_raised(last);
        }
        // A masked vector hands `unseen` over when the host re-arms it.
        if self.masked { None } else { self.rearm(now, unseen) }
    }
}

impl<M: Moderator> Vector<M> {
    /// An armed vector with a moderator of your own.
    #[must_use]
    pub fn with_moderator(moderator: M) -> Self {
        Self { moderator, masked: false, last_interrupt: None, phase: Phase::default() }
    }

    /// The moderator inside.
    #[must_use]
    pub fn moderator(&self) -> &M {
        &self.moderator
    }

    /// Whether the host has been interrupted and has not re-armed yet.
    #[must_use]
    pub fn is_masked(&self) -> bool {
        self.masked
    }

    /// A packet arrived and its DMA has been submitted.
    #[inline]
    pub fn packet_arrived(&mut self, now: Instant, descriptor: &Descriptor) {
        self.moderator.packet_arrived(now, descriptor);
    }

    /// The DMA of a packet completed; `dma_pending` more are under way.
    #[inline]
    #[must_use = "the host is to be interrupted if there is a reason"]
    pub fn dma_completed(
        &mut self,
        now: Instant,
        descriptor: &Descriptor,
        dma_pending: u32,
    ) -> Interrupt {
        if self.masked {
            return None;
        }
        let interrupt = self.moderator.dma_completed_and_raised(now, descriptor, dma_pending);
        self.mask(now, interrupt)
    }

    /// A transmission completed, where transmit completions share the vector.
    #[inline]
    #[must_use = "the host is to be interrupted if there is a reason"]
    pub fn transmit_completed(&mut self, now: Instant) -> Interrupt {
        if self.masked {
            return None;
        }
        let interrupt = self.moderator.transmit_completed(now);
        self.raise(now, interrupt)
    }

    /// Lets the timer act if it has run out by `now`; harmless at any time.
    #[inline]
    #[must_use = "the host is to be interrupted if there is a reason"]
    pub fn advance(&mut self, now: Instant) -> Interrupt {
        if self.deadline().is_none_or(|deadline| deadline > now) {
            return None;
        }
        let interrupt = self.moderator.timer_expired(now);
        self.raise(now, interrupt)
    }

    /// The device interrupts, whatever the moderator waits for; nothing while masked.
    #[must_use = "the host is to be interrupted if there is a reason"]
    pub fn interrupt(&mut self, now: Instant) -> Interrupt {
        if self.masked {
            return None;
        }
        self.raise(now, Some(Reason::Timer))
    }

    /// The host unmasks after its last poll; `unseen` is what completed since that poll.
    ///
    /// Also for a host that polled without having been interrupted (busy polling): it brings the
    /// timer up to date.
    #[inline]
    #[must_use = "the host is to be interrupted if there is a reason"]
    pub fn rearm(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        self.masked = false;
        let interrupt = self.moderator.host_rearmed(now, unseen);
        self.raise(now, interrupt)
    }

    /// When to call [`advance`](Self::advance); never while masked.
    #[must_use]
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        if self.masked { None } else { self.moderator.deadline() }
    }

    #[inline]
    fn raise(&mut self, now: Instant, interrupt: Interrupt) -> Interrupt {
        if interrupt.is_some() {
            self.moderator.interrupt_raised(now);
        }
        self.mask(now, interrupt)
    }

    /// The moderator knows of the interrupt.
    #[inline]
    fn mask(&mut self, now: Instant, interrupt: Interrupt) -> Interrupt {
        if interrupt.is_some() {
            self.masked = true;
            self.last_interrupt = Some(now);
        }
        interrupt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_setting_does_not_shorten_the_gap_of_a_throttle() {
        let at = Instant::from_micros;
        let packet =
            Descriptor { length: 64, marked: false, arrived_at: at(0), completed_at: at(0) };
        let throttle: Moderation = "throttle:125".parse().unwrap();
        let mut vector = Vector::new(throttle, at(0));
        assert_eq!(vector.dma_completed(at(0), &packet, 0), Some(Reason::Timer));
        assert_eq!(vector.rearm(at(1), &Unseen::default()), None);
        assert_eq!(vector.set_moderation(at(10), throttle, &Unseen::default()), None);
        assert_eq!(vector.dma_completed(at(20), &packet, 0), None);
        assert_eq!(vector.deadline(), Some(at(125)));
    }
}

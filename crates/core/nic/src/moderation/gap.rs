//! The least gap of marks: inside a burst, one interrupt is enough for a while.

use crate::time::{Duration, Instant};

/// Whether a mark may interrupt, and when it may otherwise.
///
/// The gap counts from the last interrupt, for whatever reason. It holds back nothing but marks, so
/// no mark waits longer than the timer underneath says.
#[derive(Clone, Debug)]
pub(super) struct Gap {
    gap: Duration,
    /// From when on marks interrupt at once: the gap after the last interrupt is over.
    open_at: Instant,
    /// A mark waits for that moment.
    waits: bool,
}

impl Gap {
    /// Marks interrupt at least `gap` after the interrupt before; one of zero holds none back.
    pub(super) const fn new(gap: Duration) -> Self {
        Self { gap, open_at: Instant::ZERO, waits: false }
    }

    /// A mark wants an interrupt. If it may not have it now, it waits until the gap is over.
    #[inline]
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        self.waits = self.open_at > now;
        !self.waits
    }

    /// No mark waits any more; whether one has waited.
    #[inline]
    pub(super) const fn forget(&mut self) -> bool {
        core::mem::replace(&mut self.waits, false)
    }

    /// Whether a mark has waited, and the gap is over.
    #[inline]
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.waits && self.open_at <= now
    }

    /// The deadline of the timer underneath, or that of the mark that waits, if it is earlier.
    #[inline]
    pub(super) fn or(&self, timer: Option<Instant>) -> Option<Instant> {
        if !self.waits {
            return timer;
        }
        Some(timer.map_or(self.open_at, |timer| timer.min(self.open_at)))
    }

    #[inline]
    pub(super) fn interrupt_raised(&mut self, now: Instant) {
        self.open_at = now + self.gap;
        self.waits = false;
    }
}

//! The least gap of marks: inside a burst, one interrupt is enough for a while.

use crate::time::{Duration, Instant};

/// Whether a mark may interrupt, and when it may otherwise.
///
/// The gap counts from the last interrupt, whoever wanted that. It holds back nothing but marks, so
/// no mark waits longer than the timer underneath says.
#[derive(Clone, Debug)]
pub(super) struct Gap {
    gap: Duration,
    last_interrupt: Option<Instant>,
    /// When the mark that waits may interrupt.
    due: Option<Instant>,
}

impl Gap {
    /// Marks interrupt at least `gap` after the interrupt before; one of zero holds none back.
    pub(super) const fn new(gap: Duration) -> Self {
        Self { gap, last_interrupt: None, due: None }
    }

    /// A mark wants an interrupt. If it may not have it now, it waits until the gap is over.
    #[inline]
    pub(super) fn allows(&mut self, now: Instant) -> bool {
        self.due = self.last_interrupt.map(|last| last + self.gap).filter(|&due| due > now);
        self.due.is_none()
    }

    /// No mark waits any more; whether one has waited.
    #[inline]
    pub(super) fn forget(&mut self) -> bool {
        self.due.take().is_some()
    }

    /// Whether a mark has waited, and the gap is over.
    #[inline]
    pub(super) fn is_over(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// The deadline of the timer underneath, or that of the mark that waits, if it is earlier.
    #[inline]
    pub(super) fn or(&self, timer: Option<Instant>) -> Option<Instant> {
        match (self.due, timer) {
            (Some(due), Some(timer)) => Some(due.min(timer)),
            (due, timer) => due.or(timer),
        }
    }

    #[inline]
    pub(super) fn interrupt_raised(&mut self, now: Instant) {
        self.last_interrupt = Some(now);
        self.due = None;
    }
}

//! An interrupt vector: from a cause to a message, under three throttles.
//!
//! ```text
//!   frame received ── ITR0 ─┐
//!   frame sent ────── ITR1 ─┼─▶ DYN_CTL: enabled? ─▶ interrupt, and no longer enabled
//!   message, mark ──────────┘
//! ```
//!
//! Each cause has an index: that of one of three intervals, or 3 for none. An interrupt goes out
//! when a cause is there whose interval has passed since the last interrupt of the vector, whatever
//! that was for; it is for all causes at once. The throttles are those of `nic`.

use base::time::{Duration, Instant};
use nic::moderation::{Moderator, Throttle};

/// A tick of `ITRN`: 2 us.
const TICK: Duration = Duration::from_micros(2);

/// What `ITRN` keeps.
const INTERVAL: u32 = 0xFFF;

/// The index of causes that are not throttled; in `DYN_CTL`, that of no interval to change.
pub(super) const NO_ITR: usize = 3;

/// Bits of `DYN_CTL`.
const ENABLE: u32 = 1 << 0;
const CLEAR_PENDING: u32 = 1 << 1;
const TRIGGER: u32 = 1 << 2;
const INDEX_SHIFT: u32 = 3;
const INTERVAL_SHIFT: u32 = 5;
const TRIGGER_HAS_INDEX: u32 = 1 << 24;
const TRIGGER_INDEX_SHIFT: u32 = 25;
/// The write is not about whether the vector is enabled.
const KEEP_ENABLE: u32 = 1 << 31;

#[derive(Debug)]
pub(super) struct Vector {
    enabled: bool,
    /// Causes, by their index.
    pending: [bool; 4],
    ticks: [u32; NO_ITR],
    throttles: [Throttle; NO_ITR],
    rearmed: bool,
}

impl Vector {
    pub(super) fn new() -> Self {
        Self {
            enabled: false,
            pending: [false; 4],
            ticks: [0; NO_ITR],
            throttles: std::array::from_fn(|_| Throttle::new(Duration::ZERO)),
            rearmed: false,
        }
    }

    /// What the driver reads of `DYN_CTL`.
    pub(super) fn control(&self) -> u32 {
        if self.enabled { ENABLE } else { 0 }
    }

    /// The driver writes `DYN_CTL`. Descriptors are written back at once, so its `WB_ON_ITR` asks
    /// for what is done anyway.
    pub(super) fn set_control(&mut self, value: u32) {
        let index = (value >> INDEX_SHIFT & 3) as usize;
        self.set_interval(index, value >> INTERVAL_SHIFT);
        if value & CLEAR_PENDING != 0 {
            self.pending = [false; 4];
        }
        if value & TRIGGER != 0 {
            let own = value & TRIGGER_HAS_INDEX != 0;
            self.cause(if own { (value >> TRIGGER_INDEX_SHIFT & 3) as usize } else { index });
        }
        if value & KEEP_ENABLE == 0 {
            self.enabled = value & ENABLE != 0;
            self.rearmed |= self.enabled;
        }
    }

    /// What the driver reads of `ITRN`.
    pub(super) fn interval(&self, index: usize) -> u32 {
        self.ticks.get(index).copied().unwrap_or(0)
    }

    /// The same as time; none for causes that are not throttled.
    pub(super) fn gap(&self, index: usize) -> Duration {
        TICK.times(self.interval(index).into())
    }

    /// Sets an interval, in ticks of 2 us; what waits already waits no longer than the new one.
    pub(super) fn set_interval(&mut self, index: usize, ticks: u32) {
        if let (Some(kept), Some(throttle)) =
            (self.ticks.get_mut(index), self.throttles.get_mut(index))
        {
            *kept = ticks & INTERVAL;
            throttle.set_gap(TICK.times((*kept).into()));
        }
    }

    pub(super) fn cause(&mut self, index: usize) {
        self.pending[index % 4] = true;
    }

    /// A frame that is not the wire's is in memory; whether the driver takes an interrupt for it,
    /// which is no cause and leaves no trace in the intervals.
    pub(super) fn announce(&mut self) -> bool {
        if !self.enabled {
            self.cause(NO_ITR);
        }
        std::mem::take(&mut self.enabled)
    }

    /// Whether an interrupt is due; then it goes out, and the driver has to enable the next.
    pub(super) fn take_interrupt(&mut self, now: Instant) -> bool {
        if !self.enabled {
            return false;
        }
        let mut is_due = self.pending[NO_ITR];
        for (throttle, pending) in self.throttles.iter_mut().zip(self.pending) {
            // The moderator's only method that takes nothing but the time; it looks at the gap
            // anew, which may have changed.
            is_due |= pending && throttle.transmit_completed(now).is_some();
        }
        if is_due {
            self.enabled = false;
            self.pending = [false; 4];
            self.throttles.iter_mut().for_each(|throttle| throttle.interrupt_raised(now));
        }
        is_due
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let throttles = self.throttles.iter().zip(self.pending);
        let waiting = throttles.filter(|(_, pending)| self.enabled && *pending);
        waiting.filter_map(|(throttle, _)| throttle.deadline()).min()
    }

    /// Whether the driver has enabled it since the last call.
    pub(super) fn take_rearmed(&mut self) -> bool {
        std::mem::take(&mut self.rearmed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECEIVE: usize = 0;
    const TRANSMIT: usize = 1;

    fn at(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    /// As `iavf_update_enable_itr` writes it: enabled, no interval changed.
    const REARM: u32 = ENABLE | 3 << INDEX_SHIFT;

    fn armed(receive: u32, transmit: u32) -> Vector {
        let mut vector = Vector::new();
        vector.set_interval(RECEIVE, receive);
        vector.set_interval(TRANSMIT, transmit);
        vector.set_control(REARM);
        vector
    }

    #[test]
    fn each_cause_waits_for_its_own_interval_after_the_last_interrupt() {
        let mut vector = armed(25, 10);
        vector.cause(RECEIVE);
        assert!(vector.take_interrupt(at(100)), "the first one waits for none");
        vector.cause(RECEIVE);
        assert!(!vector.take_interrupt(at(200)), "it is not enabled");
        vector.set_control(REARM);
        assert!(vector.take_interrupt(at(200)), "what came meanwhile");
        vector.set_control(REARM);
        vector.cause(RECEIVE);
        assert!(!vector.take_interrupt(at(210)));
        assert_eq!(vector.deadline(), Some(at(250)));
        vector.cause(TRANSMIT);
        assert!(!vector.take_interrupt(at(215)));
        assert_eq!(vector.deadline(), Some(at(220)));
        assert!(vector.take_interrupt(at(220)), "the shorter interval is for both");
        assert_eq!((vector.deadline(), vector.control()), (None, 0));
        vector.set_control(REARM);
        assert!(!vector.take_interrupt(at(300)), "there is no cause left");
    }

    #[test]
    fn an_interval_changes_with_the_rearm_and_counts_for_what_waits() {
        let mut vector = armed(500, 0);
        vector.cause(RECEIVE);
        assert!(vector.take_interrupt(at(1_000)));
        vector.set_control(REARM);
        vector.cause(RECEIVE);
        assert!(!vector.take_interrupt(at(1_010)));
        assert_eq!(vector.deadline(), Some(at(2_000)));
        // 50 us, as ethtool writes them.
        vector.set_control(ENABLE | 25 << INTERVAL_SHIFT);
        assert_eq!(vector.interval(RECEIVE), 25);
        assert!(!vector.take_interrupt(at(1_020)));
        assert_eq!(vector.deadline(), Some(at(1_050)));
        assert!(vector.take_interrupt(at(1_050)));
    }

    #[test]
    fn software_triggers_and_clears() {
        let mut vector = armed(500, 0);
        vector.cause(RECEIVE);
        assert!(vector.take_interrupt(at(1)));
        vector.set_control(REARM | TRIGGER);
        assert!(vector.take_interrupt(at(2)));
        // `iavf_force_wb`: by the first interval.
        vector.set_control(REARM | TRIGGER | TRIGGER_HAS_INDEX);
        assert!(!vector.take_interrupt(at(3)));
        assert_eq!(vector.deadline(), Some(at(1_002)));
        vector.set_control(KEEP_ENABLE | CLEAR_PENDING | 3 << INDEX_SHIFT);
        assert_eq!((vector.deadline(), vector.control()), (None, ENABLE));
    }
}

//! Interrupts of a device as counters that only grow.
//!
//! The sum over a device's interrupts in `/proc/interrupts` does not only grow: an interrupt that
//! the driver gives back, as when the number of queues is changed, takes its count along.
//! Prometheus would take that for a counter that began anew, and see as many interrupts at once as
//! are left. So what has come since the last reading is added up here.

use std::collections::BTreeMap;

use netdev::interrupts::Interrupt;
use show::are_for_receiving;

/// What the interrupts of a device have counted since it is there.
#[derive(Debug, Default)]
pub(crate) struct InterruptCounter {
    /// The last count of each number. One that is given back may return with its old count.
    last: BTreeMap<u32, u64>,
    pub(crate) total: u64,
    /// Those that may be for received packets.
    pub(crate) receiving: u64,
}

impl InterruptCounter {
    pub(crate) fn add(&mut self, interrupts: &[Interrupt]) {
        for (interrupt, receives) in interrupts.iter().zip(are_for_receiving(interrupts)) {
            let now = interrupt.total();
            let before = self.last.insert(interrupt.number, now).unwrap_or(0);
            // One that is less than before has begun anew.
            let came = now.checked_sub(before).unwrap_or(now);
            self.total = self.total.wrapping_add(came);
            if receives {
                self.receiving = self.receiving.wrapping_add(came);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interrupt(number: u32, handler: &str, count: u64) -> Interrupt {
        let handlers = vec![handler.to_owned()];
        Interrupt { number, counts: vec![(0, count)], handlers, ..Interrupt::default() }
    }

    fn after(counter: &mut InterruptCounter, interrupts: &[Interrupt]) -> (u64, u64) {
        counter.add(interrupts);
        (counter.total, counter.receiving)
    }

    #[test]
    fn what_is_given_back_and_what_begins_anew_takes_nothing_away() {
        let mut counter = InterruptCounter::default();
        assert!(counter.is_empty());
        let [config, first, second] = [(7, "v-config"), (8, "v-input.0"), (9, "v-input.1")]
            .map(|(number, handler)| move |count| interrupt(number, handler, count));
        assert_eq!(after(&mut counter, &[config(1), first(100), second(50)]), (151, 150));
        // One queue less.
        assert_eq!(after(&mut counter, &[config(1), first(110)]), (161, 160));
        // It is back with its old count, and some more.
        assert_eq!(after(&mut counter, &[config(2), first(110), second(55)]), (167, 165));
        // The driver was loaded again.
        assert_eq!(after(&mut counter, &[config(0), first(3), second(0)]), (170, 168));
        assert_eq!(after(&mut counter, &[]), (170, 168));
    }
}

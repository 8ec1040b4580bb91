//! The calendar of a simulation: events by time, and at one time in the order of planning.

use alloc::collections::BinaryHeap;
use core::cmp::Ordering;

use crate::time::Instant;

/// Events to come.
#[derive(Clone, Debug)]
pub struct Calendar<T> {
    events: BinaryHeap<Entry<T>>,
    planned: u64,
}

/// An event, compared by when it happens alone: the first one is the greatest.
#[derive(Clone, Debug)]
struct Entry<T> {
    at: Instant,
    number: u64,
    event: T,
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Entry<T> {}

impl<T> Default for Calendar<T> {
    fn default() -> Self {
        Self { events: BinaryHeap::new(), planned: 0 }
    }
}

impl<T> Calendar<T> {
    /// Plans an event. One that is planned for a moment that has passed happens next, before
    /// later ones.
    pub fn plan(&mut self, at: Instant, event: T) {
        self.events.push(Entry { at, number: self.planned, event });
        self.planned += 1;
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Instant> {
        self.events.peek().map(|entry| entry.at)
    }

    /// Takes the next event, with its time.
    pub fn take(&mut self) -> Option<(Instant, T)> {
        self.events.pop().map(|entry| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_moment_keep_their_order() {
        let mut calendar = Calendar::default();
        for (micros, name) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b')] {
            calendar.plan(Instant::from_micros(micros), name);
        }
        assert_eq!(calendar.next_at(), Some(Instant::from_micros(1)));
        let order: [_; 4] = core::array::from_fn(|_| calendar.take().map(|(_, name)| name));
        assert_eq!(order, [Some('a'), Some('b'), Some('c'), Some('d')]);
    }
}

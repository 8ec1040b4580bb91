//! The calendar of a simulation: events by time, and at one time in the order of planning.

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::Ordering;

use crate::time::Instant;

/// Events to come.
///
/// What is planned for the moment of the last event, as much is where work takes no time, needs no
/// sorting: it comes after all that was planned for that moment before it was there.
#[derive(Clone, Debug)]
pub struct Calendar<T> {
    events: BinaryHeap<Entry<T>>,
    planned: u64,
    /// When the last event that was taken happened.
    now: Instant,
    /// Events of that moment that were planned in it.
    at_once: VecDeque<T>,
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
        let (events, at_once) = (BinaryHeap::new(), VecDeque::new());
        Self { events, planned: 0, now: Instant::ZERO, at_once }
    }
}

impl<T> Calendar<T> {
    /// Plans an event. One that is planned for a moment that has passed happens next, before
    /// later ones.
    pub fn plan(&mut self, at: Instant, event: T) {
        if at == self.now {
            return self.at_once.push_back(event);
        }
        self.events.push(Entry { at, number: self.planned, event });
        self.planned += 1;
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<Instant> {
        let sorted = self.events.peek().map(|entry| entry.at);
        let at_once = Some(self.now).filter(|_| !self.at_once.is_empty());
        [sorted, at_once].into_iter().flatten().min()
    }

    /// Takes the next event, with its time.
    pub fn take(&mut self) -> Option<(Instant, T)> {
        let is_sorted = self.events.peek().is_some_and(|entry| entry.at <= self.now);
        if !is_sorted && let Some(event) = self.at_once.pop_front() {
            return Some((self.now, event));
        }
        let entry = self.events.pop()?;
        self.now = self.now.max(entry.at);
        Some((entry.at, entry.event))
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
        let mut order = || calendar.take().map(|(_, name)| name);
        assert_eq!([order(), order(), order()], [Some('a'), Some('b'), Some('c')]);
        // Now it is 5 us: what comes late is first, what is planned in the moment is last.
        for (micros, name) in [(5, 'e'), (6, 'g'), (5, 'f'), (2, 'x')] {
            calendar.plan(Instant::from_micros(micros), name);
        }
        assert_eq!(calendar.next_at(), Some(Instant::from_micros(2)));
        let order: [_; 6] = core::array::from_fn(|_| calendar.take());
        let expected = [(2, 'x'), (5, 'd'), (5, 'e'), (5, 'f'), (6, 'g')];
        let expected = expected.map(|(micros, name)| Some((Instant::from_micros(micros), name)));
        assert_eq!((&order[..5], order[5]), (&expected[..], None));
    }
}

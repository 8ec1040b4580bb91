//! The event queue: by time, and at one time in the order of planning.

use alloc::collections::BTreeMap;

use base::time::Instant;

/// A queue of events.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    events: BTreeMap<(Instant, u64), T>,
    planned: u64,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self { events: BTreeMap::new(), planned: 0 }
    }
}

impl<T> EventQueue<T> {
    /// Plans an event.
    pub(crate) fn plan(&mut self, at: Instant, event: T) {
        self.events.insert((at, self.planned), event);
        self.planned += 1;
    }

    /// When the next event happens.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes the next event.
    pub(crate) fn take(&mut self) -> Option<(Instant, T)> {
        self.events.pop_first().map(|((at, _), event)| (at, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_moment_keep_their_order() {
        let mut queue = EventQueue::default();
        for (micros, name) in [(5, 'c'), (1, 'a'), (5, 'd'), (1, 'b')] {
            queue.plan(Instant::from_micros(micros), name);
        }
        assert_eq!(queue.next_at(), Some(Instant::from_micros(1)));
        let order: [_; 4] = core::array::from_fn(|_| queue.take().map(|(_, name)| name));
        assert_eq!(order, [Some('a'), Some('b'), Some('c'), Some('d')]);
    }
}

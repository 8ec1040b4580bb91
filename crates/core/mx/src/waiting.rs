//! Messages that wait for a receive, in the order in which they have arrived.
//!
//! Few wait most often, and then the fastest is to compare one after the other. A peer may send any
//! number that is never received, and what it sends must not slow the receives of others down: so
//! only the oldest [`NEAR`] are compared one by one, and all later ones have an index, by source,
//! by match information and by both. For patterns with a mask, which no index answers, the place is
//! remembered before which nothing fits: each message is compared with each pattern once.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use crate::ids::{MessageId, PeerId};
use crate::matching::Pattern;

/// So many of the oldest messages have no index: it costs as much as a look at some hundred.
const NEAR: usize = 256;
const PLACES: usize = 16;

/// A message that no receive has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) message: MessageId,
    pub(crate) match_info: u64,
    pub(crate) source: PeerId,
}

impl Waiting {
    fn fits(&self, pattern: &Pattern) -> bool {
        pattern.fits(self.match_info, self.source)
    }
}

#[derive(Debug, Default)]
pub(crate) struct WaitingMessages {
    /// The oldest ones. There are later ones only once these are as many as may be.
    near: VecDeque<Waiting>,
    far: Indexed,
}

#[derive(Clone, Copy, Debug)]
enum WaitingPosition {
    Near(usize),
    Far(u64),
}

impl WaitingMessages {
    pub(crate) fn len(&self) -> u32 {
        (self.near.len() + self.far.messages.len()) as u32
    }

    pub(crate) fn push(&mut self, waiting: Waiting) {
        if self.far.messages.is_empty() && self.near.len() < NEAR {
            self.near.push_back(waiting);
        } else {
            self.far.push(waiting);
        }
    }

    /// The first message that fits, which goes on waiting. Adds to `compared` how many messages
    /// were looked at.
    pub(crate) fn find(&mut self, pattern: &Pattern, compared: &mut u64) -> Option<MessageId> {
        Some(match self.place(pattern, compared)? {
            WaitingPosition::Near(place) => self.near[place].message,
            WaitingPosition::Far(arrival) => self.far.messages.get(&arrival)?.message,
        })
    }

    /// The first message that fits; it waits no longer.
    pub(crate) fn take(&mut self, pattern: &Pattern, compared: &mut u64) -> Option<MessageId> {
        let taken = match self.place(pattern, compared)? {
            WaitingPosition::Near(place) => self.near.remove(place),
            WaitingPosition::Far(arrival) => self.far.remove(arrival),
        };
        taken.map(|waiting| waiting.message)
    }

    fn place(&mut self, pattern: &Pattern, compared: &mut u64) -> Option<WaitingPosition> {
        let near = self.near.iter().position(|waiting| waiting.fits(pattern));
        *compared += near.map_or(self.near.len(), |place| place + 1) as u64;
        near.map(WaitingPosition::Near)
            .or_else(|| self.far.find(pattern, compared).map(WaitingPosition::Far))
    }

    /// The messages of this peer that are `gone` wait no longer.
    pub(crate) fn remove_from(
        &mut self,
        source: PeerId,
        compared: &mut u64,
        mut gone: impl FnMut(MessageId) -> bool,
    ) {
        *compared += self.near.len() as u64;
        self.near.retain(|waiting| waiting.source != source || !gone(waiting.message));
        let arrivals: Vec<_> = self.far.from(source, 0).collect();
        *compared += arrivals.len() as u64;
        for arrival in arrivals {
            if self.far.messages.get(&arrival).is_some_and(|waiting| gone(waiting.message)) {
                self.far.remove(arrival);
            }
        }
    }
}

/// Messages with an index, each by the number of its arrival.
#[derive(Debug, Default)]
struct Indexed {
    arrivals: u64,
    messages: BTreeMap<u64, Waiting>,
    by_source: BTreeSet<(PeerId, u64)>,
    by_info: BTreeSet<(u64, u64)>,
    by_both: BTreeSet<(PeerId, u64, u64)>,
    /// Patterns with a mask, and the arrivals before which nothing fits them.
    places: VecDeque<(Pattern, u64)>,
}

impl Indexed {
    fn push(&mut self, waiting: Waiting) {
        let Waiting { match_info, source, .. } = waiting;
        let arrival = self.arrivals;
        self.arrivals += 1;
        self.messages.insert(arrival, waiting);
        self.by_source.insert((source, arrival));
        self.by_info.insert((match_info, arrival));
        self.by_both.insert((source, match_info, arrival));
    }

    fn remove(&mut self, arrival: u64) -> Option<Waiting> {
        let waiting = self.messages.remove(&arrival)?;
        let Waiting { match_info, source, .. } = waiting;
        self.by_source.remove(&(source, arrival));
        self.by_info.remove(&(match_info, arrival));
        self.by_both.remove(&(source, match_info, arrival));
        Some(waiting)
    }

    fn from(&self, source: PeerId, since: u64) -> impl Iterator<Item = u64> + '_ {
        let range = (source, since)..=(source, u64::MAX);
        self.by_source.range(range).map(|(_, arrival)| *arrival)
    }

    fn find(&mut self, pattern: &Pattern, compared: &mut u64) -> Option<u64> {
        if self.messages.is_empty() {
            return None;
        }
        let Pattern { source, wanted } = *pattern;
        if wanted.mask != u64::MAX {
            return self.search(pattern, compared);
        }
        *compared += 1;
        let info = wanted.info;
        match source {
            Some(source) => {
                let mut range = self.by_both.range((source, info, 0)..=(source, info, u64::MAX));
                range.next().map(|(.., arrival)| *arrival)
            }
            None => {
                let mut range = self.by_info.range((info, 0)..=(info, u64::MAX));
                range.next().map(|(_, arrival)| *arrival)
            }
        }
    }

    /// Compares one after the other, from where the last search for this pattern has ended.
    fn search(&mut self, pattern: &Pattern, compared: &mut u64) -> Option<u64> {
        let known = self.places.iter().position(|(known, _)| known == pattern);
        let since = known.map_or(0, |place| self.places[place].1);
        let mut fits = |arrival: &u64| {
            *compared += 1;
            self.messages.get(arrival).is_some_and(|waiting| waiting.fits(pattern))
        };
        let found = match pattern.source {
            Some(source) => self.from(source, since).find(&mut fits),
            None => self.messages.range(since..).map(|(arrival, _)| *arrival).find(&mut fits),
        };
        let since = found.unwrap_or(self.arrivals);
        match known {
            Some(place) => self.places[place].1 = since,
            None => {
                if self.places.len() == PLACES {
                    self.places.pop_front();
                }
                self.places.push_back((*pattern, since));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;

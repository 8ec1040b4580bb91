//! The completion queue: requests that have ended and that no call has returned.

use std::collections::VecDeque;

use mx::matching::Match;
use rustc_hash::{FxHashMap, FxHashSet};

use super::request::{Completed, RequestId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    One(RequestId),
    /// The end of any request whose match information fits.
    Any(Match),
}

impl Filter {
    pub(super) fn fits<R>(&self, completed: &Completed<R>) -> bool {
        match self {
            Self::One(request) => *request == completed.request,
            Self::Any(wanted) => wanted.accepts(completed.status.match_info),
        }
    }
}

/// So many gaps may there be, besides as many as there are completions.
const GAPS: usize = 64;

/// Completions, each of which is returned once.
///
/// Names of requests are the engine's, so no peer chooses them to make a table slow.
#[derive(Debug)]
pub(super) struct CompletionQueue<R> {
    /// In the order in which they ended; those that were taken out of turn leave a gap. There is
    /// none at the front.
    queue: VecDeque<Option<Completed<R>>>,
    /// The place of the one at the front, counted from the first there ever was.
    front: u64,
    /// The place of each, up to the one at `indexed`.
    places: FxHashMap<RequestId, u64>,
    indexed: u64,
    count: usize,
    /// Those that have not ended, and that are not to be reported.
    forgotten: FxHashSet<RequestId>,
}

impl<R> Default for CompletionQueue<R> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            front: 0,
            places: FxHashMap::default(),
            indexed: 0,
            count: 0,
            forgotten: FxHashSet::default(),
        }
    }
}

impl<R> CompletionQueue<R> {
    pub(super) fn add(&mut self, completed: Completed<R>) {
        let request = completed.request;
        if !self.forgotten.is_empty() && self.forgotten.remove(&request) {
            return;
        }
        self.queue.push_back(Some(completed));
        self.count += 1;
    }

    /// The place of the completion of this request. Those that came since the last time are only
    /// now noted: one who takes the first that there is does not need it.
    fn place_of(&mut self, request: RequestId) -> Option<u64> {
        let first = self.indexed.max(self.front);
        let new = self.queue.range((first - self.front) as usize..);
        for (place, completed) in (first..).zip(new) {
            self.places.extend(completed.as_ref().map(|completed| (completed.request, place)));
        }
        self.indexed = self.front + self.queue.len() as u64;
        self.places.get(&request).copied()
    }

    /// A request that has ended and that a caller wants; it leaves the queue.
    pub(super) fn take(&mut self, want: Filter) -> Option<Completed<R>> {
        let place = match want {
            Filter::One(request) => (self.place_of(request)? - self.front) as usize,
            Filter::Any(..) => {
                let fits = |it: &Option<Completed<R>>| it.as_ref().is_some_and(|it| want.fits(it));
                self.queue.iter().position(fits)?
            }
        };
        let completed = self.queue[place].take()?;
        self.count -= 1;
        if self.front + (place as u64) < self.indexed {
            self.places.remove(&completed.request);
        }
        while let Some(None) = self.queue.front() {
            self.queue.pop_front();
            self.front += 1;
        }
        if self.queue.len() > GAPS + 2 * self.count {
            self.close_gaps();
        }
        Some(completed)
    }

    /// One that is never taken must not make those behind it stay as gaps.
    fn close_gaps(&mut self) {
        self.queue.retain(Option::is_some);
        self.places.clear();
        self.indexed = self.front;
    }

    fn each(&self) -> impl Iterator<Item = &Completed<R>> {
        self.queue.iter().flatten()
    }

    pub(super) fn peek_context(&self) -> Option<u64> {
        self.each().map(|completed| completed.status.context).find(|context| *context != 0)
    }

    pub(super) fn forget(&mut self, request: RequestId) {
        if self.take(Filter::One(request)).is_none() {
            self.forgotten.insert(request);
        }
    }

    pub(super) fn has(&mut self, want: Filter) -> bool {
        match want {
            Filter::One(request) => self.place_of(request).is_some(),
            Filter::Any(..) => self.each().any(|completed| want.fits(completed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::time::Instant;
    use bytes::Bytes;
    use mx::address::{Address, NicId};
    use mx::config::Config;
    use mx::endpoint::Endpoint;
    use mx::status::Status;

    use super::*;

    fn ends() -> impl FnMut(&mut CompletionQueue<()>) -> RequestId {
        let address = Address { nic: NicId([2; 6]), endpoint: 1 };
        let mut engine = Endpoint::<Bytes, Vec<u8>>::new(Config::default(), address, 1).unwrap();
        move |queue| {
            let receive = engine.irecv(Instant::ZERO, None, Match::ANY, Vec::new(), 0).unwrap();
            let request = RequestId::Receive(receive);
            let (result, peer) = (Ok(()), None);
            let status =
                Status { result, peer, match_info: 0, length: 0, transferred: 0, context: 0 };
            queue.add(Completed { request, status, sink: None });
            request
        }
    }

    fn taken(queue: &mut CompletionQueue<()>, want: Filter) -> Option<RequestId> {
        queue.take(want).map(|taken| taken.request)
    }

    #[test]
    fn each_is_taken_once_in_turn_or_out_of_turn() {
        const ANY: Filter = Filter::Any(Match::ANY);
        let (mut queue, mut add) = (CompletionQueue::default(), ends());
        let [a, b, c, d] = [(); 4].map(|()| add(&mut queue));
        assert_eq!(taken(&mut queue, ANY), Some(a));
        assert_eq!(taken(&mut queue, Filter::One(c)), Some(c));
        let e = add(&mut queue);
        assert_eq!(taken(&mut queue, ANY), Some(b));
        assert!(!queue.has(Filter::One(a)) && !queue.has(Filter::One(c)));
        assert!(queue.has(Filter::One(d)) && queue.has(Filter::One(e)) && queue.has(ANY));
        assert_eq!(taken(&mut queue, Filter::One(e)), Some(e));
        assert_eq!(taken(&mut queue, ANY), Some(d));
        let f = add(&mut queue);
        assert_eq!(taken(&mut queue, Filter::One(d)), None);
        assert_eq!(taken(&mut queue, Filter::One(f)), Some(f));
        assert!(!queue.has(ANY) && queue.queue.is_empty() && queue.places.is_empty());
    }

    #[test]
    fn one_that_is_never_taken_keeps_no_others() {
        let (mut queue, mut add) = (CompletionQueue::default(), ends());
        let oldest = add(&mut queue);
        for _ in 0..10_000 {
            let request = add(&mut queue);
            assert_eq!(taken(&mut queue, Filter::One(request)), Some(request));
        }
        assert!(queue.queue.len() <= GAPS + 2, "{}", queue.queue.len());
        assert_eq!(taken(&mut queue, Filter::One(oldest)), Some(oldest));
        assert!(queue.queue.is_empty() && queue.places.is_empty());
    }
}

//! Liveness of a peer: what it has to send, and since when it has sent none of that.
//!
//! That a peer sends anything shows that it is alive, not that the connection works: where frames
//! of one size or type never get through, the others would keep it up for ever. So what depends on
//! the path and on the other endpoint alone has to make progress: acknowledgements, answers to
//! pulls, the rest of a message that has begun. For what depends on the program there, room for
//! messages or a receive that fits, any frame will do.
//!
//! A peer is lost when nothing that is expected has come for the whole timeout, and it was probed
//! so often meanwhile: a host that did not run, such as a suspended machine, has not probed.

use base::time::{Duration, Instant};

/// So many probes are sent in vain before a peer counts as lost.
const PROBES: u32 = 4;

/// What may be expected of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    AnyFrame,
    Ack,
    Reply,
    /// The next numbered frame, since others that follow it, or pieces of its message, have come.
    NextFrame,
}

/// Since when something is expected, and probes since then.
#[derive(Clone, Copy, Debug)]
struct Open {
    since: Instant,
    probes: u32,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Liveness([Option<Open>; 4]);

impl Liveness {
    pub(crate) const fn has(&self, what: Expected) -> bool {
        self.0[what as usize].is_some()
    }

    /// When it last came, or began to be expected; the epoch if it is not expected.
    pub(crate) fn since(&self, what: Expected) -> Instant {
        self.0[what as usize].map_or(Instant::ZERO, |open| open.since)
    }

    /// This is expected now, or not. The timeout begins when it becomes expected.
    pub(crate) fn set(&mut self, what: Expected, is_expected: bool, now: Instant) {
        let open = &mut self.0[what as usize];
        *open = is_expected.then(|| open.unwrap_or(Open { since: now, probes: 0 }));
    }

    pub(crate) fn received(&mut self, what: Expected, now: Instant) {
        if let Some(open) = &mut self.0[what as usize] {
            *open = Open { since: now, probes: 0 };
        }
    }

    pub(crate) fn probed(&mut self) {
        for open in self.0.iter_mut().flatten() {
            open.probes += 1;
        }
    }

    /// When the first of them is overdue, without another frame or probe.
    pub(crate) fn deadline(&self, timeout: Duration) -> Option<Instant> {
        let ripe = self.0.iter().flatten().filter(|open| open.probes >= PROBES);
        ripe.map(|open| open.since + timeout).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_overdue_after_the_timeout_and_the_probes() {
        let at = Instant::from_micros;
        let timeout = Duration::from_micros(100);
        let mut liveness = Liveness::default();
        liveness.set(Expected::AnyFrame, true, at(0));
        liveness.set(Expected::Reply, true, at(10));
        liveness.set(Expected::Reply, true, at(20));
        for _ in 0..PROBES {
            assert_eq!(liveness.deadline(timeout), None);
            liveness.probed();
        }
        assert_eq!(liveness.deadline(timeout), Some(at(100)));
        liveness.received(Expected::AnyFrame, at(30));
        assert_eq!(liveness.deadline(timeout), Some(at(110)));
        liveness.set(Expected::Reply, false, at(40));
        liveness.received(Expected::Reply, at(50));
        assert_eq!((liveness.has(Expected::Reply), liveness.deadline(timeout)), (false, None));
    }
}

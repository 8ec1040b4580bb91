//! Whether messages come in the order in which they were sent.
//!
//! Messages of one stream, which one thread sends to one endpoint and which fit the same receives,
//! are matched in that order. Threads that receive see only when a receive was posted and when its
//! end was reported, and those of several threads overlap. So what shows for certain is this: when
//! a message has come, an earlier one of its stream has been matched; no receive that is posted
//! later can get it.

use std::collections::{HashMap, VecDeque};

/// A moment, counted by the check.
pub(super) type Moment = u64;

/// Messages that one thread sends to one endpoint and that fit the same receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SendStream {
    /// The thread that sends.
    pub(super) from: u64,
    /// The endpoint that receives.
    pub(super) to: usize,
    /// What receives look at.
    pub(super) class: u64,
}

/// Moments of a stream that are remembered. Receives last no longer than that.
const MAX_MOMENTS: usize = 256;

/// What has come of each stream.
#[derive(Debug, Default)]
pub(super) struct DeliveryOrder(HashMap<SendStream, VecDeque<(Moment, u64)>>);

impl DeliveryOrder {
    /// Message `serial` has come by a receive of this span: a later message that had come before
    /// it was posted, if there was one.
    pub(super) fn record(
        &mut self,
        stream: SendStream,
        serial: u64,
        (posted, ended): (Moment, Moment),
    ) -> Option<u64> {
        // Serial numbers grow from one to the next, so that the first one found is the highest.
        let latest = self.0.entry(stream).or_default();
        let before = latest.iter().rev().find(|(end, _)| *end < posted);
        let overtaken = before.map(|(_, later)| *later).filter(|later| *later > serial);
        if latest.back().is_none_or(|(_, later)| *later < serial) {
            if latest.len() == MAX_MOMENTS {
                latest.pop_front();
            }
            latest.push_back((ended, serial));
        }
        overtaken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_posted_after_the_end_of_a_later_one_is_out_of_order() {
        let mut order = DeliveryOrder::default();
        let stream = SendStream { from: 1, to: 2, class: 0 };
        assert_eq!(order.record(stream, 1, (0, 10)), None);
        assert_eq!(order.record(stream, 4, (5, 20)), None);
        assert_eq!(order.record(stream, 3, (15, 30)), None, "posted while the other was");
        assert_eq!(order.record(stream, 2, (21, 40)), Some(4));
        assert_eq!(order.record(SendStream { class: 1, ..stream }, 2, (21, 40)), None);
        assert_eq!(order.record(SendStream { from: 2, ..stream }, 2, (21, 40)), None);
        assert_eq!(order.record(stream, 5, (41, 50)), None);
    }
}

//! What was sent and has not come, and all that went wrong.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base::prng::Prng;
use bytes::Bytes;
use mx::status::RequestError;
use mx_io::endpoint::Completed;

use super::order::{DeliveryOrder, Moment, SendStream};

/// The largest message, in bytes.
pub(super) const MAX_SIZE: usize = 2 << 20;
/// How many beginnings messages have in the pattern.
const BEGINNINGS: u64 = 4096;
/// An endpoint that gets no message for so long, although some are on their way, has stalled.
pub(super) const STALL: Duration = Duration::from_millis(100);
/// Where the number of a message ends in its match information.
const SERIAL_BITS: u32 = 40;
/// The bits of it that receives look at.
pub(super) const CLASS: u64 = 1;
/// Faults that are reported; all are counted.
const MAX_REPORTED: usize = 20;

/// What was sent and has not come, and all that went wrong. Times are of this process.
pub(super) struct DeliveryCheck {
    /// What messages are made of, each from a beginning of its own.
    pattern: Bytes,
    in_flight: Mutex<InFlight>,
    faults: Mutex<Vec<String>>,
    pub(super) tally: Tally,
    moments: AtomicU64,
    /// No more messages are sent.
    pub(super) is_over: AtomicBool,
    /// No more messages are expected.
    pub(super) is_drained: AtomicBool,
}

/// What happened how often.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) received: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) truncated: AtomicU64,
    pub(super) cancelled: AtomicU64,
    pub(super) claimed: AtomicU64,
    pub(super) synchronous: AtomicU64,
    pub(super) stalls: AtomicU64,
    pub(super) longest_stall_nanos: AtomicU64,
    pub(super) faults: AtomicU64,
}

struct InFlight {
    /// Bytes of each message that is on its way, by match information.
    under_way: HashMap<u64, usize>,
    order: DeliveryOrder,
    /// For each endpoint: messages on their way there, and since when none has come.
    inbound: Vec<(usize, Instant)>,
}

/// The match information of a message: the thread that sends it, and how many it has sent before.
pub(super) const fn match_info(thread: u64, serial: u64) -> u64 {
    thread << SERIAL_BITS | serial
}

/// The thread that sent a message, its number, and what receives look at.
const fn parts(match_info: u64) -> (u64, u64, u64) {
    (match_info >> SERIAL_BITS, match_info & ((1 << SERIAL_BITS) - 1), match_info & CLASS)
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl DeliveryCheck {
    pub(super) fn new(endpoints: usize) -> Self {
        let mut prng = Prng::new(1);
        let words = (MAX_SIZE + BEGINNINGS as usize) / 8 + 1;
        let pattern: Vec<u8> = (0..words).flat_map(|_| prng.next_u64().to_ne_bytes()).collect();
        let inbound = vec![(0, Instant::now()); endpoints];
        Self {
            pattern: pattern.into(),
            in_flight: Mutex::new(InFlight {
                under_way: HashMap::new(),
                order: DeliveryOrder::default(),
                inbound,
            }),
            faults: Mutex::default(),
            tally: Tally::default(),
            moments: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            is_drained: AtomicBool::new(false),
        }
    }

    fn in_flight(&self) -> MutexGuard<'_, InFlight> {
        // Each step leaves it in order.
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message to an endpoint, which is expected from now on.
    pub(super) fn issue(&self, to: usize, match_info: u64, size: usize) -> Bytes {
        let mut in_flight = self.in_flight();
        in_flight.under_way.insert(match_info, size);
        let (expected, since) = &mut in_flight.inbound[to];
        if *expected == 0 {
            *since = Instant::now();
        }
        *expected += 1;
        drop(in_flight);
        self.content(match_info, size)
    }

    fn content(&self, match_info: u64, size: usize) -> Bytes {
        let begin = Prng::new(match_info).below(BEGINNINGS) as usize;
        self.pattern.slice(begin..begin + size)
    }

    /// This moment; a later one has a higher number.
    pub(super) fn moment(&self) -> Moment {
        self.moments.fetch_add(1, Ordering::Relaxed)
    }

    /// Checks a message that has come to an endpoint, by a receive that was posted after this
    /// moment, into this much memory.
    pub(super) fn complete(
        &self,
        to: usize,
        (posted, capacity): (Moment, usize),
        completed: &Completed<Vec<u8>>,
    ) {
        let ended = self.moment();
        let status = completed.status;
        let match_info = status.match_info;
        let mut in_flight = self.in_flight();
        let Some(size) = in_flight.under_way.remove(&match_info) else {
            drop(in_flight);
            return self.fault(format!("{match_info:#x} came twice, or never was: {status:?}"));
        };
        let (expected, since) = &mut in_flight.inbound[to];
        *expected = expected.saturating_sub(1);
        let gap = std::mem::replace(since, Instant::now()).elapsed();
        let (from, serial, class) = parts(match_info);
        let overtaken =
            in_flight.order.record(SendStream { from, to, class }, serial, (posted, ended));
        drop(in_flight);
        if let Some(later) = overtaken {
            self.fault(format!("{match_info:#x} came after message {later} of the same stream"));
        }
        self.note_gap(gap);
        count(&self.tally.received);
        self.tally.bytes.fetch_add(status.transferred, Ordering::Relaxed);
        let fits = size.min(capacity);
        let result = if fits < size { Err(RequestError::Truncated) } else { Ok(()) };
        if result.is_err() {
            count(&self.tally.truncated);
        }
        if (status.result, status.length, status.transferred) != (result, size as u64, fits as u64)
        {
            return self
                .fault(format!("{match_info:#x}: {size} bytes into {capacity}: {status:?}"));
        }
        let data = completed.sink.as_deref().unwrap_or_default();
        if data.get(..fits) != Some(&self.content(match_info, size)[..fits]) {
            self.fault(format!("{match_info:#x}: {size} bytes, and some are wrong"));
        }
    }

    fn note_gap(&self, gap: Duration) {
        if gap > STALL {
            count(&self.tally.stalls);
            let nanos = gap.as_nanos() as u64;
            self.tally.longest_stall_nanos.fetch_max(nanos, Ordering::Relaxed);
        }
    }

    /// Notes that something is wrong.
    pub(super) fn fault(&self, what: String) {
        count(&self.tally.faults);
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.len() < MAX_REPORTED {
            faults.push(what);
        }
    }

    /// The first faults.
    pub(super) fn faults(&self) -> Vec<String> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Messages that have not come.
    pub(super) fn missing(&self) -> usize {
        self.in_flight().under_way.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mx::ids::ReceiveId;
    use mx::status::Status;
    use mx_io::endpoint::RequestId;

    fn completed(match_info: u64, length: u64, data: Vec<u8>) -> Completed<Vec<u8>> {
        let (transferred, result) = (data.len() as u64, Ok(()));
        let status = Status { result, peer: None, match_info, length, transferred, context: 0 };
        Completed { request: RequestId::Receive(ReceiveId::default()), status, sink: Some(data) }
    }

    #[test]
    fn whatever_is_wrong_is_a_fault() {
        let check = DeliveryCheck::new(1);
        let right = check.issue(0, 7, 100).to_vec();
        check.complete(0, (0, 200), &completed(7, 100, right.clone()));
        assert_eq!(check.faults(), [""; 0]);
        check.complete(0, (0, 200), &completed(7, 100, right.clone()));
        check.issue(0, 7, 100);
        check.complete(0, (0, 200), &completed(7, 99, right[..99].to_vec()));
        check.issue(0, 7, 100);
        check.complete(0, (0, 200), &completed(7, 100, vec![1; 100]));
        // Truncated, and says it is not.
        check.issue(0, 7, 100);
        check.complete(0, (0, 50), &completed(7, 100, right[..50].to_vec()));
        // By a receive that was posted when a later one had come.
        let earlier = check.issue(0, 5, 100).to_vec();
        check.complete(0, (check.moment(), 100), &completed(5, 100, earlier));
        assert_eq!(check.faults().len(), 5, "{:?}", check.faults());
        assert_eq!(check.missing(), 0);
    }
}

//! The closed-loop request/response client: each connection asks, waits, perhaps thinks, and asks
//! again.
//!
//! One byte each way over TCP is the netperf `TCP_RR` that gave interrupt coalescing away at
//! exactly 8000 round trips a second. Think times drawn evenly from a range let requests meet a
//! free-running interrupt timer in a uniformly distributed phase; without them a closed loop locks
//! onto it.
//!
//! On datagram transports an answer is matched by a sequence number: little-endian, in the first 8
//! bytes of request and answer, or in as many as both have. With one byte a stray answer passes for
//! a good one if it is a multiple of 256 requests late, which the timeout makes unlikely.

use alloc::collections::{BinaryHeap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::pacer::earliest;
use crate::{
    Action, ConnectionId, Counter, Duration, Framing, Instant, Now, Prng, Recorder, RrClientSpec,
    Timing, Workload, WorkloadEvent, random_duration,
};

pub(crate) const TOO_LONG: &str = "an answer is longer than response_bytes; \
    give client and server the same request_bytes and response_bytes";
pub(crate) const CLOSED: &str =
    "the server closed the connection before the end; look at the server agent's output";

/// A request buffer and the sequence number in it.
#[derive(Debug)]
pub(crate) struct TaggedRequest {
    bytes: Vec<u8>,
    tag_bytes: usize,
}

impl TaggedRequest {
    pub(crate) fn new(request_bytes: usize, response_bytes: usize) -> Self {
        Self {
            bytes: vec![b'x'; request_bytes],
            tag_bytes: request_bytes.min(response_bytes).min(8),
        }
    }

    /// The request with this sequence number.
    pub(crate) fn tagged(&mut self, sequence: u64) -> &[u8] {
        self.bytes[..self.tag_bytes].copy_from_slice(&sequence.to_le_bytes()[..self.tag_bytes]);
        &self.bytes
    }

    /// Is this the answer to the request with this sequence number?
    pub(crate) fn is_answer(&self, sequence: u64, answer: &[u8]) -> bool {
        answer.get(..self.tag_bytes) == Some(&sequence.to_le_bytes()[..self.tag_bytes])
    }
}

/// What a connection waits for that does not think.
#[derive(Clone, Copy, Debug)]
struct Asked {
    since: Instant,
    sequence: u64,
    received: usize,
}

/// See the module.
#[derive(Debug)]
pub struct RrClosed {
    framing: Framing,
    response_bytes: usize,
    think: Duration,
    timeout: Duration,
    prng: Prng,
    request: TaggedRequest,
    connections: Vec<Option<Asked>>,
    /// Connections that think, with the moment until which they do.
    thinking: BinaryHeap<Reverse<(Instant, ConnectionId)>>,
    /// Requests in datagrams by when they were sent, some of which are answered by now.
    requests: VecDeque<(Instant, ConnectionId, u64)>,
    sequence: u64,
}

impl RrClosed {
    /// A client for `spec`, whose think times follow from `seed`.
    pub fn new(spec: &RrClientSpec, framing: Framing, seed: u64) -> Self {
        Self {
            framing,
            response_bytes: spec.response_bytes,
            think: Duration::from_micros(spec.think_us_max),
            timeout: Duration::from_millis(spec.timeout_ms),
            prng: Prng::new(seed),
            request: TaggedRequest::new(spec.request_bytes, spec.response_bytes),
            connections: vec![None; spec.connections],
            thinking: BinaryHeap::with_capacity(spec.connections),
            requests: VecDeque::new(),
            sequence: 0,
        }
    }

    fn think(&mut self, connection: ConnectionId, from: Instant) {
        let until = from + random_duration(&mut self.prng, self.think);
        self.connections[connection] = None;
        self.thinking.push(Reverse((until, connection)));
    }

    /// Takes in bytes; says whether they are too many.
    fn received(
        &mut self,
        at: Instant,
        connection: ConnectionId,
        bytes: &[u8],
        recorder: &mut Recorder,
    ) -> Result<(), &'static str> {
        recorder.count(at, Counter::BytesReceived, bytes.len() as u64);
        let Some(Asked { since, sequence, received }) = &mut self.connections[connection] else {
            return self.unexpected(at, recorder);
        };
        let complete = match self.framing {
            Framing::Stream => {
                *received += bytes.len();
                if *received > self.response_bytes {
                    return Err(TOO_LONG);
                }
                *received == self.response_bytes
            }
            Framing::Datagram => self.request.is_answer(*sequence, bytes),
        };
        if complete {
            let latency_ns = at.since(*since).as_nanos() as i64;
            recorder.count(at, Counter::Transactions, 1);
            recorder.record(at, Timing::Latency, latency_ns);
            recorder.sample(at, &[(Timing::Latency, latency_ns)]);
            self.think(connection, at);
        } else if self.framing == Framing::Datagram {
            recorder.count(at, Counter::Stray, 1);
        }
        Ok(())
    }

    /// Unrequested bytes: late or doubled on a datagram transport, a mistake on a stream.
    fn unexpected(&self, at: Instant, recorder: &mut Recorder) -> Result<(), &'static str> {
        if self.framing == Framing::Stream {
            return Err(TOO_LONG);
        }
        recorder.count(at, Counter::Stray, 1);
        Ok(())
    }

    /// Gives up on requests whose answer is overdue. Streams lose nothing.
    fn expire(&mut self, at: Instant, recorder: &mut Recorder) {
        while let Some(&(since, connection, sequence)) = self.requests.front() {
            let waits = self.connections[connection].is_some_and(|it| it.sequence == sequence);
            if waits && since + self.timeout > at {
                break;
            }
            self.requests.pop_front();
            if waits {
                recorder.count(at, Counter::Lost, 1);
                self.think(connection, at);
            }
        }
    }

    fn finish(&self, recorder: &mut Recorder) -> Action<'_> {
        for asked in self.connections.iter().flatten() {
            recorder.count(asked.since, Counter::Unanswered, 1);
        }
        Action::Done
    }

    fn decide(&mut self, at: Instant, recorder: &mut Recorder) -> Action<'_> {
        let end = recorder.window().end;
        if at >= end {
            return self.finish(recorder);
        }
        // Streams have none.
        self.expire(at, recorder);
        let expires = self.requests.front().map(|(since, ..)| *since + self.timeout);
        let wake = earliest(Some(end), expires);
        match self.thinking.peek() {
            Some(&Reverse((due, connection))) if due <= at => {
                self.thinking.pop();
                self.send(at, connection, recorder)
            }
            next => Action::Wait { until: earliest(wake, next.map(|Reverse((due, _))| *due)) },
        }
    }

    fn send(
        &mut self,
        at: Instant,
        connection: ConnectionId,
        recorder: &mut Recorder,
    ) -> Action<'_> {
        let sequence = self.sequence;
        self.sequence += 1;
        self.connections[connection] = Some(Asked { since: at, sequence, received: 0 });
        if self.framing == Framing::Datagram {
            self.requests.push_back((at, connection, sequence));
        }
        let bytes = self.request.tagged(sequence);
        recorder.count(at, Counter::BytesSent, bytes.len() as u64);
        Action::Send { connection, bytes }
    }
}

impl Workload for RrClosed {
    fn needs_time_of_sent(&self) -> bool {
        // The end of a think time that another connection waits for.
        self.think > Duration::ZERO
    }

    fn next(&mut self, now: Now, event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_> {
        match event {
            WorkloadEvent::Start => {
                // The first requests are spread by a think time too, not sent as one burst.
                (0..self.connections.len()).for_each(|connection| self.think(connection, now.at));
            }
            WorkloadEvent::Received { connection, bytes } => {
                if let Err(why) = self.received(now.at, connection, bytes, recorder) {
                    return Action::Fail(why);
                }
            }
            WorkloadEvent::Closed { .. } if now.at < recorder.window().end => {
                return Action::Fail(CLOSED);
            }
            _ => {}
        }
        self.decide(now.at, recorder)
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;

    use super::*;
    use crate::script::{Did, Script};

    fn script(spec: &RrClientSpec, framing: Framing) -> Script<RrClosed> {
        Script::new(RrClosed::new(spec, framing, 7), 10_000_000)
    }

    #[test]
    fn closed_loop_sends_again_as_soon_as_it_has_read() {
        let mut script = script(&RrClientSpec::default(), Framing::Stream);
        assert!(matches!(script.start(), Did::Send(0, _)));
        assert_eq!(script.sent(500, 0), Did::Wait(Some(10_000_000)));
        assert!(matches!(script.received(90_000, 0, b"y"), Did::Send(0, _)));
        assert_eq!(script.timing(Timing::Latency).buckets.len(), 1);
        assert_eq!(script.timing(Timing::Latency).sum_ns, 90_000);
        script.sent(90_500, 0);
        assert_eq!(script.woke(10_000_000), Did::Done);
        assert_eq!(script.counter(Counter::Unanswered), 1);
        assert_eq!(script.counter(Counter::Transactions), 1);
    }

    #[test]
    fn a_stream_answer_may_come_in_pieces() {
        let spec = RrClientSpec { response_bytes: 10, ..RrClientSpec::default() };
        let mut script = script(&spec, Framing::Stream);
        script.start();
        script.sent(1, 0);
        assert_eq!(script.received(100, 0, b"1234"), Did::Wait(Some(10_000_000)));
        assert_eq!(script.counter(Counter::Transactions), 0);
        assert!(matches!(script.received(300, 0, b"567890"), Did::Send(..)));
        assert_eq!(script.timing(Timing::Latency).sum_ns, 300);
        script.sent(301, 0);
        assert_eq!(script.received(400, 0, b"12345678901"), Did::Fail(TOO_LONG.to_owned()));
    }

    #[test]
    fn think_times_follow_from_the_seed() {
        let spec = RrClientSpec { think_us_max: 250, connections: 3, ..RrClientSpec::default() };
        let run = |seed| {
            let mut script = Script::new(RrClosed::new(&spec, Framing::Stream, seed), 100_000_000);
            let mut at = 0;
            let mut did = script.start();
            let mut sends = Vec::new();
            while sends.len() < 50 {
                did = match did {
                    Did::Wait(until) => {
                        at = until.unwrap();
                        script.woke(at)
                    }
                    Did::Send(connection, _) => {
                        sends.push((at, connection));
                        script.sent(at, connection);
                        script.received(at, connection, b"y")
                    }
                    other => panic!("{other:?}"),
                };
            }
            sends
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        assert!(run(1).iter().any(|&(_, connection)| connection == 2));
    }

    #[test]
    fn a_lost_datagram_is_counted_and_its_late_answer_is_stray() {
        let spec = RrClientSpec { timeout_ms: 1, ..RrClientSpec::default() };
        let mut script = script(&spec, Framing::Datagram);
        assert_eq!(script.start(), Did::Send(0, vec![0]));
        assert_eq!(script.sent(10, 0), Did::Wait(Some(1_000_000)));
        assert_eq!(script.woke(1_000_000), Did::Send(0, vec![1]));
        assert_eq!(script.counter(Counter::Lost), 1);
        assert_eq!(script.sent(1_000_010, 0), Did::Wait(Some(2_000_000)));
        assert_eq!(script.received(1_000_020, 0, &[0]), Did::Wait(Some(2_000_000)));
        assert_eq!(script.counter(Counter::Stray), 1);
        assert_eq!(script.received(1_050_000, 0, &[1]), Did::Send(0, vec![2]));
        assert_eq!(script.timing(Timing::Latency).sum_ns, 50_000);
    }

    #[test]
    fn a_server_that_leaves_early_is_an_error() {
        let mut script = script(&RrClientSpec::default(), Framing::Stream);
        script.start();
        script.sent(1, 0);
        let did = script.handle(2, WorkloadEvent::Closed { connection: 0 });
        assert_eq!(did, Did::Fail(CLOSED.to_owned()));
    }
}

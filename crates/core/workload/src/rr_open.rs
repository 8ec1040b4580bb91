//! The open-loop request/response client: requests are due on a schedule, whatever became of
//! earlier ones.
//!
//! `latency` counts from the moment a request was due, `service` from when it was really sent. A
//! slow answer delays no request, and a request that goes out late because the client itself was
//! late is charged for it: leaving either out is the coordinated omission that makes overloaded
//! systems look fast. The rate is that of the whole agent; its requests take the connections in
//! turn. Several may be outstanding on each: a stream answers in order, datagrams are matched by
//! sequence number (see the closed loop).

use alloc::vec::Vec;

use crate::pacer::{Pacer, earliest};
use crate::rr_client::{CLOSED, TOO_LONG, TaggedRequest};
use crate::{
    Action, ConnectionId, Counter, Duration, Framing, Instant, Now, Recorder, RrClientSpec, Timing,
    Workload, WorkloadEvent,
};
use alloc::collections::VecDeque;

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    sequence: u64,
    due: Instant,
    sent: Instant,
}

/// One connection: its requests under way, oldest first, and how much of the oldest one's answer is
/// here.
#[derive(Debug)]
struct Lane {
    outstanding: VecDeque<Outstanding>,
    received: usize,
}

/// See the module.
#[derive(Debug)]
pub struct RrOpen {
    framing: Framing,
    response_bytes: usize,
    timeout: Duration,
    pacer: Pacer,
    request: TaggedRequest,
    lanes: Vec<Lane>,
    /// Requests in datagrams by when they were sent, some of which are answered by now.
    requests: VecDeque<(Instant, ConnectionId, u64)>,
    sequence: u64,
}

impl RrOpen {
    /// A client for `spec` that sends `rate_per_s` requests a second.
    pub fn new(spec: &RrClientSpec, rate_per_s: u64, framing: Framing) -> Self {
        let room = 1024 / spec.connections.max(1);
        let lane = || Lane { outstanding: VecDeque::with_capacity(room), received: 0 };
        Self {
            framing,
            response_bytes: spec.response_bytes,
            timeout: Duration::from_millis(spec.timeout_ms),
            pacer: Pacer::per_second(rate_per_s),
            request: TaggedRequest::new(spec.request_bytes, spec.response_bytes),
            lanes: (0..spec.connections).map(|_| lane()).collect(),
            requests: VecDeque::new(),
            sequence: 0,
        }
    }

    fn received_stream(
        &mut self,
        at: Instant,
        connection: ConnectionId,
        bytes: usize,
        recorder: &mut Recorder,
    ) -> Result<(), &'static str> {
        let lane = &mut self.lanes[connection];
        lane.received += bytes;
        while lane.received >= self.response_bytes {
            let answered = lane.outstanding.pop_front().ok_or(TOO_LONG)?;
            lane.received -= self.response_bytes;
            record(at, answered, recorder);
        }
        if lane.received > 0 && lane.outstanding.is_empty() { Err(TOO_LONG) } else { Ok(()) }
    }

    fn received_datagram(
        &mut self,
        at: Instant,
        connection: ConnectionId,
        bytes: &[u8],
        recorder: &mut Recorder,
    ) {
        let outstanding = &mut self.lanes[connection].outstanding;
        let request = &self.request;
        let place = outstanding.iter().position(|o| request.is_answer(o.sequence, bytes));
        let Some(answered) = place.and_then(|place| outstanding.remove(place)) else {
            recorder.count(at, Counter::Stray, 1);
            return;
        };
        // An older request is unanswered yet: its answer was overtaken, or one of the two got lost.
        if place > Some(0) {
            recorder.count(at, Counter::OutOfOrder, 1);
        }
        record(at, answered, recorder);
    }

    /// Gives up on requests whose answer is overdue. Streams lose nothing.
    fn expire(&mut self, at: Instant, recorder: &mut Recorder) {
        while let Some(&(sent, connection, sequence)) = self.requests.front() {
            let outstanding = &mut self.lanes[connection].outstanding;
            let waits = outstanding.binary_search_by_key(&sequence, |it| it.sequence).is_ok();
            if waits && sent + self.timeout > at {
                break;
            }
            self.requests.pop_front();
            if waits {
                // Those of its lane that were sent before it have gone.
                outstanding.pop_front();
                recorder.count(at, Counter::Lost, 1);
            }
        }
    }

    fn decide(&mut self, at: Instant, recorder: &mut Recorder) -> Action<'_> {
        let end = recorder.window().end;
        if at >= end {
            let outstanding = self.lanes.iter().flat_map(|lane| &lane.outstanding);
            outstanding.for_each(|request| recorder.count(request.due, Counter::Unanswered, 1));
            return Action::Done;
        }
        self.expire(at, recorder);
        let expires = self.requests.front().map(|(sent, ..)| *sent + self.timeout);
        let wake = earliest(earliest(Some(end), Some(self.pacer.due())), expires);
        if self.pacer.due() > at {
            return Action::Wait { until: wake };
        }
        self.send(at, recorder)
    }

    fn send(&mut self, at: Instant, recorder: &mut Recorder) -> Action<'_> {
        let sequence = self.sequence;
        self.sequence += 1;
        let due = self.pacer.due();
        self.pacer.advance();
        let connection = (sequence % self.lanes.len() as u64) as ConnectionId;
        self.lanes[connection].outstanding.push_back(Outstanding { sequence, due, sent: at });
        if self.framing == Framing::Datagram {
            self.requests.push_back((at, connection, sequence));
        }
        let bytes = self.request.tagged(sequence);
        recorder.count(at, Counter::BytesSent, bytes.len() as u64);
        Action::Send { connection, bytes }
    }
}

fn record(at: Instant, answered: Outstanding, recorder: &mut Recorder) {
    let latency_ns = at.since(answered.due).as_nanos() as i64;
    recorder.count(at, Counter::Transactions, 1);
    recorder.record(at, Timing::Latency, latency_ns);
    recorder.record(at, Timing::Service, at.since(answered.sent).as_nanos() as i64);
    recorder.sample(at, &[(Timing::Latency, latency_ns)]);
}

impl Workload for RrOpen {
    fn next(&mut self, now: Now, event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_> {
        let at = now.at;
        match event {
            WorkloadEvent::Received { connection, bytes } => {
                recorder.count(at, Counter::BytesReceived, bytes.len() as u64);
                match self.framing {
                    Framing::Datagram => self.received_datagram(at, connection, bytes, recorder),
                    Framing::Stream => {
                        let taken = self.received_stream(at, connection, bytes.len(), recorder);
                        if let Err(why) = taken {
                            return Action::Fail(why);
                        }
                    }
                }
            }
            WorkloadEvent::Closed { .. } if at < recorder.window().end => {
                return Action::Fail(CLOSED);
            }
            _ => {}
        }
        self.decide(at, recorder)
    }
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned;
    use alloc::vec;

    use super::*;
    use crate::script::{Did, Script};

    /// 1000 requests a second: one due each millisecond.
    fn script(spec: &RrClientSpec, framing: Framing) -> Script<RrOpen> {
        Script::new(RrOpen::new(spec, 1000, framing), 5_000_000)
    }

    #[test]
    fn latency_counts_from_when_the_request_was_due() {
        let mut script = script(&RrClientSpec::default(), Framing::Stream);
        assert!(matches!(script.start(), Did::Send(0, _)));
        assert_eq!(script.sent(100, 0), Did::Wait(Some(1_000_000)));
        // The second request goes out on time although the first is unanswered; the third goes out
        // late.
        assert!(matches!(script.woke(1_000_000), Did::Send(0, _)));
        assert_eq!(script.sent(1_000_100, 0), Did::Wait(Some(2_000_000)));
        // Two and a half milliseconds after the start, both answers come in one read.
        assert!(matches!(script.received(2_500_000, 0, b"yy"), Did::Send(0, _)));
        let latency = script.timing(Timing::Latency);
        assert_eq!((latency.min_ns, latency.max_ns), (1_500_000, 2_500_000));
        script.sent(2_500_100, 0);
        script.received(2_600_000, 0, b"y");
        assert_eq!(script.timing(Timing::Latency).min_ns, 600_000, "due at 2 ms, not sent at 2.5");
        assert_eq!(script.timing(Timing::Service).min_ns, 100_000);
        assert_eq!(script.counter(Counter::Transactions), 3);
    }

    #[test]
    fn a_late_client_catches_up_with_its_schedule() {
        let mut script =
            script(&RrClientSpec { connections: 2, ..Default::default() }, Framing::Stream);
        script.start();
        script.sent(100, 0);
        for connection in [1, 0, 1] {
            assert!(matches!(script.woke(3_000_000), Did::Send(c, _) if c == connection));
        }
        assert_eq!(script.sent(3_000_000, 1), Did::Wait(Some(4_000_000)));
        assert_eq!(script.woke(5_000_000), Did::Done);
        assert_eq!(script.counter(Counter::Unanswered), 4);
    }

    #[test]
    fn datagrams_may_be_overtaken_lost_or_doubled() {
        let spec = RrClientSpec { timeout_ms: 3, ..RrClientSpec::default() };
        let mut script = script(&spec, Framing::Datagram);
        assert_eq!(script.start(), Did::Send(0, vec![0]));
        script.sent(1, 0);
        assert_eq!(script.woke(1_000_000), Did::Send(0, vec![1]));
        script.sent(1_000_001, 0);
        assert_eq!(script.received(1_200_000, 0, &[1]), Did::Wait(Some(2_000_000)));
        assert_eq!(script.counter(Counter::OutOfOrder), 1);
        assert_eq!(script.timing(Timing::Latency).sum_ns, 200_000);
        script.received(1_300_000, 0, &[1]);
        assert_eq!(script.counter(Counter::Stray), 1);
        script.woke(2_000_000);
        assert_eq!(script.sent(2_000_001, 0), Did::Wait(Some(3_000_000)));
        script.woke(3_000_000);
        assert_eq!(script.counter(Counter::Lost), 1, "request 0 was never answered");
        assert_eq!(script.counter(Counter::Transactions), 1);
    }

    #[test]
    fn half_an_answer_stays_half() {
        let spec = RrClientSpec { response_bytes: 4, ..RrClientSpec::default() };
        let mut script = script(&spec, Framing::Stream);
        script.start();
        script.sent(1, 0);
        script.received(10, 0, b"123");
        assert_eq!(script.counter(Counter::Transactions), 0);
        script.received(20, 0, b"4");
        assert_eq!(script.counter(Counter::Transactions), 1);
        assert_eq!(script.received(30, 0, b"5"), Did::Fail(TOO_LONG.to_owned()));
    }
}

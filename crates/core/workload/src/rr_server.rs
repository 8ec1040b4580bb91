//! The request/response server: answers each request after some CPU work, one at a time, in arrival
//! order.
//!
//! With 110 us of work it is the "more realistic benchmark" of the 8000-round-trips story. Requests
//! that arrive during the work wait in the host, as they would for any single-threaded server. Like
//! one that blocks in its write, it also takes up no other request while a client leaves too much
//! of an answer unread.

use alloc::vec;
use alloc::vec::Vec;

use crate::{
    Action, ConnectionId, Counter, Duration, Framing, Now, Recorder, RrServerSpec, Workload,
    WorkloadEvent,
};
use alloc::collections::VecDeque;

/// So many requests may wait. More come in only while a client reads no answers.
const MAX_JOBS: usize = 1 << 18;

/// A request that has been read and not yet answered.
#[derive(Clone, Copy, Debug)]
struct Job {
    connection: ConnectionId,
    /// The head of a datagram request; the answer repeats as much of it as both have room for.
    tag: [u8; 8],
    tag_bytes: usize,
}

/// See the module.
#[derive(Debug)]
pub struct RrServer {
    framing: Framing,
    request_bytes: usize,
    compute: Duration,
    response: Vec<u8>,
    /// By connection: bytes of a request that is not complete yet.
    received: Vec<usize>,
    jobs: VecDeque<Job>,
    /// Whose answer the transport has not taken yet.
    blocked: Option<ConnectionId>,
}

impl RrServer {
    /// A server for `spec`.
    pub fn new(spec: &RrServerSpec, framing: Framing) -> Self {
        Self {
            framing,
            request_bytes: spec.request_bytes,
            compute: Duration::from_micros(spec.compute_us),
            response: vec![b'y'; spec.response_bytes],
            received: Vec::with_capacity(64),
            jobs: VecDeque::with_capacity(256),
            blocked: None,
        }
    }

    fn received(&mut self, connection: ConnectionId, bytes: &[u8]) {
        match self.framing {
            Framing::Datagram => {
                let mut job = Job { connection, tag: [0; 8], tag_bytes: bytes.len().min(8) };
                job.tag[..job.tag_bytes].copy_from_slice(&bytes[..job.tag_bytes]);
                self.jobs.push_back(job);
            }
            Framing::Stream => {
                if connection >= self.received.len() {
                    self.received.resize(connection + 1, 0);
                }
                self.received[connection] += bytes.len();
                while self.received[connection] >= self.request_bytes {
                    self.received[connection] -= self.request_bytes;
                    self.jobs.push_back(Job { connection, tag: [0; 8], tag_bytes: 0 });
                }
            }
        }
    }

    fn answer(&mut self, now: Now, recorder: &mut Recorder) -> Action<'_> {
        let Some(job) = self.jobs.pop_front() else {
            return Action::Wait { until: None };
        };
        let tag_bytes = job.tag_bytes.min(self.response.len());
        self.response[..tag_bytes].copy_from_slice(&job.tag[..tag_bytes]);
        recorder.count(now.at, Counter::Transactions, 1);
        recorder.count(now.at, Counter::BytesSent, self.response.len() as u64);
        Action::Send { connection: job.connection, bytes: &self.response }
    }

    fn unblock(&mut self, connection: ConnectionId) {
        if self.blocked == Some(connection) {
            self.blocked = None;
        }
    }

    /// Starts on the oldest request, if there is one.
    fn work(&mut self, now: Now, recorder: &mut Recorder) -> Action<'_> {
        match self.jobs.front() {
            _ if self.blocked.is_some() => Action::Wait { until: None },
            None => Action::Wait { until: None },
            Some(_) if self.compute == Duration::ZERO => self.answer(now, recorder),
            Some(_) => Action::Compute(self.compute),
        }
    }
}

impl Workload for RrServer {
    fn needs_time_of_sent(&self) -> bool {
        false
    }

    fn next(&mut self, now: Now, event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_> {
        match event {
            WorkloadEvent::Computed => return self.answer(now, recorder),
            WorkloadEvent::Received { connection, bytes } => {
                recorder.count(now.at, Counter::BytesReceived, bytes.len() as u64);
                self.received(connection, bytes);
                if self.jobs.len() > MAX_JOBS {
                    return Action::Fail("a client sends requests and does not read the answers");
                }
            }
            WorkloadEvent::Sent { connection, backlog } if backlog > 0 => {
                self.blocked = Some(connection);
            }
            WorkloadEvent::Drained { connection } => self.unblock(connection),
            WorkloadEvent::Closed { connection } => {
                self.unblock(connection);
                self.jobs.retain(|job| job.connection != connection);
            }
            WorkloadEvent::Start | WorkloadEvent::Sent { .. } | WorkloadEvent::Woke => {}
        }
        self.work(now, recorder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Did, Script};

    fn script(spec: &RrServerSpec, framing: Framing) -> Script<RrServer> {
        Script::new(RrServer::new(spec, framing), 1_000_000_000)
    }

    #[test]
    fn works_then_answers_in_arrival_order() {
        let spec = RrServerSpec { compute_us: 110, ..RrServerSpec::default() };
        let mut script = script(&spec, Framing::Stream);
        assert_eq!(script.start(), Did::Wait(None));
        assert_eq!(script.received(1000, 4, b"xx"), Did::Compute(110_000));
        let computed = script.handle(111_000, WorkloadEvent::Computed);
        assert_eq!(computed, Did::Send(4, b"y".to_vec()));
        assert_eq!(
            script.sent(111_500, 4),
            Did::Compute(110_000),
            "the second request of that read"
        );
        assert_eq!(script.handle(221_500, WorkloadEvent::Computed), Did::Send(4, b"y".to_vec()));
        assert_eq!(script.sent(222_000, 4), Did::Wait(None));
        assert_eq!(script.counter(Counter::Transactions), 2);
    }

    #[test]
    fn counts_requests_in_a_stream_per_connection() {
        let spec = RrServerSpec { request_bytes: 4, response_bytes: 2, ..RrServerSpec::default() };
        let mut script = script(&spec, Framing::Stream);
        script.start();
        assert_eq!(script.received(1, 0, b"123"), Did::Wait(None));
        assert_eq!(script.received(2, 1, b"1"), Did::Wait(None));
        assert_eq!(script.received(3, 0, b"412"), Did::Send(0, b"yy".to_vec()));
        assert_eq!(script.sent(4, 0), Did::Wait(None));
        assert_eq!(script.received(5, 1, b"234"), Did::Send(1, b"yy".to_vec()));
    }

    #[test]
    fn an_answer_that_blocks_holds_up_the_next_one() {
        let mut script = script(&RrServerSpec::default(), Framing::Stream);
        script.start();
        assert_eq!(script.received(1, 0, b"xx"), Did::Send(0, b"y".to_vec()));
        let blocked = script.handle(2, WorkloadEvent::Sent { connection: 0, backlog: 1 });
        assert_eq!(blocked, Did::Wait(None));
        assert_eq!(script.received(3, 1, b"x"), Did::Wait(None));
        let drained = script.handle(4, WorkloadEvent::Drained { connection: 0 });
        assert_eq!(drained, Did::Send(0, b"y".to_vec()));
        script.handle(5, WorkloadEvent::Sent { connection: 0, backlog: 1 });
        let closed = script.handle(6, WorkloadEvent::Closed { connection: 0 });
        assert_eq!(closed, Did::Send(1, b"y".to_vec()));
    }

    #[test]
    fn a_client_that_reads_no_answers_is_not_served_for_ever() {
        let mut script = script(&RrServerSpec::default(), Framing::Stream);
        script.start();
        assert_eq!(script.received(1, 0, &[0]), Did::Send(0, b"y".to_vec()));
        script.handle(2, WorkloadEvent::Sent { connection: 0, backlog: 1 });
        let requests = vec![0; MAX_JOBS];
        assert_eq!(script.received(3, 0, &requests), Did::Wait(None));
        let Did::Fail(why) = script.received(4, 0, &[0]) else { panic!("it goes on") };
        assert!(why.contains("does not read"), "{why}");
    }

    #[test]
    fn repeats_the_sequence_number_of_a_datagram() {
        let spec = RrServerSpec { request_bytes: 12, response_bytes: 9, ..RrServerSpec::default() };
        let mut script = script(&spec, Framing::Datagram);
        script.start();
        let answer = script.received(1, 0, b"12345678abcd");
        assert_eq!(answer, Did::Send(0, b"12345678y".to_vec()));
    }
}

//! Bulk transfer over a stream: as fast as it goes, or paced on an open-loop schedule.

use alloc::vec;
use alloc::vec::Vec;

use crate::pacer::Pacer;
use crate::{
    Action, BulkReceiverSpec, BulkSenderSpec, ConnectionId, Counter, Now, Recorder, Workload,
    WorkloadEvent,
};

const CLOSED: &str =
    "the receiver closed the connection before the end; look at the receiving agent's output";

/// Sends chunks. Paced, each has a moment at which it is due; a connection that blocked is made up
/// for with chunks back to back, so that the mean rate holds whenever the path can carry it.
#[derive(Debug)]
pub struct BulkSender {
    chunk: Vec<u8>,
    pacer: Option<Pacer>,
    /// Whether the transport is behind, by connection: it gets no more until it has taken
    /// everything.
    blocked: Vec<bool>,
    /// The connection whose turn it is.
    turn: ConnectionId,
}

impl BulkSender {
    /// A sender for `spec`.
    pub fn new(spec: &BulkSenderSpec) -> Self {
        let pacer = spec.rate_mbit.map(|rate| Pacer::chunks(rate, spec.chunk_bytes as u64));
        let blocked = vec![false; spec.connections];
        Self { chunk: vec![b'b'; spec.chunk_bytes], pacer, blocked, turn: 0 }
    }

    /// The next connection, in turn, whose transport is not behind.
    fn free_connection(&self) -> Option<ConnectionId> {
        let count = self.blocked.len();
        let mut in_turn = (self.turn..self.turn + count).map(|number| number % count);
        in_turn.find(|connection| !self.blocked[*connection])
    }
}

impl Workload for BulkSender {
    fn next(&mut self, now: Now, event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_> {
        let end = recorder.window().end;
        match event {
            WorkloadEvent::Sent { connection, backlog } => self.blocked[connection] = backlog > 0,
            WorkloadEvent::Drained { connection } => self.blocked[connection] = false,
            WorkloadEvent::Closed { .. } if now.at < end => return Action::Fail(CLOSED),
            _ => {}
        }
        if now.at >= end {
            return Action::Done;
        }
        let Some(connection) = self.free_connection() else {
            return Action::Wait { until: Some(end) };
        };
        if let Some(pacer) = &mut self.pacer {
            if pacer.due() > now.at {
                return Action::Wait { until: Some(pacer.due().min(end)) };
            }
            pacer.advance();
        }
        recorder.count(now.at, Counter::BytesSent, self.chunk.len() as u64);
        self.turn = connection + 1;
        Action::Send { connection, bytes: &self.chunk }
    }
}

/// Counts what arrives.
#[derive(Debug)]
pub struct BulkReceiver(());

impl BulkReceiver {
    /// A receiver for `spec`.
    pub fn new(_spec: &BulkReceiverSpec) -> Self {
        Self(())
    }
}

impl Workload for BulkReceiver {
    fn next(&mut self, now: Now, event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_> {
        if let WorkloadEvent::Received { bytes, .. } = event {
            recorder.count(now.at, Counter::BytesReceived, bytes.len() as u64);
        }
        Action::Wait { until: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Did, Script};

    fn sender(rate_mbit: Option<u64>) -> Script<BulkSender> {
        let spec = BulkSenderSpec { rate_mbit, chunk_bytes: 1000, connections: 1 };
        Script::new(BulkSender::new(&spec), 10_000_000)
    }

    #[test]
    fn paced_bytes_are_exact_at_every_moment() {
        // 1000 bytes at 100 Mbit/s: one chunk each 80 us, the first at 0.
        let mut script = sender(Some(100));
        let (mut at, mut sent, mut did) = (0, 0, script.start());
        while did != Did::Done {
            did = match did {
                Did::Send(0, bytes) => {
                    sent += bytes.len() as u64;
                    assert_eq!(sent, (at / 80_000 + 1) * 1000);
                    script.sent(at, 0)
                }
                Did::Wait(until) => {
                    at = until.unwrap();
                    script.woke(at)
                }
                other => panic!("{other:?}"),
            };
        }
        assert_eq!(sent, 125_000, "100 Mbit/s for 10 ms");
        assert_eq!(script.counter(Counter::BytesSent), 125_000);
    }

    #[test]
    fn a_blocked_sender_waits_and_then_catches_up() {
        let mut script = sender(Some(100));
        script.start();
        let blocked = script.handle(10, WorkloadEvent::Sent { connection: 0, backlog: 400 });
        assert_eq!(blocked, Did::Wait(Some(10_000_000)));
        let drained = script.handle(240_000, WorkloadEvent::Drained { connection: 0 });
        assert!(matches!(drained, Did::Send(..)), "due at 80 us");
        assert!(matches!(script.sent(240_001, 0), Did::Send(..)), "due at 160 us");
        assert!(matches!(script.sent(240_002, 0), Did::Send(..)), "due at 240 us");
        assert_eq!(script.sent(240_003, 0), Did::Wait(Some(320_000)));
    }

    #[test]
    fn connections_take_turns_and_those_that_are_behind_lose_theirs() {
        let spec = BulkSenderSpec { connections: 3, ..BulkSenderSpec::default() };
        let mut script = Script::new(BulkSender::new(&spec), 10_000_000);
        let connection = |did| if let Did::Send(connection, _) = did { connection } else { 9 };
        assert_eq!(connection(script.start()), 0);
        let blocked = WorkloadEvent::Sent { connection: 0, backlog: 1 };
        assert_eq!(connection(script.handle(1, blocked)), 1);
        assert_eq!(connection(script.sent(2, 1)), 2);
        assert_eq!(connection(script.sent(3, 2)), 1);
        let blocked = |connection| WorkloadEvent::Sent { connection, backlog: 1 };
        assert_eq!(connection(script.handle(4, blocked(1))), 2);
        assert_eq!(script.handle(5, blocked(2)), Did::Wait(Some(10_000_000)));
        assert_eq!(connection(script.handle(6, WorkloadEvent::Drained { connection: 1 })), 1);
    }

    #[test]
    fn unpaced_sends_whenever_the_transport_takes_it() {
        let mut script = sender(None);
        assert!(matches!(script.start(), Did::Send(..)));
        assert!(matches!(script.sent(1, 0), Did::Send(..)));
        assert_eq!(script.sent(10_000_000, 0), Did::Done);
        assert_eq!(script.counter(Counter::BytesSent), 2000);
    }

    #[test]
    fn receiver_counts_bytes_in_the_window() {
        let mut script = Script::new(BulkReceiver::new(&BulkReceiverSpec::default()), 100);
        script.start();
        script.received(99, 0, &[0; 700]);
        assert_eq!(script.received(100, 0, &[0; 700]), Did::Wait(None));
        assert_eq!(script.counter(Counter::BytesReceived), 700);
    }
}

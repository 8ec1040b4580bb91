//! Many small datagrams: the packet rate that interrupts are moderated for.
//!
//! Each datagram starts with a sequence number (64 bits, little-endian). With 18 bytes of payload a
//! UDP datagram is the shortest Ethernet frame there is, 60 bytes before its checksum.

use alloc::vec;
use alloc::vec::Vec;

use crate::pacer::Pacer;
use crate::{
    Action, ConnectionId, Counter, Instant, Now, PpsReceiverSpec, PpsSenderSpec, Recorder,
    Workload, WorkloadEvent,
};

/// How many datagrams go out in one batch at most.
const BATCH: usize = 32;

/// Sends numbered datagrams, unpaced in batches, or each when it is due.
#[derive(Debug)]
pub struct PpsSender {
    datagram_bytes: usize,
    pacer: Option<Pacer>,
    /// By connection: the number of its next datagram.
    sequences: Vec<u64>,
    /// The connection whose turn it is.
    turn: ConnectionId,
    batch: Vec<u8>,
}

impl PpsSender {
    /// A sender for `spec`.
    pub fn new(spec: &PpsSenderSpec) -> Self {
        Self {
            datagram_bytes: spec.payload_bytes,
            pacer: spec.rate_per_s.map(Pacer::per_second),
            sequences: vec![0; spec.connections],
            turn: 0,
            batch: vec![b'p'; spec.payload_bytes * BATCH],
        }
    }
}

/// How many datagrams are due, up to a batch, taking them off the schedule.
pub(crate) fn take_due(pacer: Option<&mut Pacer>, at: Instant, batch: usize) -> usize {
    let Some(pacer) = pacer else { return batch };
    let mut due = 0;
    while due < batch && pacer.due() <= at {
        pacer.advance();
        due += 1;
    }
    due
}

impl Workload for PpsSender {
    fn next(&mut self, now: Now, _event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_> {
        let end = recorder.window().end;
        if now.at >= end {
            return Action::Done;
        }
        let due = take_due(self.pacer.as_mut(), now.at, BATCH);
        if due == 0 {
            let next = self.pacer.as_ref().map_or(end, Pacer::due);
            return Action::Wait { until: Some(next.min(end)) };
        }
        let bytes = &mut self.batch[..due * self.datagram_bytes];
        let connection = self.turn;
        self.turn = (connection + 1) % self.sequences.len();
        let sequence = &mut self.sequences[connection];
        for datagram in bytes.chunks_exact_mut(self.datagram_bytes) {
            datagram[..8].copy_from_slice(&sequence.to_le_bytes());
            *sequence += 1;
        }
        recorder.count(now.at, Counter::DatagramsSent, due as u64);
        recorder.count(now.at, Counter::BytesSent, bytes.len() as u64);
        Action::SendBatch { connection, bytes, datagram_bytes: self.datagram_bytes }
    }
}

/// Counts datagrams, and from their numbers what was lost or overtaken on the way.
#[derive(Debug)]
pub struct PpsReceiver {
    /// By connection: the number after the highest seen.
    expected: Vec<Option<u64>>,
}

impl PpsReceiver {
    /// A receiver for `spec`.
    pub fn new(_spec: &PpsReceiverSpec) -> Self {
        Self { expected: Vec::with_capacity(64) }
    }

    fn received(
        &mut self,
        at: Instant,
        connection: ConnectionId,
        sequence: u64,
        recorder: &mut Recorder,
    ) {
        if connection >= self.expected.len() {
            self.expected.resize(connection + 1, None);
        }
        // The first datagram of a sender sets the count: what came before is not this receiver's
        // business.
        let expected = self.expected[connection].unwrap_or(sequence);
        if sequence < expected {
            // Counted as lost when its successor came.
            recorder.count(at, Counter::OutOfOrder, 1);
            recorder.uncount(at, Counter::Lost, 1);
        } else {
            recorder.count(at, Counter::Lost, sequence - expected);
            self.expected[connection] = Some(sequence.saturating_add(1));
        }
    }
}

impl Workload for PpsReceiver {
    fn next(&mut self, now: Now, event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_> {
        if let WorkloadEvent::Received { connection, bytes } = event {
            recorder.count(now.at, Counter::DatagramsReceived, 1);
            recorder.count(now.at, Counter::BytesReceived, bytes.len() as u64);
            match bytes.first_chunk() {
                Some(&head) => {
                    self.received(now.at, connection, u64::from_le_bytes(head), recorder);
                }
                None => recorder.count(now.at, Counter::Stray, 1),
            }
        }
        Action::Wait { until: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Did, Script};

    #[test]
    fn sender_numbers_its_datagrams() {
        let spec = PpsSenderSpec::default();
        let mut script = Script::new(PpsSender::new(&spec), 1_000_000);
        let Did::Batch(0, bytes, 18) = script.start() else { panic!() };
        assert_eq!(bytes.len(), 18 * BATCH);
        let Did::Batch(0, bytes, 18) = script.sent(10, 0) else { panic!() };
        assert_eq!(bytes[18..26], 33u64.to_le_bytes());
        assert_eq!(script.sent(1_000_000, 0), Did::Done);
        assert_eq!(script.counter(Counter::DatagramsSent), 64);
    }

    #[test]
    fn paced_sender_sends_what_is_due() {
        let spec = PpsSenderSpec { rate_per_s: Some(100_000), ..Default::default() };
        let mut script = Script::new(PpsSender::new(&spec), 1_000_000);
        let Did::Batch(0, bytes, 18) = script.start() else { panic!() };
        assert_eq!(bytes.len(), 18);
        assert_eq!(script.sent(100, 0), Did::Wait(Some(10_000)));
        let Did::Batch(0, bytes, 18) = script.woke(35_000) else { panic!() };
        assert_eq!(bytes.len(), 3 * 18, "due at 10, 20 and 30 us");
    }

    #[test]
    fn receiver_tells_loss_from_reordering() {
        let mut script = Script::new(PpsReceiver::new(&PpsReceiverSpec::default()), 1_000_000);
        script.start();
        for sequence in [10u64, 11, 14, 12, 15, 20] {
            script.received(1, 0, &sequence.to_le_bytes());
        }
        // 13, and 16 to 19, never came; 12 came late.
        assert_eq!(script.counter(Counter::Lost), 5);
        assert_eq!(script.counter(Counter::OutOfOrder), 1);
        assert_eq!(script.counter(Counter::DatagramsReceived), 6);
    }
}

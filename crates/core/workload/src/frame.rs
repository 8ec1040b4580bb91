//! Explicitly invalid MX-like frames: what receiving a packet costs when nothing is done with it.
//!
//! The Open-MX paper sends a million invalid 128-byte packets, so that only interrupt and low-level
//! receive work remain. These are 128-byte Ethernet frames (checksum not counted) of EtherType
//! 0x86DF, the one that Open-MX used, with packet type 0, which is none; a kernel without a handler
//! for them drops them at once.

use alloc::vec::Vec;

use crate::pacer::Pacer;
use crate::pps::take_due;
use crate::{Action, Counter, FrameSenderSpec, Now, Recorder, Workload, WorkloadEvent};

/// The EtherType of MX over Ethernet.
const ETHERTYPE_MX: u16 = 0x86df;
/// The length of a frame in bytes, without its checksum.
const FRAME_BYTES: usize = 128;
/// How many frames go out in one batch at most.
const BATCH: usize = 32;

/// See the module.
#[derive(Debug)]
pub struct FrameSender {
    /// `BATCH` copies of the frame.
    frames: Vec<u8>,
    remaining: Option<u64>,
    pacer: Option<Pacer>,
}

impl FrameSender {
    /// A sender for `spec`.
    pub fn new(spec: &FrameSenderSpec) -> Self {
        let mut frame = [0; FRAME_BYTES];
        frame[..6].copy_from_slice(&spec.destination);
        frame[6..12].copy_from_slice(&spec.source);
        frame[12..14].copy_from_slice(&ETHERTYPE_MX.to_be_bytes());
        Self {
            frames: frame.repeat(BATCH),
            remaining: spec.count,
            pacer: spec.rate_per_s.map(Pacer::per_second),
        }
    }
}

impl Workload for FrameSender {
    fn next(&mut self, now: Now, _event: WorkloadEvent<'_>, recorder: &mut Recorder) -> Action<'_> {
        let end = recorder.window().end;
        if now.at >= end || self.remaining == Some(0) {
            return Action::Done;
        }
        let room = self.remaining.map_or(BATCH, |left| left.min(BATCH as u64) as usize);
        let due = take_due(self.pacer.as_mut(), now.at, room);
        if due == 0 {
            let next = self.pacer.as_ref().map_or(end, Pacer::due);
            return Action::Wait { until: Some(next.min(end)) };
        }
        self.remaining = self.remaining.map(|left| left - due as u64);
        let bytes = &self.frames[..due * FRAME_BYTES];
        recorder.count(now.at, Counter::DatagramsSent, due as u64);
        recorder.count(now.at, Counter::BytesSent, bytes.len() as u64);
        Action::SendBatch { connection: 0, bytes, datagram_bytes: FRAME_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Did, Script};

    #[test]
    fn sends_exactly_count_invalid_frames() {
        let spec = FrameSenderSpec { count: Some(40), ..Default::default() };
        let mut script = Script::new(FrameSender::new(&spec), 1_000_000);
        let Did::Batch(0, bytes, FRAME_BYTES) = script.start() else { panic!() };
        assert_eq!(bytes[..6], [0xff; 6]);
        assert_eq!(bytes[12..15], [0x86, 0xdf, 0], "EtherType, then packet type 0");
        assert_eq!(bytes.len(), 32 * 128);
        let Did::Batch(0, bytes, FRAME_BYTES) = script.sent(1, 0) else { panic!() };
        assert_eq!(bytes.len(), 8 * 128);
        assert_eq!(script.sent(2, 0), Did::Done);
        assert_eq!(script.counter(Counter::DatagramsSent), 40);
    }

    #[test]
    fn paces_until_the_end() {
        let spec = FrameSenderSpec { rate_per_s: Some(10_000), ..Default::default() };
        let mut script = Script::new(FrameSender::new(&spec), 150_000);
        assert!(matches!(script.start(), Did::Batch(0, bytes, 128) if bytes.len() == 128));
        assert_eq!(script.sent(1, 0), Did::Wait(Some(100_000)));
        script.woke(100_000);
        assert_eq!(script.sent(100_001, 0), Did::Wait(Some(150_000)));
        assert_eq!(script.woke(150_000), Did::Done);
    }
}

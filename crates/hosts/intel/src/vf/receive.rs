//! A receive queue: from a frame to the buffers that the driver has posted.

use vhost::transport::memory::MemoryError;

use super::checks::Findings;
use super::virtchnl::PairInfo;
use crate::address::{Cast, address};
use crate::dma::Dma;
use crate::offload::SHORTEST;

const DESCRIPTOR: u64 = 32;

/// The most descriptors, and of what their number is a multiple.
const MAX_LENGTH: u32 = 8_160;
const MULTIPLE: u32 = 32;

/// The least and the most bytes of a buffer.
const BUFFERS: std::ops::RangeInclusive<u32> = 1_024..=16_256;
/// The longest frame, with two VLAN tags and its checksum, as of 700 series NICs.
pub(super) const LONGEST: u32 = 9_728;

/// The checksum that Ethernet ends a frame with.
const CHECKSUM: usize = 4;

/// Status bits of the second quad word.
const DONE: u64 = 1 << 0;
const END: u64 = 1 << 1;
const HAS_TAG: u64 = 1 << 2;
const CHECKED: u64 = 1 << 3;
const MULTICAST: u64 = 1 << 9;
const BROADCAST: u64 = 2 << 9;
const HAS_HASH: u64 = 3 << 12;
const BAD_NETWORK: u64 = 1 << (19 + 3);
const BAD_TRANSPORT: u64 = 1 << (19 + 4);
const KIND_SHIFT: u32 = 30;
const LENGTH_SHIFT: u32 = 38;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Description {
    pub findings: Findings,
    pub hash: Option<u32>,
    /// A VLAN tag that was removed.
    pub tag: Option<u16>,
}

#[derive(Debug, Default)]
pub(super) struct Receive {
    base: u64,
    length: u32,
    buffer: u32,
    longest: u32,
    head: u32,
    pub tail: u32,
    enabled: bool,
}

impl Receive {
    /// Sets it up; whether that can be.
    pub(super) fn configure(&mut self, info: &PairInfo) -> bool {
        let fits = (1..=MAX_LENGTH).contains(&info.receive_length)
            && info.receive_length.is_multiple_of(MULTIPLE)
            && BUFFERS.contains(&info.buffer)
            && (64..=LONGEST).contains(&info.longest);
        if fits && !self.enabled {
            self.base = info.receive_base;
            self.length = info.receive_length;
            (self.buffer, self.longest) = (info.buffer, info.longest);
        }
        fits && !self.enabled
    }

    /// Starts it, or stops it; whether that can be.
    pub(super) fn enable(&mut self, enabled: bool) -> bool {
        if enabled != self.enabled {
            self.head = 0;
            // The driver posts buffers before the queue starts.
            self.tail = if enabled { self.tail } else { 0 };
        }
        self.enabled = enabled && self.length > 0;
        self.enabled == enabled
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Descriptors that the driver has posted.
    pub(super) fn room(&self) -> usize {
        if !self.enabled || self.tail >= self.length {
            return 0;
        }
        ((self.tail + self.length - self.head) % self.length) as usize
    }

    pub(super) fn is_too_long(&self, frame: &[u8]) -> bool {
        frame.len() + CHECKSUM > self.longest as usize
    }

    /// Writes a frame into buffers; whether there were enough.
    pub(super) fn put(
        &mut self,
        frame: &mut Vec<u8>,
        description: &Description,
        memory: &dyn Dma,
    ) -> Result<bool, MemoryError> {
        frame.resize(frame.len().max(SHORTEST), 0);
        let size = (self.buffer as usize).max(1);
        if frame.len().div_ceil(size) > self.room() {
            return Ok(false);
        }
        let mut parts = frame.chunks(size).peekable();
        while let Some(part) = parts.next() {
            let at = self.base.wrapping_add(u64::from(self.head) * DESCRIPTOR);
            let mut buffer = [0; 8];
            memory.read(at, &mut buffer)?;
            memory.write(u64::from_le_bytes(buffer), part)?;
            let written = write_back(frame, part, parts.peek().is_none(), description);
            memory.write(at, &written)?;
            self.head = (self.head + 1) % self.length;
        }
        Ok(true)
    }
}

/// The descriptor of a part of a frame; all but the length counts in that of the last one.
fn write_back(
    frame: &[u8],
    part: &[u8],
    is_last: bool,
    description: &Description,
) -> [u8; DESCRIPTOR as usize] {
    let Description { findings, hash, tag } = description;
    let mut word = DONE | (part.len() as u64) << LENGTH_SHIFT;
    let mut written = [0; DESCRIPTOR as usize];
    if is_last {
        let mut add = |bit: u64, holds: bool| word |= if holds { bit } else { 0 };
        add(END, true);
        add(HAS_TAG, tag.is_some());
        add(CHECKED, findings.checked);
        add(BAD_NETWORK, findings.bad_network);
        add(BAD_TRANSPORT, findings.bad_transport);
        add(HAS_HASH, hash.is_some());
        add(MULTICAST, address(frame) == Cast::Multicast);
        add(BROADCAST, address(frame) == Cast::Broadcast);
        word |= u64::from(findings.kind) << KIND_SHIFT;
        written[2..4].copy_from_slice(&tag.unwrap_or(0).to_le_bytes());
        written[4..8].copy_from_slice(&hash.unwrap_or(0).to_le_bytes());
    }
    written[8..16].copy_from_slice(&word.to_le_bytes());
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bytes;

    const INFO: PairInfo = PairInfo {
        number: 0,
        transmit_length: 8,
        transmit_base: 0,
        receive_length: 32,
        receive_base: 0,
        buffer: 1_024,
        longest: 1_522,
    };

    fn posted(buffers: u32) -> (Receive, Bytes) {
        let memory = Bytes::new(0x1_0000);
        for number in 0..32_u64 {
            memory.write(32 * number, &(0x1000 + 0x400 * number).to_le_bytes()).unwrap();
        }
        let mut receive = Receive::default();
        assert!(receive.configure(&INFO));
        receive.tail = buffers;
        assert!(receive.enable(true));
        (receive, memory)
    }

    fn word(memory: &Bytes, descriptor: u64) -> u64 {
        let mut bytes = [0; 8];
        memory.read(32 * descriptor + 8, &mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    }

    #[test]
    fn a_frame_is_padded_and_described() {
        let (mut receive, memory) = posted(31);
        let findings =
            Findings { kind: 26, checked: true, bad_network: false, bad_transport: true };
        let description = Description { findings, hash: Some(0xABCD), tag: Some(5) };
        assert!(receive.put(&mut vec![2; 42], &description, &memory).unwrap());
        let expected = 0b1111 | HAS_HASH | BAD_TRANSPORT | 26 << 30 | 60 << 38;
        assert_eq!(word(&memory, 0), expected);
        let mut first = [0; 8];
        memory.read(0, &mut first).unwrap();
        assert_eq!(first, [0, 0, 5, 0, 0xCD, 0xAB, 0, 0]);
        assert_eq!(receive.room(), 30);
    }

    #[test]
    fn a_long_frame_takes_several_buffers_or_none() {
        let (mut receive, memory) = posted(2);
        let mut long = vec![1; 1_500];
        assert!(!receive.is_too_long(&long));
        assert!(receive.is_too_long(&[0; 1_519]));
        assert!(receive.put(&mut long, &Description::default(), &memory).unwrap());
        assert_eq!(word(&memory, 0), DONE | 1_024 << 38);
        assert_eq!(word(&memory, 1), DONE | END | MULTICAST | 476 << 38);
        assert_eq!(receive.room(), 0);
        assert!(!receive.put(&mut long, &Description::default(), &memory).unwrap());
    }

    #[test]
    fn what_cannot_be_is_no_queue() {
        let mut receive = Receive::default();
        assert!(!receive.enable(true), "it was never set up");
        for wrong in [
            PairInfo { receive_length: 0, ..INFO },
            PairInfo { receive_length: 33, ..INFO },
            PairInfo { receive_length: 0x1_0000, ..INFO },
            PairInfo { buffer: 0, ..INFO },
            PairInfo { longest: 1 << 20, ..INFO },
        ] {
            assert!(!receive.configure(&wrong), "{wrong:?}");
        }
        let (mut receive, memory) = posted(32);
        assert_eq!(receive.room(), 0, "the tail is no descriptor");
        receive.tail = 1;
        memory.write(0, &u64::MAX.to_le_bytes()).unwrap();
        assert!(receive.put(&mut vec![0; 60], &Description::default(), &memory).is_err());
        assert!(!receive.configure(&INFO), "it runs");
    }
}

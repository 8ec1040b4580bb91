//! A transmit queue: from the driver's buffers to frames.

use vhost::transport::memory::MemoryError;

use super::virtchnl::PairInfo;
use crate::dma::Dma;
use crate::function::Sent;
use crate::offload::{Context, Gathering, Wanted};

const DESCRIPTOR: u64 = 16;

/// The most descriptors, and of what their number is a multiple.
const MAX_LENGTH: u32 = 8_160;
const MULTIPLE: u32 = 8;

/// Descriptors that are followed in one call: other ports wait meanwhile.
const BATCH: usize = 256;

/// Types of descriptors; the last one is written back.
const DATA: u64 = 0;
const CONTEXT: u64 = 1;
const DONE: u8 = 0xF;

/// Commands of a data descriptor.
const END: u64 = 1 << 4;
const REPORT: u64 = 1 << 5;
const TAGGED: u64 = 1 << 7;
/// What the IP header is: IPv6, IPv4, IPv4 whose checksum is wanted.
const NETWORK_SHIFT: u32 = 4 + 5;
const IPV4: u64 = 2;
const IPV4_CHECKSUM: u64 = 3;
/// What follows it: TCP, SCTP, UDP.
const TRANSPORT_SHIFT: u32 = 4 + 8;
const TCP: u64 = 1;
const SCTP: u64 = 2;
const UDP: u64 = 3;
const OFFSET_SHIFT: u32 = 16;
const LENGTH_SHIFT: u32 = 34;
const LENGTH: u64 = 0x3FFF;
const TAG_SHIFT: u32 = 48;

/// Commands of a context descriptor.
const SEGMENTS: u64 = 1 << 4;
const SEGMENT_SHIFT: u32 = 50;

#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// The second quad word of its first descriptor.
    command: u64,
    /// Bytes of payload of each segment, if it is to be divided.
    segment: Option<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Transmit {
    base: u64,
    length: u32,
    head: u32,
    pub tail: u32,
    enabled: bool,
    /// Of the context descriptor before the packet.
    segment: Option<usize>,
    asked: Option<Asked>,
    pub gathering: Gathering,
    /// A descriptor was written back, since this was set to false.
    pub reported: bool,
}

impl Transmit {
    /// Sets it up; whether that can be.
    pub(super) fn configure(&mut self, info: &PairInfo) -> bool {
        let fits = (1..=MAX_LENGTH).contains(&info.transmit_length)
            && info.transmit_length.is_multiple_of(MULTIPLE)
            && !self.enabled;
        if fits {
            *self =
                Self { base: info.transmit_base, length: info.transmit_length, ..Self::default() };
        }
        fits
    }

    /// Starts it, or stops it, with what it had in hand; whether that can be.
    pub(super) fn enable(&mut self, enabled: bool) -> bool {
        if enabled != self.enabled {
            *self = Self { base: self.base, length: self.length, ..Self::default() };
        }
        self.enabled = enabled && self.length > 0;
        self.enabled == enabled
    }

    pub(super) fn next(
        &mut self,
        frame: &mut Vec<u8>,
        memory: &dyn Dma,
    ) -> Result<Sent, MemoryError> {
        for _ in 0..BATCH {
            if let Some(next) = self.gathering.take() {
                *frame = next;
                return Ok(Sent::Frame);
            }
            if !self.enabled || self.tail >= self.length || self.head == self.tail {
                return Ok(Sent::Nothing);
            }
            let at = self.base.wrapping_add(u64::from(self.head) * DESCRIPTOR);
            let mut bytes = [0; DESCRIPTOR as usize];
            memory.read(at, &mut bytes)?;
            let [address, command] = [0, 8]
                .map(|at| bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word)));
            match command & 0xF {
                DATA => self.follow(address, command, memory)?,
                CONTEXT => {
                    let segment = (command >> SEGMENT_SHIFT) as usize;
                    self.segment = (command & SEGMENTS != 0).then_some(segment);
                }
                // Filters are programmed by messages; there is nothing else.
                _ => {}
            }
            self.head = (self.head + 1) % self.length;
            if command & 0xF == DATA && command & REPORT != 0 {
                memory.write(at + 8, &[bytes[8] | DONE])?;
                self.reported = true;
            }
        }
        Ok(Sent::More)
    }

    /// Takes what a data descriptor says.
    fn follow(&mut self, address: u64, command: u64, memory: &dyn Dma) -> Result<(), MemoryError> {
        let segment = self.segment;
        self.asked.get_or_insert(Asked { command, segment });
        self.gathering.append(address, (command >> LENGTH_SHIFT & LENGTH) as usize, memory)?;
        if command & END != 0 {
            let asked = self.asked.take().unwrap_or_default();
            self.segment = None;
            let (context, wanted) = asked.offloads();
            let tag = (asked.command >> TAG_SHIFT) as u16;
            let tag = (asked.command & TAGGED != 0).then_some([0x8100, tag]);
            self.gathering.finish(&context, wanted, tag);
        }
        Ok(())
    }
}

impl Asked {
    /// What it means for headers and checksums.
    fn offloads(&self) -> (Context, Wanted) {
        let field = |shift: u32, bits: u32| (self.command >> shift & ((1 << bits) - 1)) as usize;
        let network = field(OFFSET_SHIFT, 7) * 2;
        let transport = network + field(OFFSET_SHIFT + 7, 7) * 4;
        let (header, kind) = (field(NETWORK_SHIFT, 2) as u64, field(TRANSPORT_SHIFT, 2) as u64);
        let context = Context::of_headers(
            network,
            transport,
            transport + field(OFFSET_SHIFT + 14, 4) * 4,
            (header >= IPV4, kind != UDP),
            self.segment.unwrap_or(0),
        );
        let wanted = Wanted {
            ip_checksum: header == IPV4_CHECKSUM,
            transport_checksum: kind == TCP || kind == UDP,
            sctp_checksum: kind == SCTP,
            segments: self.segment.is_some() && (kind == TCP || kind == UDP),
        };
        (context, wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bytes;

    struct Rig {
        queue: Transmit,
        memory: Bytes,
    }

    impl Rig {
        fn new() -> Self {
            let info = PairInfo {
                number: 0,
                transmit_length: 8,
                transmit_base: 0,
                receive_length: 32,
                receive_base: 0,
                buffer: 2_048,
                longest: 1_522,
            };
            let mut queue = Transmit::default();
            assert!(!queue.enable(true), "it was never set up");
            assert!(!queue.configure(&PairInfo { transmit_length: 9, ..info }));
            assert!(queue.configure(&info) && queue.enable(true) && !queue.configure(&info));
            Self { queue, memory: Bytes::new(0x4_0000) }
        }

        fn post(&mut self, address: u64, command: u64) {
            let at = 16 * u64::from(self.queue.tail);
            self.memory.write(at, &address.to_le_bytes()).unwrap();
            self.memory.write(at + 8, &command.to_le_bytes()).unwrap();
            self.queue.tail = (self.queue.tail + 1) % 8;
        }

        fn next(&mut self) -> Result<Option<Vec<u8>>, MemoryError> {
            let mut frame = Vec::new();
            let sent = self.queue.next(&mut frame, &self.memory)?;
            Ok((sent == Sent::Frame).then_some(frame))
        }
    }

    const fn length(bytes: u64) -> u64 {
        bytes << LENGTH_SHIFT
    }

    #[test]
    fn a_frame_is_gathered_tagged_padded_and_reported() {
        let mut rig = Rig::new();
        rig.memory.write(0x1000, &[1; 20]).unwrap();
        rig.memory.write(0x2000, &[2; 30]).unwrap();
        rig.post(0x1000, length(20) | TAGGED | 0x0102 << TAG_SHIFT);
        assert_eq!(rig.next().unwrap(), None);
        rig.post(0x2000, length(30) | END | REPORT);
        let frame = rig.next().unwrap().unwrap();
        assert_eq!((frame.len(), &frame[12..16]), (60, &[0x81, 0, 1, 2][..]));
        assert_eq!((frame[23], frame[24], frame[54]), (1, 2, 0));
        let mut kind = [0; 1];
        rig.memory.read(24, &mut kind).unwrap();
        assert_eq!(kind[0] & 0xF, DONE);
        assert!(rig.queue.reported);
        assert_eq!(rig.next().unwrap(), None);
    }

    #[test]
    fn a_packet_is_divided_with_its_checksums() {
        let mut rig = Rig::new();
        let mut packet = vec![0_u8; 54 + 250];
        packet[14] = 0x45;
        rig.memory.write(0x1000, &packet).unwrap();
        rig.post(0, CONTEXT | SEGMENTS | 100 << SEGMENT_SHIFT);
        let offsets = 7 | 5 << 7 | 5 << 14;
        let asked = IPV4_CHECKSUM << NETWORK_SHIFT | TCP << TRANSPORT_SHIFT;
        rig.post(0x1000, length(304) | END | asked | offsets << OFFSET_SHIFT);
        let frames: Vec<Vec<u8>> = (0..3).map(|_| rig.next().unwrap().unwrap()).collect();
        let lengths: Vec<usize> = frames.iter().map(Vec::len).collect();
        assert_eq!(lengths, [154, 154, 104]);
        for frame in &frames {
            assert_eq!(crate::offload::sum(&frame[14..34]), 0xFFFF);
            assert_eq!(usize::from(frame[17]), frame.len() - 14);
        }
        // The context is for one packet.
        rig.post(0x1000, length(304) | END | offsets << OFFSET_SHIFT);
        assert_eq!(rig.next().unwrap().map(|frame| frame.len()), Some(304));
    }

    #[test]
    fn sctp_has_its_own_checksum() {
        let mut rig = Rig::new();
        let packet = [&[0; 34][..], &[1; 30]].concat();
        rig.memory.write(0x1000, &packet).unwrap();
        let offsets = 7 | 5 << 7 | 3 << 14;
        let asked = IPV4 << NETWORK_SHIFT | SCTP << TRANSPORT_SHIFT;
        rig.post(0x1000, length(64) | END | asked | offsets << OFFSET_SHIFT);
        let mut frame = rig.next().unwrap().unwrap();
        let stored = frame[42..46].to_vec();
        frame[42..46].fill(0);
        let crc = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);
        assert_eq!(stored, crc.checksum(&frame[34..]).to_le_bytes());
    }

    #[test]
    fn nonsense_in_the_ring_is_bounded_and_ends_the_guest_only() {
        let mut rig = Rig::new();
        for _ in 0..100 {
            rig.post(0x1000, length(16_000));
            assert_eq!(rig.next().unwrap(), None);
        }
        rig.post(0x1000, length(60) | END);
        assert_eq!(rig.next().unwrap(), None);
        assert_eq!(rig.queue.gathering.too_long, 1);
        rig.post(0, 0x8 | u64::MAX << 4);
        rig.post(0, CONTEXT | SEGMENTS);
        rig.post(0x1000, !0xF & !(LENGTH << LENGTH_SHIFT) | length(60));
        assert!(rig.next().unwrap().is_some(), "headers that are not there");
        rig.post(u64::MAX - 5, length(60) | END);
        assert!(rig.next().is_err());
        rig.queue.tail = 8;
        assert_eq!(rig.next().unwrap(), None);
    }
}

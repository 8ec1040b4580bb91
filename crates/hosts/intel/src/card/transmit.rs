//! The transmit ring: from the driver's buffers to frames.

use base::time::Instant;
use vhost::transport::memory::MemoryError;

use super::interrupts::Interrupts;
use super::register::{
    CTRL, CTRL_VME, Registers, TCTL, TCTL_EN, TDBAH, TDBAL, TDH, TDLEN, TDT, TIDV, VET,
};
use super::statistics::Statistics;
use crate::dma::Dma;
use crate::function::Sent;
use crate::offload::{Context, Gathering, Wanted};

const DESCRIPTOR: u64 = 16;

/// Descriptors that are followed in one call: other ports wait meanwhile.
const BATCH: usize = 256;

/// Bits of the third word of a descriptor, the same in all three formats.
const END: u32 = 1 << 24;
const SEGMENTS: u32 = 1 << 26;
const REPORT: u32 = 1 << 27;
const EXTENDED: u32 = 1 << 29;
const TAGGED: u32 = 1 << 30;
const DELAYED: u32 = 1 << 31;
/// The type of an extended descriptor; 0 is a context.
const TYPE: u32 = 0xF << 20;

/// The length of the legacy format, and its checksum command.
const LEGACY_LENGTH: u32 = 0xFFFF;
const LEGACY_CHECKSUM: u32 = 1 << 26;
const LENGTH: u32 = 0xF_FFFF;

/// Bits of the last word: descriptor done; insert checksums of IP, of TCP or UDP.
const DONE: u8 = 1;
const INSERT_IP: u32 = 1 << 8;
const INSERT_TRANSPORT: u32 = 1 << 9;

#[derive(Debug, Default)]
pub(super) struct Transmitter {
    context: Context,
    /// What the first descriptor of the packet asked for, and the VLAN tag.
    wanted: Option<(Wanted, Option<u16>)>,
    pub(super) gathering: Gathering,
}

impl Transmitter {
    /// Takes the next frame, in place of what is in `frame`.
    pub(super) fn next(
        &mut self,
        now: Instant,
        frame: &mut Vec<u8>,
        card: (&mut Registers, &mut Interrupts, &mut Statistics),
        memory: &dyn Dma,
    ) -> Result<Sent, MemoryError> {
        let (registers, interrupts, statistics) = card;
        for _ in 0..BATCH {
            if let Some(next) = self.gathering.take() {
                *frame = next;
                statistics.sent(frame);
                return Ok(Sent::Frame);
            }
            let length = registers.get(TDLEN) / DESCRIPTOR as u32;
            let (head, tail) = (registers.get(TDH), registers.get(TDT));
            let enabled = registers.get(TCTL) & TCTL_EN != 0;
            if !enabled || head >= length || tail >= length || head == tail {
                return Ok(Sent::Nothing);
            }
            let at = registers.address(TDBAL, TDBAH);
            let at = at.wrapping_add(u64::from(head) * DESCRIPTOR);
            let mut bytes = [0; DESCRIPTOR as usize];
            memory.read(at, &mut bytes)?;
            let command = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
            let inserts = registers.get(CTRL) & CTRL_VME != 0;
            let ether_type = inserts.then_some(registers.get(VET) as u16);
            if self.follow(&bytes, (command, ether_type), memory)? {
                statistics.segmented();
            }
            registers.set(TDH, (head + 1) % length);
            if command & REPORT != 0 {
                memory.write(at + 12, &[bytes[12] | DONE])?;
                interrupts.frame_sent(now, command & DELAYED != 0 && registers.get(TIDV) > 0);
            }
        }
        Ok(Sent::More)
    }

    /// Takes what a descriptor says, and inserts tags with this EtherType; whether a packet was
    /// divided.
    fn follow(
        &mut self,
        bytes: &[u8; 16],
        (command, ether_type): (u32, Option<u16>),
        memory: &dyn Dma,
    ) -> Result<bool, MemoryError> {
        let is_extended = command & EXTENDED != 0;
        if is_extended && command & TYPE == 0 {
            self.context = Context::parse(bytes);
            return Ok(false);
        }
        let last = u32::from_le_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
        let length = if is_extended { command & LENGTH } else { command & LEGACY_LENGTH };
        let legacy = (!is_extended && command & LEGACY_CHECKSUM != 0)
            .then_some((usize::from(bytes[13]), usize::from(bytes[10])));
        self.wanted.get_or_insert_with(|| {
            let wanted = Wanted {
                ip_checksum: is_extended && last & INSERT_IP != 0,
                transport_checksum: is_extended && last & INSERT_TRANSPORT != 0,
                segments: is_extended && command & SEGMENTS != 0,
                sctp_checksum: false,
            };
            (wanted, (command & TAGGED != 0).then_some((last >> 16) as u16))
        });
        let address = u64::from_le_bytes(*bytes.first_chunk().unwrap_or(&[0; 8]));
        self.gathering.append(address, length as usize, memory)?;
        if command & END == 0 {
            return Ok(false);
        }
        Ok(self.finish(legacy, ether_type))
    }

    /// The packet is complete; whether it was divided. `legacy` is where the sum begins and where
    /// it is stored.
    fn finish(&mut self, legacy: Option<(usize, usize)>, ether_type: Option<u16>) -> bool {
        let (mut wanted, tag) = self.wanted.take().unwrap_or_default();
        let mut context = self.context;
        if let Some((start, at)) = legacy {
            context = Context::transport_only(start, at);
            wanted.transport_checksum = true;
        }
        let tag = ether_type.zip(tag).map(<[u16; 2]>::from);
        self.gathering.finish(&context, wanted, tag) > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bytes;

    struct Card {
        registers: Registers,
        interrupts: Interrupts,
        statistics: Statistics,
        transmitter: Transmitter,
        memory: Bytes,
    }

    impl Card {
        fn new() -> Self {
            let mut registers = Registers::new();
            registers.set(TCTL, TCTL_EN);
            registers.set(TDLEN, 8 * 16);
            Self {
                registers,
                interrupts: Interrupts::new(),
                statistics: Statistics::new(),
                transmitter: Transmitter::default(),
                memory: Bytes::new(0x4_0000),
            }
        }

        /// Puts a descriptor at the tail.
        fn post(&mut self, address: u64, command: u32, last: u32) {
            let tail = self.registers.get(TDT);
            let at = 16 * u64::from(tail);
            self.memory.write(at, &address.to_le_bytes()).unwrap();
            self.memory.write(at + 8, &command.to_le_bytes()).unwrap();
            self.memory.write(at + 12, &last.to_le_bytes()).unwrap();
            self.registers.set(TDT, (tail + 1) % 8);
        }

        fn next(&mut self) -> Result<Option<Vec<u8>>, MemoryError> {
            let mut frame = Vec::new();
            let card = (&mut self.registers, &mut self.interrupts, &mut self.statistics);
            let sent = self.transmitter.next(Instant::ZERO, &mut frame, card, &self.memory)?;
            Ok((sent == Sent::Frame).then_some(frame))
        }
    }

    #[test]
    fn a_frame_is_gathered_padded_and_reported() {
        let mut card = Card::new();
        card.memory.write(0x1000, &[1; 20]).unwrap();
        card.memory.write(0x2000, &[2; 30]).unwrap();
        card.post(0x1000, 20, 0);
        assert_eq!(card.next().unwrap(), None);
        card.post(0x2000, 30 | END | REPORT, 0);
        let frame = card.next().unwrap().unwrap();
        assert_eq!((frame.len(), frame[19], frame[20], frame[50]), (60, 1, 2, 0));
        let mut status = [0; 1];
        card.memory.read(28, &mut status).unwrap();
        assert_eq!(status, [DONE]);
        assert_eq!(card.registers.get(TDH), 2);
        assert_eq!(card.next().unwrap(), None);
    }

    #[test]
    fn a_tag_is_put_into_every_frame() {
        let mut card = Card::new();
        let data = EXTENDED | 1 << 20;
        card.post(0x1000, data | 100 | END | TAGGED, 0x0102 << 16);
        assert_eq!(card.next().unwrap().unwrap().len(), 100, "tags are not inserted");
        card.registers.set(CTRL, CTRL_VME);
        card.registers.set(VET, 0x8100);
        card.post(0x1000, data | 100 | END | TAGGED, 0x0102 << 16);
        let frame = card.next().unwrap().unwrap();
        assert_eq!((frame.len(), &frame[12..16]), (104, &[0x81, 0, 1, 2][..]));
    }

    #[test]
    fn nonsense_in_the_ring_ends_the_guest_and_nothing_else() {
        let mut card = Card::new();
        card.post(0xFFFF_FFFF_0000, 60 | END, 0);
        assert!(card.next().is_err());
        card.registers.set(TDH, 9);
        assert_eq!(card.next().unwrap(), None);
        card.registers.set(TDLEN, u32::MAX);
        card.registers.set(TDT, 0x10_0000);
        card.registers.set(TDBAH, u32::MAX);
        assert!(card.next().is_err());
    }
}

//! The receive ring: from a frame to the buffers that the driver has posted.
//!
//! Two of the formats of descriptors are here, the legacy one of 16 bytes and the extended one of
//! the 82574; the third, which splits headers from pages for packets of more than 1,500 bytes, is
//! not.

use vhost::memory::MemoryError;

use super::register::{
    MTA, RAH_AV, RAL, RCTL, RCTL_BAM, RCTL_BSEX, RCTL_DTYP_SPLIT, RCTL_EN, RCTL_MPE, RCTL_SECRC,
    RCTL_UPE, RDBAH, RDBAL, RDH, RDLEN, RDT, RFCTL, RFCTL_EXSTEN, Registers,
};
use super::statistics::{Kind, address};
use crate::dma::Dma;

const DESCRIPTOR: u64 = 16;

/// Descriptor done, and end of packet, in both formats.
const DONE: u32 = 1 << 0;
const END: u32 = 1 << 1;

/// The shortest frame on a wire, without its checksum.
const SHORTEST: usize = 60;

/// Exact addresses (82574).
const ADDRESSES: u32 = 16;

/// The checksum that Ethernet ends a frame with.
const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);

/// The ring, as its registers are now.
pub(super) struct Ring {
    base: u64,
    length: u32,
    head: u32,
    tail: u32,
    /// Bytes that a buffer holds.
    buffer: usize,
    extended: bool,
    keeps_checksum: bool,
}

/// Descriptors that a driver has posted and a frame may take; 0 if it does not receive.
pub(super) fn room(registers: &Registers) -> usize {
    Ring::of(registers).map_or(0, |ring| ring.free() as usize)
}

impl Ring {
    /// The ring, if it can be used.
    pub(super) fn of(registers: &Registers) -> Option<Self> {
        let control = registers.get(RCTL);
        let ring = Self {
            base: registers.address(RDBAL, RDBAH),
            length: registers.get(RDLEN) / DESCRIPTOR as u32,
            head: registers.get(RDH),
            tail: registers.get(RDT),
            buffer: buffer_size(control),
            extended: registers.get(RFCTL) & RFCTL_EXSTEN != 0,
            keeps_checksum: control & RCTL_SECRC == 0,
        };
        let enabled = control & RCTL_EN != 0 && control & RCTL_DTYP_SPLIT == 0;
        (enabled && ring.head < ring.length && ring.tail < ring.length).then_some(ring)
    }

    fn free(&self) -> u32 {
        (self.tail + self.length - self.head) % self.length
    }

    /// Writes a frame into buffers; whether there were enough.
    ///
    /// # Errors
    /// If an address is none of the guest's.
    pub(super) fn put(
        mut self,
        frame: &mut Vec<u8>,
        memory: &impl Dma,
        registers: &mut Registers,
    ) -> Result<bool, MemoryError> {
        frame.resize(frame.len().max(SHORTEST), 0);
        let whole = frame.len();
        if self.keeps_checksum {
            frame.extend(CRC.checksum(frame).to_le_bytes());
        }
        let fits = frame.len().div_ceil(self.buffer) <= self.free() as usize;
        if fits {
            let mut parts = frame.chunks(self.buffer).peekable();
            while let Some(part) = parts.next() {
                self.fill(part, parts.peek().is_none(), memory)?;
            }
            registers.set(RDH, self.head);
        }
        frame.truncate(whole);
        Ok(fits)
    }

    fn fill(&mut self, part: &[u8], is_last: bool, memory: &impl Dma) -> Result<(), MemoryError> {
        let at = self.base.wrapping_add(u64::from(self.head) * DESCRIPTOR);
        let mut buffer = [0; 8];
        memory.read(at, &mut buffer)?;
        memory.write(u64::from_le_bytes(buffer), part)?;
        let status = DONE | if is_last { END } else { 0 };
        let length = (part.len() as u32).to_le_bytes();
        if self.extended {
            let mut written = [0; DESCRIPTOR as usize];
            written[8..12].copy_from_slice(&status.to_le_bytes());
            written[12..14].copy_from_slice(&length[..2]);
            memory.write(at, &written)?;
        } else {
            memory.write(at + 8, &[length[0], length[1], 0, 0, status as u8, 0, 0, 0])?;
        }
        self.head = (self.head + 1) % self.length;
        Ok(())
    }
}

/// What `BSIZE` and `BSEX` say.
fn buffer_size(control: u32) -> usize {
    let size = [2_048, 1_024, 512, 256][(control >> 16 & 3) as usize];
    // 16 times as much; its first value is reserved, and as large as the next one.
    if control & RCTL_BSEX == 0 { size } else { (16 * size).min(16_384) }
}

/// Whether a frame is for this card.
pub(super) fn accepts(registers: &Registers, frame: &[u8]) -> bool {
    let control = registers.get(RCTL);
    let Some(to) = frame.first_chunk::<6>() else { return false };
    match address(frame) {
        Kind::Broadcast => control & RCTL_BAM != 0 || control & RCTL_MPE != 0,
        _ if has_address(registers, to) => true,
        Kind::Multicast => control & RCTL_MPE != 0 || is_hashed(registers, to),
        Kind::Unicast => control & RCTL_UPE != 0,
    }
}

fn has_address(registers: &Registers, to: &[u8; 6]) -> bool {
    let (low, high) = (
        u32::from_le_bytes([to[0], to[1], to[2], to[3]]),
        u32::from(u16::from_le_bytes([to[4], to[5]])) | RAH_AV,
    );
    (0..ADDRESSES).map(|number| RAL + 8 * number).any(|at| {
        let valid = registers.get(at + 4) & (RAH_AV | 0xFFFF);
        registers.get(at) == low && valid == high
    })
}

/// The hash of twelve bits of the address, with the filter's usual offset (`RCTL.MO` 0).
fn is_hashed(registers: &Registers, to: &[u8; 6]) -> bool {
    let shift = [4, 3, 2, 0][(registers.get(RCTL) >> 12 & 3) as usize];
    let hash = (u32::from(to[4]) >> shift | u32::from(to[5]) << (8 - shift)) & 0xFFF;
    registers.get(MTA + 4 * (hash >> 5)) >> (hash & 31) & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bytes;
    use super::*;

    fn ring(control: u32, extended: bool) -> Registers {
        let mut registers = Registers::new();
        registers.set(RCTL, RCTL_EN | control);
        registers.set(RFCTL, if extended { RFCTL_EXSTEN } else { 0 });
        registers.set(RDLEN, 8 * 16);
        registers.set(RDT, 7);
        registers
    }

    fn memory() -> Bytes {
        let memory = Bytes::new(0x1_0000);
        for number in 0..8_u64 {
            memory.write(16 * number, &(0x1000 + 0x800 * number).to_le_bytes()).unwrap();
        }
        memory
    }

    #[test]
    fn frames_are_padded_and_described_in_both_formats() {
        for (extended, expected) in [(true, [3, 0, 0, 0, 60, 0]), (false, [64, 0, 0, 0, 3, 0])] {
            let control = if extended { RCTL_SECRC } else { 0 };
            let (memory, mut registers) = (memory(), ring(control, extended));
            assert_eq!(room(&registers), 7);
            let ring = Ring::of(&registers).unwrap();
            assert!(ring.put(&mut vec![5; 42], &memory, &mut registers).unwrap());
            let mut descriptor = [0; 6];
            memory.read(8, &mut descriptor).unwrap();
            assert_eq!(descriptor, expected);
            let mut data = [0; 60];
            memory.read(0x1000, &mut data).unwrap();
            assert_eq!((data[41], data[42]), (5, 0));
            assert_eq!((registers.get(RDH), room(&registers)), (1, 6));
        }
    }

    #[test]
    fn a_long_frame_takes_several_buffers_or_none() {
        let (memory, mut registers) = (memory(), ring(RCTL_SECRC, true));
        let mut long = vec![1; 2_048 + 100];
        assert!(Ring::of(&registers).unwrap().put(&mut long, &memory, &mut registers).unwrap());
        assert_eq!(registers.get(RDH), 2);
        let mut longer = vec![1; 6 * 2_048];
        let put = Ring::of(&registers).unwrap().put(&mut longer, &memory, &mut registers);
        assert!(!put.unwrap());
        assert_eq!(registers.get(RDH), 2);
    }

    #[test]
    fn nonsense_in_the_registers_is_no_ring() {
        for (register, value) in [(RDH, 8), (RDT, 8), (RDLEN, 0), (RCTL, 0), (RDT, u32::MAX)] {
            let mut registers = ring(0, true);
            registers.set(register, value);
            assert_eq!(room(&registers), 0, "{register:#x} {value}");
        }
        let mut registers = ring(RCTL_SECRC, true);
        registers.set(RDBAH, 1);
        let ring = Ring::of(&registers).unwrap();
        assert!(ring.put(&mut vec![0; 60], &memory(), &mut registers).is_err());
    }

    #[test]
    fn frames_for_others_are_filtered() {
        let mut registers = Registers::new();
        registers.set(RCTL, RCTL_EN | RCTL_BAM);
        registers.set(RAL, 0x0000_0002);
        registers.set(RAL + 4, RAH_AV | 0x0700);
        let frame = |to: [u8; 6]| [&to[..], &[0; 54]].concat();
        assert!(accepts(&registers, &frame([2, 0, 0, 0, 0, 7])));
        assert!(!accepts(&registers, &frame([2, 0, 0, 0, 0, 8])));
        assert!(accepts(&registers, &frame([0xFF; 6])));
        let solicited = frame([0x33, 0x33, 0xFF, 0, 0, 1]);
        assert!(!accepts(&registers, &solicited));
        // As `e1000_hash_mc_addr_generic` computes it for a table of 128 words: 0x010.
        registers.set(MTA, 1 << 0x10);
        assert!(accepts(&registers, &solicited));
        registers.set(RCTL, RCTL_UPE);
        assert!(accepts(&registers, &frame([2, 0, 0, 0, 0, 8])));
        assert!(!accepts(&registers, &[1, 2]));
    }
}

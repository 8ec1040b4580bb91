//! The receive ring: from a frame to the buffers that the driver has posted.
//!
//! Descriptors have one of three formats: the legacy one of 16 bytes, the extended one of the
//! 82574, and its packet split of 32 bytes, with a buffer for headers and three for pages. Head and
//! tail count 16 bytes in all of them.

use vhost::transport::memory::MemoryError;

use super::register::{
    ADDRESSES, CTRL, CTRL_VME, MTA, PSRCTL, RAH_AV, RAL, RCTL, RCTL_BAM, RCTL_BSEX,
    RCTL_DTYP_SPLIT, RCTL_EN, RCTL_LPE, RCTL_MPE, RCTL_SECRC, RCTL_UPE, RCTL_VFE, RDBAH, RDBAL,
    RDH, RDLEN, RDT, RFCTL, RFCTL_EXSTEN, RXCSUM, RXCSUM_IPOFL, RXCSUM_TUOFL, Registers, VET, VFTA,
};
use crate::address::{Cast, address};
use crate::dma::Dma;
use crate::inspect::{Checks, inspect};
use crate::offload::SHORTEST;

/// What head and tail count.
const UNIT: u64 = 16;

/// Descriptor done, and end of packet, in all formats.
const DONE: u32 = 1 << 0;
const END: u32 = 1 << 1;
/// A VLAN tag was removed.
const TAGGED: u32 = 1 << 3;

/// Packet split: the first buffer has the headers and nothing else.
const HEADERS_SPLIT: u16 = 1 << 15;

/// The longest one that is received without `RCTL.LPE`, without its checksum.
const LONGEST: usize = 1_518;

/// The checksum that Ethernet ends a frame with.
const CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISO_HDLC);

/// A frame as it goes into the driver's buffers.
#[derive(Debug, Default)]
pub(super) struct ReceivedFrame {
    bytes: Vec<u8>,
    /// Bits of status and errors.
    status: u32,
    /// Bytes of headers; 0 if they are not known.
    headers: usize,
    /// The tag that was removed.
    tag: u16,
}

impl ReceivedFrame {
    /// Takes the frame off the wire: checks it, and removes and adds what the registers say.
    pub(super) fn take(&mut self, frame: &[u8], registers: &Registers) {
        let bytes = &mut self.bytes;
        bytes.clear();
        bytes.extend_from_slice(frame);
        bytes.resize(frame.len().max(SHORTEST), 0);
        let checks = registers.get(RXCSUM);
        let checks =
            Checks { network: checks & RXCSUM_IPOFL != 0, transport: checks & RXCSUM_TUOFL != 0 };
        let found = inspect(bytes, checks);
        let keeps_checksum = registers.get(RCTL) & RCTL_SECRC == 0;
        let checksum = keeps_checksum.then(|| CRC.checksum(bytes));
        (self.status, self.headers, self.tag) = (found.status, found.headers, 0);
        let removes = registers.get(CTRL) & CTRL_VME != 0;
        if let Some(tag) = tag_of(bytes, registers).filter(|_| removes) {
            bytes.drain(12..16);
            self.status |= TAGGED;
            (self.tag, self.headers) = (tag, self.headers.saturating_sub(4));
        }
        bytes.extend(checksum.into_iter().flat_map(u32::to_le_bytes));
    }
}

/// The tag of a frame that has the EtherType of `VET`.
fn tag_of(frame: &[u8], registers: &Registers) -> Option<u16> {
    let &[a, b, high, low] = frame.get(12..)?.first_chunk()?;
    let is_tagged = u32::from(u16::from_be_bytes([a, b])) == registers.get(VET);
    is_tagged.then(|| u16::from_be_bytes([high, low]))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DescriptorFormat {
    Legacy,
    Extended,
    /// One buffer for headers and three for pages, of these sizes.
    Split([usize; 4]),
}

pub(super) struct Ring {
    base: u64,
    /// In units, as head and tail.
    length: u32,
    head: u32,
    tail: u32,
    /// Bytes that a buffer holds.
    buffer: usize,
    format: DescriptorFormat,
}

/// Descriptors that a driver has posted and a frame may take; 0 if it does not receive.
pub(super) fn room(registers: &Registers) -> usize {
    Ring::of(registers).map_or(0, |ring| ring.free())
}

pub(super) fn descriptors(registers: &Registers) -> usize {
    Ring::of(registers).map_or(0, |ring| (ring.length / ring.units()) as usize)
}

impl Ring {
    pub(super) fn of(registers: &Registers) -> Option<Self> {
        let control = registers.get(RCTL);
        let extended = registers.get(RFCTL) & RFCTL_EXSTEN != 0;
        let format = match (control & RCTL_DTYP_SPLIT != 0, extended) {
            (false, false) => DescriptorFormat::Legacy,
            (false, true) => DescriptorFormat::Extended,
            (true, _) => DescriptorFormat::Split(split_sizes(registers.get(PSRCTL))),
        };
        let ring = Self {
            base: registers.address(RDBAL, RDBAH),
            length: registers.get(RDLEN) / UNIT as u32,
            head: registers.get(RDH),
            tail: registers.get(RDT),
            buffer: buffer_size(control),
            format,
        };
        let enabled = control & RCTL_EN != 0 && ring.capacity() > 0;
        (enabled && ring.head < ring.length && ring.tail < ring.length).then_some(ring)
    }

    fn units(&self) -> u32 {
        if matches!(self.format, DescriptorFormat::Split(_)) { 2 } else { 1 }
    }

    fn capacity(&self) -> usize {
        match self.format {
            DescriptorFormat::Legacy | DescriptorFormat::Extended => self.buffer,
            DescriptorFormat::Split(sizes) => sizes.iter().sum(),
        }
    }

    fn free(&self) -> usize {
        ((self.tail + self.length - self.head) % self.length / self.units()) as usize
    }

    /// Bytes of headers that have the first buffer for themselves.
    fn split_at(&self, packet: &ReceivedFrame) -> Option<usize> {
        let DescriptorFormat::Split(sizes) = self.format else { return None };
        let pages: usize = sizes[1..].iter().sum();
        (packet.headers > 0 && packet.headers <= sizes[0] && pages > 0).then_some(packet.headers)
    }

    /// Writes a packet into buffers; whether there were enough.
    pub(super) fn put(
        mut self,
        packet: &ReceivedFrame,
        memory: &dyn Dma,
        registers: &mut Registers,
    ) -> Result<bool, MemoryError> {
        let split = self.split_at(packet);
        let unused = match (self.format, split) {
            (DescriptorFormat::Split(sizes), Some(headers)) => sizes[0] - headers,
            _ => 0,
        };
        if (packet.bytes.len() + unused).div_ceil(self.capacity()) > self.free() {
            return Ok(false);
        }
        let (mut rest, mut split) = (&packet.bytes[..], split);
        while !rest.is_empty() {
            let at = self.base.wrapping_add(u64::from(self.head) * UNIT);
            rest = match self.format {
                DescriptorFormat::Split(sizes) => {
                    fill_split(at, rest, (sizes, split.take()), packet, memory)
                }
                format => fill(at, rest, (format, self.buffer), packet, memory),
            }?;
            self.head = (self.head + self.units()) % self.length;
        }
        registers.set(RDH, self.head);
        Ok(true)
    }
}

/// Status and errors of a descriptor; what is known of the packet is in its last one.
fn status(packet: &ReceivedFrame, is_last: bool) -> u32 {
    DONE | if is_last { END | packet.status } else { 0 }
}

/// Fills one buffer; what is left of `bytes`.
fn fill<'a>(
    at: u64,
    bytes: &'a [u8],
    (format, size): (DescriptorFormat, usize),
    packet: &ReceivedFrame,
    memory: &dyn Dma,
) -> Result<&'a [u8], MemoryError> {
    let (part, rest) = bytes.split_at(bytes.len().min(size));
    let mut descriptor = [0; 16];
    memory.read(at, &mut descriptor[..8])?;
    memory.write(u64_at(&descriptor, 0), part)?;
    let length = (part.len() as u16).to_le_bytes();
    let status = status(packet, rest.is_empty());
    if format == DescriptorFormat::Extended {
        descriptor[..8].fill(0);
        descriptor[8..12].copy_from_slice(&status.to_le_bytes());
        descriptor[12..14].copy_from_slice(&length);
    } else {
        // Status and errors are a byte each.
        descriptor[8..10].copy_from_slice(&length);
        descriptor[12..14].copy_from_slice(&[status as u8, (status >> 24) as u8]);
    }
    descriptor[14..].copy_from_slice(&packet.tag.to_le_bytes());
    memory.write(at, &descriptor)?;
    Ok(rest)
}

/// Fills the buffers of one descriptor for packet split, the first one with `split` bytes of
/// headers if they are known; what is left of `bytes`.
fn fill_split<'a>(
    at: u64,
    bytes: &'a [u8],
    (sizes, split): ([usize; 4], Option<usize>),
    packet: &ReceivedFrame,
    memory: &dyn Dma,
) -> Result<&'a [u8], MemoryError> {
    let mut buffers = [0; 32];
    memory.read(at, &mut buffers)?;
    let mut descriptor = [0; 32];
    let mut rest = bytes;
    for (number, size) in sizes.into_iter().enumerate() {
        let size = if number == 0 { split.unwrap_or(size) } else { size };
        let (part, behind) = rest.split_at(rest.len().min(size));
        if !part.is_empty() {
            memory.write(u64_at(&buffers, 8 * number), part)?;
        }
        let length_at = if number == 0 { 12 } else { 16 + 2 * number };
        descriptor[length_at..length_at + 2].copy_from_slice(&(part.len() as u16).to_le_bytes());
        rest = behind;
    }
    let status = status(packet, rest.is_empty());
    descriptor[8..12].copy_from_slice(&status.to_le_bytes());
    descriptor[14..16].copy_from_slice(&packet.tag.to_le_bytes());
    let split = split.map_or(0, |headers| HEADERS_SPLIT | headers as u16);
    descriptor[16..18].copy_from_slice(&split.to_le_bytes());
    memory.write(at, &descriptor)?;
    Ok(rest)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

/// What `PSRCTL` says: the first size in 128 bytes, the others in 1024.
fn split_sizes(control: u32) -> [usize; 4] {
    let kilobytes = |shift: u32| ((control >> shift & 0x3F) * 1_024) as usize;
    [((control & 0x7F) * 128) as usize, kilobytes(8), kilobytes(16), kilobytes(24)]
}

/// What `BSIZE` and `BSEX` say.
fn buffer_size(control: u32) -> usize {
    let size = [2_048, 1_024, 512, 256][(control >> 16 & 3) as usize];
    // 16 times as much; its first value is reserved, and as large as the next one.
    if control & RCTL_BSEX == 0 { size } else { (16 * size).min(16_384) }
}

pub(super) fn is_oversize(registers: &Registers, frame: &[u8]) -> bool {
    frame.len() > LONGEST && registers.get(RCTL) & RCTL_LPE == 0
}

pub(super) fn accepts(registers: &Registers, frame: &[u8]) -> bool {
    let control = registers.get(RCTL);
    let Some(to) = frame.first_chunk::<6>() else { return false };
    let tag = tag_of(frame, registers).filter(|_| control & RCTL_VFE != 0);
    if tag.is_some_and(|tag| !has_vlan(registers, tag & 0xFFF)) {
        return false;
    }
    match address(frame) {
        Cast::Broadcast => control & RCTL_BAM != 0 || control & RCTL_MPE != 0,
        _ if has_address(registers, to) => true,
        Cast::Multicast => control & RCTL_MPE != 0 || is_hashed(registers, to),
        Cast::Unicast => control & RCTL_UPE != 0,
    }
}

fn has_vlan(registers: &Registers, vlan: u16) -> bool {
    registers.get(VFTA + 4 * u32::from(vlan >> 5)) >> (vlan & 31) & 1 != 0
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
    use super::*;
    use crate::testing::Bytes;

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

    fn put(frame: &[u8], memory: &Bytes, registers: &mut Registers) -> Result<bool, MemoryError> {
        let mut packet = ReceivedFrame::default();
        packet.take(frame, registers);
        Ring::of(registers).unwrap().put(&packet, memory, registers)
    }

    #[test]
    fn frames_are_padded_and_described_in_both_formats() {
        for (extended, expected) in [(true, [7, 0, 0, 0, 60, 0]), (false, [64, 0, 0, 0, 7, 0])] {
            let control = if extended { RCTL_SECRC } else { 0 };
            let (memory, mut registers) = (memory(), ring(control, extended));
            assert_eq!(room(&registers), 7);
            assert!(put(&[5; 42], &memory, &mut registers).unwrap());
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
        assert!(put(&[1; 2_048 + 100], &memory, &mut registers).unwrap());
        assert_eq!(registers.get(RDH), 2);
        assert!(!put(&[1; 6 * 2_048], &memory, &mut registers).unwrap());
        assert_eq!(registers.get(RDH), 2);
    }

    #[test]
    fn headers_have_a_buffer_of_their_own_in_packet_split() {
        let mut registers = ring(RCTL_SECRC | RCTL_DTYP_SPLIT, true);
        registers.set(PSRCTL, 1 | 4 << 8 | 4 << 16 | 4 << 24);
        assert_eq!(room(&registers), 3);
        let memory = Bytes::new(0x4_0000);
        for number in 0..16_u64 {
            memory.write(8 * number, &(0x1000 + 0x1000 * number).to_le_bytes()).unwrap();
        }
        // TCP over IPv4, without checks, then what is nothing known.
        let mut frame = vec![7; 5_000];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14..24].copy_from_slice(&[0x45, 0, 0x13, 0x7A, 0, 0, 0x40, 0, 64, 6]);
        frame[46] = 0x50;
        let described = |number: u64| {
            let mut bytes = [0; 32];
            memory.read(32 * number, &mut bytes).unwrap();
            [8, 12, 16, 18, 20, 22].map(|at| u16::from_le_bytes([bytes[at], bytes[at + 1]]))
        };
        let mut packet = ReceivedFrame::default();
        packet.take(&frame, &registers);
        let is_put = Ring::of(&registers).unwrap().put(&packet, &memory, &mut registers);
        assert!(is_put.unwrap());
        assert_eq!(described(0), [7, 54, HEADERS_SPLIT | 54, 4_096, 850, 0]);
        let mut byte = [0; 2];
        memory.read(0x2000 - 1, &mut byte).unwrap();
        assert_eq!(byte, [0, 7], "the page begins with the payload");
        assert!(put(&[0xFF; 13_000], &memory, &mut registers).unwrap());
        assert_eq!(described(1), [1, 128, 0, 4_096, 4_096, 4_096]);
        assert_eq!(described(2), [7, 128, 0, 456, 0, 0]);
        assert_eq!((registers.get(RDH), room(&registers)), (6, 0));
        registers.set(PSRCTL, 0);
        assert!(Ring::of(&registers).is_none());
    }

    #[test]
    fn a_tag_is_removed_where_the_driver_wants_it() {
        let (memory, mut registers) = (memory(), ring(RCTL_SECRC, true));
        registers.set(VET, 0x8100);
        let mut frame = vec![1; 100];
        frame[12..18].copy_from_slice(&[0x81, 0, 0x20, 5, 9, 9]);
        let mut described = |control: u32| {
            registers.set(RDH, 0);
            registers.set(CTRL, control);
            assert!(put(&frame, &memory, &mut registers).unwrap());
            let (mut descriptor, mut data) = ([0; 16], [0; 2]);
            memory.read(0, &mut descriptor).unwrap();
            memory.read(0x1000 + 12, &mut data).unwrap();
            memory.write(0, &0x1000_u64.to_le_bytes()).unwrap();
            (descriptor[8], descriptor[12], [descriptor[14], descriptor[15]], data)
        };
        assert_eq!(described(0), (7, 100, [0, 0], [0x81, 0]));
        assert_eq!(described(CTRL_VME), (15, 96, [5, 0x20], [9, 9]));
        registers.set(RCTL, RCTL_EN | RCTL_UPE | RCTL_VFE);
        frame[0] = 2;
        assert!(!accepts(&registers, &frame));
        registers.set(VFTA, 1 << 5);
        assert!(accepts(&registers, &frame));
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
        assert!(put(&[0; 60], &memory(), &mut registers).is_err());
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

//! From bytes in pieces to packets.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use pcap_parser::nom::Err as NomError;
use pcap_parser::pcapng::{self, Block, EnhancedPacketBlock, InterfaceDescriptionBlock};
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{OptionCode, PcapHeader, PcapNGOption, pcap};

use crate::counts::CaptureCounts;
use crate::interface::{Interface, Resolution};
use crate::link::{Bench, CapturedPacket, PacketDirection};
use crate::recorded::Recorded;

/// The longest record or block that is believed: no packet is longer, and who claims more is
/// damaged.
const LONGEST: usize = 16 << 20;
/// Interfaces of a section that are kept.
const MAX_INTERFACES: usize = 4_096;
/// Bytes of a header of pcap, of a record, and of the head of a block that has its length.
const PCAP_HEADER: usize = 24;
const PCAP_RECORD: usize = 16;
const BLOCK_HEAD: usize = 12;

/// `epb_flags` and its two lowest bits: inbound is 1, outbound is 2.
const EPB_FLAGS: OptionCode = OptionCode(2);

/// The format of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureFormat {
    /// That of libpcap, with stamps of microseconds or nanoseconds.
    Pcap,
    /// That of Wireshark.
    Pcapng,
    /// One of them, compressed by gzip: the caller unpacks it first.
    Gzip,
}

impl fmt::Display for CaptureFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pcap => "pcap",
            Self::Pcapng => "pcapng",
            Self::Gzip => "gzip",
        })
    }
}

/// The format that begins with these bytes, of which 4 are enough; `None` if it is no capture.
#[must_use]
pub fn format_of(bytes: &[u8]) -> Option<CaptureFormat> {
    let first = bytes.first_chunk::<4>()?;
    match u32::from_le_bytes(*first) {
        0xa1b2_c3d4 | 0xa1b2_3c4d | 0xa1b2_cd34 | 0xd4c3_b2a1 | 0x4d3c_b2a1 => {
            Some(CaptureFormat::Pcap)
        }
        0x0a0d_0d0a => Some(CaptureFormat::Pcapng),
        _ if first.starts_with(&[0x1f, 0x8b]) => Some(CaptureFormat::Gzip),
        _ => None,
    }
}

/// Why nothing more is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// These bytes begin no capture.
    NoCapture,
    /// They are compressed.
    Compressed,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoCapture => {
                "no capture: it begins neither as pcap nor as pcapng; make one with: \
                 tcpdump -i eth0 -s 96 -w FILE"
            }
            Self::Compressed => "it is compressed; unpack it first, as in: gunzip FILE",
        })
    }
}

impl core::error::Error for ReadError {}

#[derive(Clone, Copy, Debug)]
enum ReadState {
    /// Nothing has come.
    Start,
    Pcap {
        big_endian: bool,
        /// Bytes of the head of a record.
        head: usize,
    },
    Pcapng {
        big_endian: bool,
    },
    /// What follows is not read any more.
    Lost,
}

/// Reads one capture.
#[derive(Clone, Debug)]
pub struct Reader {
    state: ReadState,
    format: Option<CaptureFormat>,
    interfaces: Vec<Interface>,
    /// Where the interfaces of the section that is read begin.
    section: usize,
    counts: CaptureCounts,
    last_ns: u64,
    bench: Bench,
    /// A record that has come in part.
    part: Vec<u8>,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new()
    }
}

/// What reading one record came to.
enum Consumed {
    /// So many bytes are done with.
    Used(usize),
    /// So many are needed at once.
    Needs(usize),
    /// Nothing behind it can be found.
    Lost,
}

impl Reader {
    /// A reader to which nothing has come.
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: ReadState::Start,
            format: None,
            interfaces: Vec::new(),
            section: 0,
            counts: CaptureCounts::default(),
            last_ns: 0,
            bench: Bench::new(),
            part: Vec::new(),
        }
    }

    /// The next bytes of the capture, in a piece of any length; `each` gets every packet that is
    /// whole.
    ///
    /// # Errors
    /// If the first bytes begin no capture. What is damaged behind them is counted.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(&CapturedPacket),
    ) -> Result<(), ReadError> {
        let mut rest = bytes;
        // Only the record that began in an earlier piece is put together.
        while !self.part.is_empty() {
            let part = core::mem::take(&mut self.part);
            let step = self.step(&part, each)?;
            self.part = part;
            match step {
                Consumed::Used(count) => {
                    self.part.drain(..count);
                }
                Consumed::Needs(count) => {
                    let (more, behind) = rest.split_at(rest.len().min(count - self.part.len()));
                    if more.is_empty() {
                        return Ok(());
                    }
                    self.part.extend_from_slice(more);
                    rest = behind;
                }
                Consumed::Lost => self.lose(self.part.len()),
            }
        }
        loop {
            match self.step(rest, each)? {
                Consumed::Used(0) => return Ok(()),
                Consumed::Used(count) => rest = &rest[count..],
                Consumed::Needs(_) => break self.part.extend_from_slice(rest),
                Consumed::Lost => break self.lose(rest.len()),
            }
        }
        Ok(())
    }

    /// No more bytes come: those of a record that has come in part are counted.
    ///
    /// # Errors
    /// If too few came to be a capture.
    pub fn finish(&mut self) -> Result<(), ReadError> {
        let is_empty = matches!(self.state, ReadState::Start);
        self.counts.rest += self.part.len() as u64;
        self.part.clear();
        if is_empty { Err(ReadError::NoCapture) } else { Ok(()) }
    }

    /// The format, once it is known.
    #[must_use]
    pub const fn format(&self) -> Option<CaptureFormat> {
        self.format
    }

    /// The interfaces, of all sections, in the order of the capture.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// What has been counted.
    #[must_use]
    pub const fn counts(&self) -> &CaptureCounts {
        &self.counts
    }

    fn lose(&mut self, bytes: usize) {
        self.state = ReadState::Lost;
        self.counts.rest += bytes as u64;
        self.part.clear();
    }

    /// Reads one record or block at the beginning of `bytes`.
    #[inline]
    fn step(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(&CapturedPacket),
    ) -> Result<Consumed, ReadError> {
        if bytes.is_empty() {
            return Ok(Consumed::Used(0));
        }
        match self.state {
            ReadState::Start => self.start(bytes, each),
            ReadState::Pcap { big_endian, head } => Ok(self.record(bytes, big_endian, head, each)),
            ReadState::Pcapng { big_endian } => Ok(self.block(bytes, big_endian, each)),
            ReadState::Lost => {
                self.counts.rest += bytes.len() as u64;
                Ok(Consumed::Used(bytes.len()))
            }
        }
    }

    fn start(
        &mut self,
        bytes: &[u8],
        each: &mut impl FnMut(&CapturedPacket),
    ) -> Result<Consumed, ReadError> {
        if bytes.len() < 4 {
            return Ok(Consumed::Needs(4));
        }
        self.format = format_of(bytes);
        match self.format {
            None => Err(ReadError::NoCapture),
            Some(CaptureFormat::Gzip) => Err(ReadError::Compressed),
            Some(CaptureFormat::Pcapng) => {
                self.state = ReadState::Pcapng { big_endian: false };
                Ok(self.block(bytes, false, each))
            }
            Some(CaptureFormat::Pcap) if bytes.len() < PCAP_HEADER => {
                Ok(Consumed::Needs(PCAP_HEADER))
            }
            Some(CaptureFormat::Pcap) => match pcap::parse_pcap_header(bytes) {
                Ok((_, header)) => Ok(self.begin_pcap(&header)),
                Err(_) => Err(ReadError::NoCapture),
            },
        }
    }

    fn begin_pcap(&mut self, header: &PcapHeader) -> Consumed {
        let per_second = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
        self.interfaces.push(Interface {
            // The upper bits say how long the FCS is.
            link: header.network.0 & 0x0fff_ffff,
            resolution: Resolution { per_second, offset: header.thiszone.into() },
            ..Interface::default()
        });
        let head = if header.is_modified_format() { 24 } else { PCAP_RECORD };
        self.state = ReadState::Pcap { big_endian: header.is_bigendian(), head };
        Consumed::Used(PCAP_HEADER)
    }

    #[inline]
    fn record(
        &mut self,
        bytes: &[u8],
        big_endian: bool,
        head: usize,
        each: &mut impl FnMut(&CapturedPacket),
    ) -> Consumed {
        let Some(length) = bytes.get(8..12) else { return Consumed::Needs(head) };
        let captured = word(length, big_endian) as usize;
        if captured > LONGEST {
            return Consumed::Lost;
        }
        let whole = head + captured;
        if bytes.len() < whole {
            return Consumed::Needs(whole);
        }
        let parsed = match (head, big_endian) {
            (PCAP_RECORD, false) => pcap::parse_pcap_frame(bytes),
            (PCAP_RECORD, true) => pcap::parse_pcap_frame_be(bytes),
            _ => pcap::parse_pcap_frame_modified(bytes),
        };
        let Ok((_, record)) = parsed else { return Consumed::Lost };
        let per_second = self.interfaces[0].resolution.per_second;
        let units = u64::from(record.ts_sec) * per_second + u64::from(record.ts_usec);
        let (data, original) = (record.data, record.origlen);
        self.packet(0, units, data, original, (PacketDirection::Unknown, None), each);
        Consumed::Used(whole)
    }

    fn block(
        &mut self,
        bytes: &[u8],
        big_endian: bool,
        each: &mut impl FnMut(&CapturedPacket),
    ) -> Consumed {
        let Some(head) = bytes.first_chunk::<BLOCK_HEAD>() else {
            return Consumed::Needs(BLOCK_HEAD);
        };
        let is_section = head[..4] == [0x0a, 0x0d, 0x0d, 0x0a];
        let big_endian =
            if is_section { head[8..12] == [0x1a, 0x2b, 0x3c, 0x4d] } else { big_endian };
        let whole = word(&head[4..8], big_endian) as usize;
        if !(BLOCK_HEAD..=LONGEST).contains(&whole) {
            return Consumed::Lost;
        }
        if bytes.len() < whole {
            return Consumed::Needs(whole);
        }
        self.state = ReadState::Pcapng { big_endian };
        let parse = if big_endian { pcapng::parse_block_be } else { pcapng::parse_block_le };
        match parse(&bytes[..whole]) {
            Ok((_, block)) => self.read(&block, big_endian, each),
            Err(NomError::Incomplete(_) | NomError::Error(_) | NomError::Failure(_)) => {
                self.counts.damaged += 1;
            }
        }
        Consumed::Used(whole)
    }

    fn read(
        &mut self,
        block: &Block<'_>,
        big_endian: bool,
        each: &mut impl FnMut(&CapturedPacket),
    ) {
        match block {
            Block::SectionHeader(_) => self.section = self.interfaces.len(),
            Block::InterfaceDescription(described) if self.interfaces.len() < MAX_INTERFACES => {
                self.interfaces.push(interface(described, big_endian));
            }
            Block::EnhancedPacket(packet) => self.enhanced(packet, big_endian, each),
            Block::SimplePacket(_) => self.counts.unstamped += 1,
            _ => {}
        }
    }

    fn enhanced(
        &mut self,
        packet: &EnhancedPacketBlock<'_>,
        big_endian: bool,
        each: &mut impl FnMut(&CapturedPacket),
    ) {
        let index = self.section.saturating_add(packet.if_id as usize);
        let units = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
        let said = said(&packet.options, big_endian);
        self.packet(index, units, packet.packet_data(), packet.origlen, said, each);
    }

    #[inline]
    fn packet(
        &mut self,
        interface: usize,
        units: u64,
        data: &[u8],
        original: u32,
        (direction, recorded): (PacketDirection, Option<Recorded>),
        each: &mut impl FnMut(&CapturedPacket),
    ) {
        let Some(of) = self.interfaces.get_mut(interface) else {
            self.counts.unknown_interface += 1;
            return;
        };
        let Some((length, headers, stations, way)) = self.bench.frame(of.link, data, original)
        else {
            self.counts.unknown_link += 1;
            return;
        };
        let at_ns = of.resolution.nanos(units);
        of.packets += 1;
        self.counts.packets += 1;
        self.counts.backwards += u64::from(at_ns < self.last_ns);
        self.counts.cut += u64::from(data.len() < original as usize);
        self.counts.malformed += u64::from(headers.is_err());
        self.last_ns = at_ns.max(self.last_ns);
        let direction = if direction == PacketDirection::Unknown { way } else { direction };
        let at_ns = self.last_ns;
        each(&CapturedPacket { at_ns, interface, length, headers, stations, direction, recorded });
    }
}

fn word(bytes: &[u8], big_endian: bool) -> u32 {
    let bytes = bytes.first_chunk::<4>().copied().unwrap_or_default();
    if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
}

/// What the options of a packet say.
fn said(options: &[PcapNGOption<'_>], big_endian: bool) -> (PacketDirection, Option<Recorded>) {
    let (mut direction, mut recorded) = (PacketDirection::Unknown, None);
    for option in options {
        match (option.code, option.as_bytes()) {
            (EPB_FLAGS, Ok(flags)) => {
                direction = match word(flags, big_endian) & 3 {
                    1 => PacketDirection::In,
                    2 => PacketDirection::Out,
                    _ => PacketDirection::Unknown,
                };
            }
            (OptionCode::Comment, Ok(comment)) => recorded = Recorded::parse(comment),
            _ => {}
        }
    }
    (direction, recorded)
}

fn interface(described: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> Interface {
    let name = described.if_name().and_then(Result::ok).map(String::from);
    let speed = described.options.iter().find(|option| option.code == OptionCode::IfSpeed);
    let speed = speed.and_then(|option| option.as_bytes().ok()?.first_chunk::<8>().copied());
    let read = if big_endian { u64::from_be_bytes } else { u64::from_le_bytes };
    let per_second = described.ts_resolution().filter(|per_second| *per_second > 0);
    Interface {
        name,
        link: described.linktype.0,
        speed: speed.map(read).filter(|speed| *speed > 0),
        resolution: Resolution {
            per_second: per_second.unwrap_or(Resolution::default().per_second),
            offset: described.if_tsoffset,
        },
        packets: 0,
    }
}

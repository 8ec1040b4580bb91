//! What the card does to a packet before it sends it: checksums, and dividing it into segments.
//!
//! A context descriptor says where headers and checksums are; data descriptors say what of it
//! applies (82574 datasheet, 7.2.4 to 7.3). All of it comes from the guest, so every offset is
//! checked against the packet.

use std::collections::VecDeque;

use nic::port::MAX_FRAME;
use vhost::transport::memory::MemoryError;

use crate::dma::Dma;

/// The longest packet that is taken from a guest, before it is divided.
pub(crate) const MAX_PACKET: usize = 65_535 + 256;

/// The most frames that one packet is divided into.
const MAX_SEGMENTS: usize = 1_024;

/// The shortest frame on a wire, without its checksum.
pub(crate) const SHORTEST: usize = 60;

/// The checksum of SCTP.
const SCTP_CRC: crc::Crc<u32> = crc::Crc::<u32>::new(&crc::CRC_32_ISCSI);

/// A context descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Context {
    /// Where the checksum of the IP header begins, is stored and ends (inclusive).
    ip: (usize, usize, usize),
    /// The same for TCP or UDP; an end of 0 is that of the packet.
    transport: (usize, usize, usize),
    is_tcp: bool,
    is_ipv4: bool,
    /// Bytes of all headers.
    headers: usize,
    /// Bytes of payload of each segment.
    segment: usize,
}

const TCP: u32 = 1 << 24;
const IPV4: u32 = 1 << 25;

impl Context {
    /// A checksum from `start` to the end of the packet, stored at `at`.
    pub(crate) fn transport_only(start: usize, at: usize) -> Self {
        Self { transport: (start, at, 0), is_tcp: true, ..Self::default() }
    }

    /// Headers of IP at `network`, of TCP or UDP at `transport`, which end at `headers`;
    /// the pair says whether they are IPv4 and TCP. `segment` is for dividing.
    pub(crate) fn of_headers(
        network: usize,
        transport: usize,
        headers: usize,
        (is_ipv4, is_tcp): (bool, bool),
        segment: usize,
    ) -> Self {
        let checksum = transport + if is_tcp { 16 } else { 6 };
        Self {
            ip: (network, network + 10, transport.saturating_sub(1)),
            transport: (transport, checksum, 0),
            is_tcp,
            is_ipv4,
            headers,
            segment,
        }
    }

    /// From the sixteen bytes of a descriptor.
    pub(crate) fn parse(bytes: &[u8; 16]) -> Self {
        let half = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let command = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        Self {
            ip: (bytes[0].into(), bytes[1].into(), half(2)),
            transport: (bytes[4].into(), bytes[5].into(), half(6)),
            is_tcp: command & TCP != 0,
            is_ipv4: command & IPV4 != 0,
            headers: bytes[13].into(),
            segment: half(14),
        }
    }
}

/// What of a context applies to a packet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub ip_checksum: bool,
    pub transport_checksum: bool,
    pub sctp_checksum: bool,
    pub segments: bool,
}

/// A packet of the driver that is gathered from its descriptors, and the frames of the one before.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    packet: Vec<u8>,
    /// The packet is longer than any, and dropped at its end.
    is_too_long: bool,
    frames: VecDeque<Vec<u8>>,
    /// Packets that were longer than any port takes.
    pub too_long: u64,
}

impl Gathering {
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        self.frames.pop_front()
    }

    pub(crate) fn append(
        &mut self,
        address: u64,
        length: usize,
        memory: &dyn Dma,
    ) -> Result<(), MemoryError> {
        let before = self.packet.len();
        self.is_too_long |= before + length > MAX_PACKET;
        if self.is_too_long || length == 0 {
            return Ok(());
        }
        self.packet.resize(before + length, 0);
        memory.read(address, &mut self.packet[before..])
    }

    /// The packet is complete: does what is wanted, inserts a VLAN tag and its EtherType, and pads;
    /// how many frames that made. Those of the packet before have been taken.
    pub(crate) fn finish(
        &mut self,
        context: &Context,
        wanted: Wanted,
        tag: Option<[u16; 2]>,
    ) -> usize {
        let packet = std::mem::take(&mut self.packet);
        if std::mem::take(&mut self.is_too_long) {
            self.too_long += 1;
            return 0;
        }
        let made = prepare(packet, context, wanted, &mut self.frames);
        for frame in &mut self.frames {
            if let (Some(tag), 12..) = (tag, frame.len()) {
                frame.splice(12..12, tag.into_iter().flat_map(u16::to_be_bytes));
            }
            frame.resize(frame.len().max(SHORTEST), 0);
        }
        let before = self.frames.len();
        self.frames.retain(|frame| frame.len() <= MAX_FRAME);
        self.too_long += (before - self.frames.len()) as u64;
        made
    }
}

/// Does what is wanted with `packet`, and puts the frames into `frames`; how many.
pub(crate) fn prepare(
    mut packet: Vec<u8>,
    context: &Context,
    wanted: Wanted,
    frames: &mut VecDeque<Vec<u8>>,
) -> usize {
    let divides = wanted.segments && context.segment > 0 && packet.len() > context.headers;
    if !divides {
        store_checksums(&mut packet, context, wanted);
        frames.push_back(packet);
        return 1;
    }
    let (headers, payload) = packet.split_at(context.headers);
    let parts = payload.chunks(context.segment).take(MAX_SEGMENTS);
    let count = parts.len();
    for (number, part) in parts.enumerate() {
        let mut frame = [headers, part].concat();
        let place = SegmentPosition { number, is_last: number + 1 == count };
        adapt_headers(&mut frame, context, place);
        store_checksums(&mut frame, context, wanted);
        frames.push_back(frame);
    }
    count
}

/// Which of the segments of a packet.
#[derive(Clone, Copy)]
struct SegmentPosition {
    number: usize,
    is_last: bool,
}

/// TCP's flags that only the last segment has: FIN and PSH.
const LAST_ONLY: u8 = 0x09;

/// Lengths, identification, sequence number and flags of one segment.
fn adapt_headers(frame: &mut [u8], context: &Context, place: SegmentPosition) {
    let (ip, transport) = (context.ip.0, context.transport.0);
    let end = frame.len();
    let put = |frame: &mut [u8], at: usize, value: usize| {
        if let Some(field) = frame.get_mut(at..at + 2) {
            field.copy_from_slice(&(value as u16).to_be_bytes());
        }
    };
    if context.is_ipv4 {
        put(frame, ip + 2, end.saturating_sub(ip));
        if let Some(&[high, low]) = frame.get(ip + 4..ip + 6) {
            let identification = u16::from_be_bytes([high, low]);
            put(frame, ip + 4, usize::from(identification.wrapping_add(place.number as u16)));
        }
    } else {
        // The length of IPv6 is that of what follows its header of 40 bytes.
        put(frame, ip + 4, end.saturating_sub(ip + 40));
    }
    let length = end.saturating_sub(transport);
    if context.is_tcp {
        if let Some(field) = frame.get_mut(transport + 4..transport + 8) {
            let before = u32::from_be_bytes([field[0], field[1], field[2], field[3]]);
            let skipped = (place.number * context.segment) as u32;
            field.copy_from_slice(&before.wrapping_add(skipped).to_be_bytes());
        }
        if let Some(flags) = frame.get_mut(transport + 13).filter(|_| !place.is_last) {
            *flags &= !LAST_ONLY;
        }
    } else {
        put(frame, transport + 4, length);
    }
    // The driver has left the sum of the pseudo header there, but for the length.
    let at = context.transport.1;
    if let Some(&[high, low]) = frame.get(at..at + 2) {
        let sum = fold(u64::from(u16::from_be_bytes([high, low])) + length as u64);
        put(frame, at, usize::from(sum));
    }
}

fn store_checksums(frame: &mut [u8], context: &Context, wanted: Wanted) {
    if wanted.ip_checksum {
        let (start, at, end) = context.ip;
        if let Some(field) = frame.get_mut(at..at + 2) {
            field.fill(0);
        }
        store(frame, start, at, end, false);
    }
    if wanted.transport_checksum {
        let (start, at, end) = context.transport;
        store(frame, start, at, end, !context.is_tcp);
    }
    if wanted.sctp_checksum {
        store_sctp_checksum(frame, context.transport.0);
    }
}

/// Stores the checksum of an SCTP packet that begins at `start` (RFC 9260, 6.8).
fn store_sctp_checksum(frame: &mut [u8], start: usize) {
    let field = start + 8..start + 12;
    if let Some(field) = frame.get_mut(field.clone()) {
        field.fill(0);
    }
    let checksum = frame.get(start..).map_or(0, |packet| SCTP_CRC.checksum(packet));
    if let Some(field) = frame.get_mut(field) {
        field.copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Stores the complement of the sum of a range at `at`; nothing if the offsets are not in the
/// frame. UDP has no checksum of 0.
fn store(frame: &mut [u8], start: usize, at: usize, last: usize, never_zero: bool) {
    let end = if last == 0 { frame.len() } else { (last + 1).min(frame.len()) };
    let Some(range) = frame.get(start..end) else { return };
    let checksum = !sum(range);
    let checksum = if checksum == 0 && never_zero { 0xFFFF } else { checksum };
    if let Some(field) = frame.get_mut(at..at + 2) {
        field.copy_from_slice(&checksum.to_be_bytes());
    }
}

/// The sum of RFC 1071.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    let pairs = bytes
        .chunks(2)
        .map(|pair| u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    fold(pairs.sum())
}

/// A sum of 16 bits, carries added.
pub(crate) fn fold(mut sum: u64) -> u16 {
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ethernet, IPv4 of 20 bytes, TCP of 20, and `payload`; checksums as Linux leaves them.
    fn packet(payload: usize) -> Vec<u8> {
        let mut packet = vec![0_u8; 54 + payload];
        packet[12..14].copy_from_slice(&[8, 0]);
        packet[14] = 0x45;
        packet[18..20].copy_from_slice(&0xFFFF_u16.to_be_bytes());
        packet[23] = 6;
        packet[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        packet[38..42].copy_from_slice(&0xFFFF_FFF0_u32.to_be_bytes());
        packet[47] = 0x19; // ACK, PSH, FIN
        packet[54..].iter_mut().zip(0_u8..).for_each(|(byte, number)| *byte = number);
        packet
    }

    /// The sum of the pseudo header with this length.
    fn pseudo(packet: &[u8], length: u16) -> u16 {
        fold(u64::from(sum(&packet[26..34])) + 6 + u64::from(length))
    }

    const CONTEXT: Context = Context {
        ip: (14, 24, 33),
        transport: (34, 50, 0),
        is_tcp: true,
        is_ipv4: true,
        headers: 54,
        segment: 100,
    };

    const ALL: Wanted = Wanted {
        ip_checksum: true,
        transport_checksum: true,
        sctp_checksum: false,
        segments: true,
    };

    fn assert_right(frame: &[u8]) {
        assert_eq!(sum(&frame[14..34]), 0xFFFF, "the checksum of the IP header");
        let length = (frame.len() - 34) as u16;
        let transport = u64::from(sum(&frame[34..])) + u64::from(pseudo(frame, length));
        assert_eq!(fold(transport), 0xFFFF, "the checksum of TCP");
    }

    #[test]
    fn a_packet_is_divided_as_tcp_would() {
        let mut whole = packet(250);
        let partial = pseudo(&whole, 0);
        whole[50..52].copy_from_slice(&partial.to_be_bytes());
        let mut frames = VecDeque::new();
        assert_eq!(prepare(whole, &CONTEXT, ALL, &mut frames), 3);
        let lengths: Vec<usize> = frames.iter().map(Vec::len).collect();
        assert_eq!(lengths, [154, 154, 104]);
        for (number, frame) in frames.iter().enumerate() {
            assert_right(frame);
            let total = u16::from_be_bytes([frame[16], frame[17]]);
            assert_eq!(usize::from(total), frame.len() - 14);
            let identification = u16::from_be_bytes([frame[18], frame[19]]);
            assert_eq!(identification, 0xFFFF_u16.wrapping_add(number as u16));
            let sequence = u32::from_be_bytes([frame[38], frame[39], frame[40], frame[41]]);
            assert_eq!(sequence, 0xFFFF_FFF0_u32.wrapping_add(100 * number as u32));
            assert_eq!(frame[47], if number == 2 { 0x19 } else { 0x10 });
        }
    }

    #[test]
    fn checksums_are_stored_where_the_context_says() {
        let mut whole = packet(11);
        let partial = pseudo(&whole, 31);
        whole[50..52].copy_from_slice(&partial.to_be_bytes());
        let mut frames = VecDeque::new();
        prepare(whole, &CONTEXT, Wanted { segments: false, ..ALL }, &mut frames);
        assert_right(&frames[0]);
    }

    #[test]
    fn offsets_outside_the_packet_change_nothing_there() {
        let outside = Context {
            ip: (200, 250, 9),
            transport: (255, 255, 60_000),
            headers: 255,
            ..Context::default()
        };
        let mut frames = VecDeque::new();
        assert_eq!(prepare(packet(0), &outside, ALL, &mut frames), 1);
        assert_eq!(frames[0], packet(0));
        let tiny = Context { segment: 1, headers: 0, ..outside };
        assert_eq!(prepare(vec![0; MAX_PACKET], &tiny, ALL, &mut frames), MAX_SEGMENTS);
    }

    #[test]
    fn a_context_is_laid_out_as_in_the_datasheet() {
        let mut bytes = [14, 24, 33, 0, 34, 50, 0, 0, 0, 0, 0, 3, 0, 54, 100, 0];
        assert_eq!(Context::parse(&bytes), CONTEXT);
        bytes[11] = 0;
        let neither = Context { is_tcp: false, is_ipv4: false, ..CONTEXT };
        assert_eq!(Context::parse(&bytes), neither);
    }
}

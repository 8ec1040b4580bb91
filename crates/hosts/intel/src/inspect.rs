//! What a NIC finds out about a frame that it receives: where its headers end, and whether the
//! checksums of IP, TCP and UDP are right (82574 datasheet, 7.1.10).
//!
//! It knows Ethernet with one VLAN tag, IPv4 and IPv6 without extensions, TCP and UDP. What it does
//! not know is not checked.

use super::offload::{fold, sum};

/// Bits of a descriptor's status, as of the 82574: not checked; UDP, TCP or UDP, and IP were
/// checked.
pub(crate) const IXSM: u32 = 1 << 2;
pub(crate) const UDPCS: u32 = 1 << 4;
pub(crate) const TCPCS: u32 = 1 << 5;
pub(crate) const IPCS: u32 = 1 << 6;
/// Bits of its errors, as they are behind the status: TCP or UDP, and IP are wrong.
pub(crate) const TCPE: u32 = 1 << 29;
pub(crate) const IPE: u32 = 1 << 30;

const TCP: u8 = 6;
const UDP: u8 = 17;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inspection {
    /// Bits of status and errors.
    pub status: u32,
    /// Bytes of headers up to the payload of TCP or UDP; 0 if there are none.
    pub headers: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checks {
    pub network: bool,
    pub transport: bool,
}

pub(crate) fn inspect(frame: &[u8], checks: Checks) -> Inspection {
    let mut found = Inspection::default();
    look(frame, checks, &mut found);
    if found.status & (IPCS | TCPCS) == 0 {
        found.status |= IXSM;
    }
    found
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// None where the frame ends, or something that is not known begins.
fn look(frame: &[u8], checks: Checks, found: &mut Inspection) -> Option<()> {
    let tag = if half(frame, 12)? == 0x8100 { 4 } else { 0 };
    let at = 14 + tag;
    let packet = frame.get(at..)?;
    let (header, protocol, addresses, payload) = match half(frame, 12 + tag)? {
        0x0800 => ipv4(packet, checks, found)?,
        0x86DD => ipv6(packet)?,
        _ => return None,
    };
    let (shortest, check) = match protocol {
        TCP => (usize::from(payload.get(12)? >> 4).max(5) * 4, Some(TCPCS)),
        // A checksum of 0 is none.
        UDP => (8, (half(payload, 6)? != 0).then_some(TCPCS | UDPCS)),
        _ => return None,
    };
    if payload.len() < shortest {
        return None;
    }
    found.headers = at + header + shortest;
    let check = check.filter(|_| checks.transport)?;
    found.status |= check;
    let pseudo = u64::from(sum(addresses)) + u64::from(protocol) + payload.len() as u64;
    if fold(pseudo + u64::from(sum(payload))) != 0xFFFF {
        found.status |= TCPE;
    }
    Some(())
}

/// Bytes of the header, the protocol behind it, both addresses, and its payload.
type Ip<'a> = (usize, u8, &'a [u8], &'a [u8]);

fn ipv4<'a>(packet: &'a [u8], checks: Checks, found: &mut Inspection) -> Option<Ip<'a>> {
    let length = usize::from(packet.first()? & 15) * 4;
    if packet[0] >> 4 != 4 || length < 20 {
        return None;
    }
    let (header, payload) = packet.get(..half(packet, 2)?.into())?.split_at_checked(length)?;
    if checks.network {
        found.status |= IPCS | if sum(header) == 0xFFFF { 0 } else { IPE };
    }
    // What a fragment is a part of cannot be checked.
    let is_whole = half(header, 6)? & 0x3FFF == 0;
    is_whole.then_some((length, header[9], &header[12..20], payload))
}

fn ipv6(packet: &[u8]) -> Option<Ip<'_>> {
    let (header, payload) = packet.split_at_checked(40)?;
    let payload = payload.get(..half(header, 4)?.into())?;
    (header[0] >> 4 == 6).then_some((40, header[6], &header[8..], payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Checks = Checks { network: true, transport: true };

    /// A frame whose checksums are right: IPv4 of 20 bytes or IPv6, then `payload`.
    fn frame(tag: bool, is_ipv4: bool, protocol: u8, checksum_at: usize, size: usize) -> Vec<u8> {
        let mut payload: Vec<u8> = (0..size).map(|at| at as u8).collect();
        if protocol == TCP {
            payload[12] = 0x50;
        }
        payload[checksum_at..checksum_at + 2].fill(0);
        let (mut ip, addresses) = if is_ipv4 {
            let mut ip = vec![0x45, 0, 0, (20 + size) as u8, 0, 1, 0x40, 0, 64, protocol, 0, 0];
            ip.extend([10, 9, 0, 1, 10, 9, 0, 2]);
            let checksum = !sum(&ip);
            ip[10..12].copy_from_slice(&checksum.to_be_bytes());
            (ip, 12..20)
        } else {
            let mut ip = vec![0x60, 0, 0, 0, 0, size as u8, protocol, 64];
            ip.extend((0..32).map(|at| at * 7));
            (ip, 8..40)
        };
        let pseudo = u64::from(sum(&ip[addresses])) + u64::from(protocol) + size as u64;
        let checksum = !fold(pseudo + u64::from(sum(&payload)));
        payload[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        let mut frame = vec![2; 12];
        if tag {
            frame.extend([0x81, 0, 0, 5]);
        }
        frame.extend(if is_ipv4 { [8, 0] } else { [0x86, 0xDD] });
        frame.append(&mut ip);
        frame.append(&mut payload);
        // Padding is not summed up.
        frame.extend([9; 7]);
        frame
    }

    #[test]
    fn right_checksums_are_right_and_one_bit_makes_them_wrong() {
        for (tag, is_ipv4, protocol, at, headers) in [
            (false, true, TCP, 16, 54),
            (false, false, TCP, 16, 74),
            (true, true, UDP, 6, 46),
            (true, false, UDP, 6, 66),
        ] {
            let good = frame(tag, is_ipv4, protocol, at, 41);
            let mut expected = TCPCS | if protocol == UDP { UDPCS } else { 0 };
            expected |= if is_ipv4 { IPCS } else { 0 };
            assert_eq!(inspect(&good, BOTH), Inspection { status: expected, headers });
            let mut bad = good.clone();
            bad[headers] ^= 4;
            assert_eq!(inspect(&bad, BOTH).status, expected | TCPE);
            assert_eq!(inspect(&good, Checks::default()), Inspection { status: IXSM, headers });
        }
        let mut bad = frame(false, true, UDP, 6, 20);
        bad[14 + 8] ^= 1;
        assert_eq!(inspect(&bad, BOTH).status, IPCS | IPE | TCPCS | UDPCS);
    }

    #[test]
    fn what_cannot_be_checked_is_not() {
        let whole = frame(false, true, UDP, 6, 20);
        let mut none = whole.clone();
        none[14 + 20 + 6..][..2].fill(0);
        assert_eq!(inspect(&none, BOTH), Inspection { status: IPCS, headers: 42 });
        let mut fragment = whole.clone();
        fragment[14 + 6] = 0x20;
        assert_eq!(inspect(&fragment, BOTH).headers, 0);
        assert_eq!(inspect(&[0xFF; 60], BOTH), Inspection { status: IXSM, headers: 0 });
        for length in 0..whole.len() - 7 {
            assert_eq!(inspect(&whole[..length], BOTH).headers, 0, "{length} bytes");
        }
    }
}

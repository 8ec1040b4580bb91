//! What the function finds out about a received packet: its type, and whether its checksums are
//! right.

use nic::headers::{Addresses, Headers, TCP, UDP};

use crate::inspect::{Checks, IPCS, IPE, Inspection, TCPCS, TCPE, inspect as sums};

/// Types of packets (`libie_rx_pt_lut`); those of IPv6 are further on.
const LINK: u8 = 1;
const FRAGMENT4: u8 = 22;
const NETWORK4: u8 = 23;
const UDP4: u8 = 24;
const TCP4: u8 = 26;
const SCTP4: u8 = 27;
const ICMP4: u8 = 28;
const TO_IPV6: u8 = 66;

const SCTP: u8 = 132;
const ICMP: u8 = 1;
const ICMP6: u8 = 58;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// The type, as the descriptor has it.
    pub kind: u8,
    /// Checksums of IP and of TCP or UDP were looked at.
    pub checked: bool,
    /// That of IP is wrong.
    pub bad_network: bool,
    /// That of TCP or UDP is wrong.
    pub bad_transport: bool,
}

pub(super) fn inspect(frame: &[u8], headers: Option<&Headers>) -> Findings {
    let link_only = Findings { kind: LINK, ..Findings::default() };
    let Some(headers) = headers else { return link_only };
    let shift = match headers.addresses() {
        Addresses::None => return link_only,
        Addresses::V4(_) => 0,
        Addresses::V6(_) => TO_IPV6,
    };
    let kind = match headers.protocol() {
        _ if headers.is_fragment() => FRAGMENT4,
        Some(TCP) => TCP4,
        Some(UDP) => UDP4,
        Some(SCTP) => SCTP4,
        Some(ICMP | ICMP6) => ICMP4,
        _ => NETWORK4,
    };
    let Inspection { status, .. } = sums(frame, Checks { network: true, transport: true });
    let has_transport = matches!(kind, TCP4 | UDP4);
    // Behind headers that are not known, the kernel has to look by itself. A checksum of UDP that
    // is none is as good as a right one.
    let known = status & TCPCS != 0 || kind == UDP4 && status & IPCS != 0;
    let kind = if has_transport && !known { NETWORK4 } else { kind };
    Findings {
        kind: kind + shift,
        checked: has_transport && known,
        bad_network: status & IPE != 0,
        bad_transport: status & TCPE != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::{fold, sum};

    /// UDP over IPv4 with right sums.
    fn udp4() -> Vec<u8> {
        let mut frame = vec![0; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14..24].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, UDP]);
        frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        frame[34..40].copy_from_slice(&[0, 7, 0, 8, 0, 20]);
        frame[42] = 5;
        let network = !sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&network.to_be_bytes());
        let total = u64::from(sum(&frame[26..34])) + u64::from(UDP) + 20;
        let transport = !fold(total + u64::from(sum(&frame[34..54])));
        frame[40..42].copy_from_slice(&transport.to_be_bytes());
        frame
    }

    fn inspected(frame: &[u8]) -> Findings {
        inspect(frame, nic::headers::parse(frame).ok().as_ref())
    }

    #[test]
    fn sums_are_checked() {
        let right = Findings { kind: UDP4, checked: true, ..Findings::default() };
        assert_eq!(inspected(&udp4()), right);
        let mut tagged = udp4();
        tagged.splice(12..12, [0x81, 0, 0, 5]);
        assert_eq!(inspected(&tagged), right);
        let mut frame = udp4();
        frame[42] = 6;
        assert_eq!(inspected(&frame), Findings { bad_transport: true, ..right });
        frame[40..42].fill(0);
        assert_eq!(inspected(&frame), right, "there is none");
        frame[22] = 63;
        assert_eq!(inspected(&frame), Findings { bad_network: true, ..right });
    }

    #[test]
    fn packets_have_types() {
        let with = |changes: &[(usize, u8)]| {
            let mut frame = udp4();
            changes.iter().for_each(|(at, value)| frame[*at] = *value);
            inspected(&frame).kind
        };
        assert_eq!(with(&[(12, 9)]), LINK);
        assert_eq!(with(&[(23, ICMP)]), ICMP4);
        assert_eq!(with(&[(23, 50)]), NETWORK4);
        assert_eq!(with(&[(20, 0x20)]), FRAGMENT4);
        assert_eq!(with(&[(14, 0)]), LINK, "it is malformed");
        let mut frame = vec![0; 80];
        frame[12..14].copy_from_slice(&[0x86, 0xDD]);
        frame[14..21].copy_from_slice(&[0x60, 0, 0, 0, 0, 20, TCP]);
        frame[66] = 0x50;
        let found = inspected(&frame);
        assert_eq!((found.kind, found.checked, found.bad_transport), (92, true, true));
        // A header of options before it.
        frame[20] = 60;
        (frame[54], frame[55]) = (58, 0);
        assert_eq!(inspected(&frame), Findings { kind: 94, ..Findings::default() });
    }
}

use super::*;
use crate::frames::{ethernet, ipv4, ipv6, mx, tagged, tcp, tcp4, udp, udp4};
use alloc::vec;
use alloc::vec::Vec;

/// An extension header of 8 bytes that says what follows.
fn extension(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::from([next, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend(payload);
    bytes
}

/// A fragment header with the given offset-and-flags word.
fn fragment(next: u8, word: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = extension(next, payload);
    bytes[2..4].copy_from_slice(&word.to_be_bytes());
    bytes
}

fn frame6(next: u8, payload: &[u8]) -> Vec<u8> {
    ethernet(0x86dd, &ipv6(next, payload))
}

/// One valid frame, without padding, of every shape the parser knows.
fn shapes() -> Vec<Vec<u8>> {
    let segment = tcp(1000, 80, 0x18, b"hello");
    Vec::from([
        tcp4(1000, 80, 0x18, b"hello"),
        udp4(123, 124, b"ntp"),
        ethernet(0x0800, &ipv4(TCP, 0, &[1; 40], &segment)),
        tagged(0x88a8, 5, &tagged(0x8100, 3, &tcp4(1, 2, 0, b""))),
        frame6(TCP, &segment),
        frame6(
            HOP_BY_HOP,
            &extension(ROUTING, &extension(AUTHENTICATION, &extension(TCP, &segment))),
        ),
        frame6(DESTINATION_OPTIONS, &extension(UDP, &udp(5, 6, b"data"))),
        frame6(FRAGMENT, &fragment(TCP, 1, &segment)),
        mx(MX_FLAG_MARK, 7)[..17].to_vec(),
    ])
}

#[test]
fn headers_fit_a_cache_line() {
    assert!(size_of::<Result<Headers, Malformed>>() <= 64);
}

#[test]
fn tcp_over_ipv4_is_read_whole() {
    let frame = tcp4(1000, 80, 0x18, b"hello");
    let headers = parse(&frame).unwrap();
    assert_eq!((headers.length(), headers.ether_type()), (59, 0x0800));
    assert_eq!((headers.vlan_priority(), headers.dscp()), (None, Some(46)));
    assert_eq!((headers.protocol(), headers.ports()), (Some(TCP), Some((1000, 80))));
    assert_eq!((headers.mx_endpoint(), headers.mx_mark()), (None, false));
    assert_eq!((headers.tcp_psh(), headers.is_fragment()), (true, false));
    assert_eq!(*headers.addresses(), Addresses::V4([10, 0, 0, 1, 10, 0, 0, 2]));
}

#[test]
fn tcp_over_ipv6_is_read_whole() {
    let headers = parse(&frame6(TCP, &tcp(1000, 80, 0x08, b""))).unwrap();
    let mut addresses = [0; 32];
    (addresses[0], addresses[1], addresses[15]) = (0xfe, 0x80, 1);
    (addresses[16], addresses[17], addresses[31]) = (0xfe, 0x80, 2);
    assert_eq!(*headers.addresses(), Addresses::V6(addresses));
    assert_eq!((headers.ports(), headers.dscp()), (Some((1000, 80)), Some(46)));
    assert!(headers.tcp_psh() && !headers.is_fragment());
}

#[test]
fn outermost_priority_and_innermost_type_count() {
    for tpid in [0x8100, 0x88a8, 0x9100] {
        let frame = tagged(tpid, 5, &tagged(0x8100, 3, &tcp4(1, 2, 0, b"")));
        let headers = parse(&frame).unwrap();
        assert_eq!((headers.vlan_priority(), headers.ether_type()), (Some(5), 0x0800));
        assert_eq!(headers.ports(), Some((1, 2)));
    }
}

#[test]
fn eight_tags_are_read_and_nine_are_not() {
    let mut frame = tcp4(1, 2, 0, b"");
    for _ in 0..MAX_STACK {
        frame = tagged(0x8100, 1, &frame);
    }
    assert_eq!(parse(&frame).unwrap().ports(), Some((1, 2)));
    assert_eq!(parse(&tagged(0x8100, 1, &frame)), Err(Malformed::VlanStack));
}

#[test]
fn extensions_of_every_kind_are_skipped() {
    let mut authentication = Vec::from([UDP, 4]);
    authentication.resize(24, 0);
    authentication.extend(udp(5, 6, b""));
    let options = extension(ROUTING, &extension(AUTHENTICATION, &authentication));
    let headers = parse(&frame6(HOP_BY_HOP, &extension(DESTINATION_OPTIONS, &options))).unwrap();
    assert_eq!((headers.protocol(), headers.ports()), (Some(UDP), Some((5, 6))));
}

#[test]
fn eight_extensions_are_read_and_nine_are_not() {
    let chain = |count| {
        let mut payload = extension(UDP, &udp(5, 6, b""));
        for _ in 1..count {
            payload = extension(DESTINATION_OPTIONS, &payload);
        }
        parse(&frame6(DESTINATION_OPTIONS, &payload))
    };
    assert_eq!(chain(MAX_STACK).unwrap().ports(), Some((5, 6)));
    assert_eq!(chain(MAX_STACK + 1), Err(Malformed::Ipv6ExtensionStack));
}

#[test]
fn only_the_first_fragment_has_ports() {
    let segment = tcp(1000, 80, 0x08, b"");
    let v4 = |word| parse(&ethernet(0x0800, &ipv4(TCP, word, &[], &segment))).unwrap();
    let v6 = |word| parse(&frame6(FRAGMENT, &fragment(TCP, word, &segment))).unwrap();
    for (headers, is_fragment, has_ports) in [
        (v4(0x4000), false, true), // don't fragment
        (v4(0x2000), true, true),  // first
        (v4(0x2001), true, false), // middle
        (v4(0x0001), true, false), // last
        (v6(0x0000), false, true), // atomic
        (v6(0x0001), true, true),
        (v6(0x0009), true, false),
        (v6(0x0008), true, false),
    ] {
        assert_eq!(headers.is_fragment(), is_fragment, "{headers:?}");
        assert_eq!(headers.ports().is_some(), has_ports, "{headers:?}");
        assert_eq!(headers.tcp_psh(), has_ports, "{headers:?}");
        assert_eq!(headers.protocol(), Some(TCP), "{headers:?}");
    }
}

#[test]
fn an_atomic_fragment_inside_a_fragment_does_not_make_it_whole() {
    let inner = fragment(TCP, 0, &tcp(1000, 80, 0, b""));
    assert!(parse(&frame6(FRAGMENT, &fragment(FRAGMENT, 1, &inner))).unwrap().is_fragment());
}

#[test]
fn a_later_fragment_may_hold_anything() {
    let noise = fragment(HOP_BY_HOP, 0x0008, &[0xff; 3]);
    assert_eq!(parse(&frame6(FRAGMENT, &noise)).unwrap().protocol(), Some(HOP_BY_HOP));
    assert!(parse(&ethernet(0x0800, &ipv4(TCP, 1, &[], b"x"))).is_ok());
}

#[test]
fn mx_frame_has_mark_and_endpoint() {
    let marked = parse(&mx(MX_FLAG_MARK, 7)).unwrap();
    assert_eq!((marked.mx_mark(), marked.mx_endpoint()), (true, Some(7)));
    let unmarked = parse(&mx(!MX_FLAG_MARK, 200)).unwrap();
    assert_eq!((unmarked.mx_mark(), unmarked.mx_endpoint()), (false, Some(200)));
    assert_eq!(parse(&mx(0, 0)[..16]), Err(Malformed::MxTruncated));
}

#[test]
fn unknown_types_are_opaque() {
    for ether_type in [0x0806, 0x0100, 0x05ff] {
        let headers = parse(&ethernet(ether_type, &[0xff; 46])).unwrap();
        assert_eq!((headers.ether_type(), headers.length()), (ether_type, 60));
        assert_eq!((headers.protocol(), *headers.addresses()), (None, Addresses::None));
    }
    let esp = parse(&frame6(50, &[0xff; 30])).unwrap();
    assert_eq!((esp.protocol(), esp.ports()), (Some(50), None));
}

#[test]
fn each_lie_has_its_reason() {
    let patched = |frame: &[u8], at: usize, value: u8| {
        let mut frame = frame.to_vec();
        frame[at] = value;
        parse(&frame)
    };
    let v4 = tcp4(1, 2, 0, b"");
    let v6 = frame6(TCP, &tcp(1, 2, 0, b""));
    for (result, reason) in [
        (parse(&[]), Malformed::EthernetTruncated),
        (parse(&v4[..13]), Malformed::EthernetTruncated),
        (parse(&tagged(0x8100, 0, &v4)[..17]), Malformed::VlanTruncated),
        (parse(&v4[..33]), Malformed::Ipv4Truncated),
        (patched(&v4, 14, 0x65), Malformed::Ipv4Version),
        (patched(&v4, 14, 0x44), Malformed::Ipv4HeaderLength),
        (patched(&v4, 17, 41), Malformed::Ipv4TotalLength),
        (patched(&v4, 17, 19), Malformed::Ipv4TotalLength),
        (patched(&v4, 17, 39), Malformed::TcpTruncated),
        (patched(&v4, 46, 0x40), Malformed::TcpTruncated),
        (patched(&v4, 46, 0x60), Malformed::TcpTruncated),
        (patched(&udp4(1, 2, b""), 17, 27), Malformed::UdpTruncated),
        (parse(&v6[..53]), Malformed::Ipv6Truncated),
        (patched(&v6, 14, 0x40), Malformed::Ipv6Version),
        (patched(&v6, 19, 21), Malformed::Ipv6PayloadLength),
        (parse(&frame6(ROUTING, &[UDP; 7])), Malformed::Ipv6ExtensionTruncated),
        (parse(&frame6(ROUTING, &[1; 15])), Malformed::Ipv6ExtensionTruncated),
    ] {
        assert_eq!(result, Err(reason));
    }
}

#[test]
fn no_prefix_of_a_frame_is_mistaken_for_it() {
    for frame in shapes() {
        assert!(parse(&frame).is_ok(), "{frame:02x?}");
        for length in 0..frame.len() {
            assert!(parse(&frame[..length]).is_err(), "{length} bytes of {frame:02x?}");
        }
    }
}

#[test]
fn length_stops_at_the_largest_number() {
    for (bytes, length) in [(65_534, 65_534), (65_535, 65_535), (70_000, 65_535)] {
        let frame = ethernet(0x0806, &vec![0; bytes - ETHERNET_LENGTH]);
        assert_eq!(parse(&frame).unwrap().length(), length);
    }
}

#[test]
fn padding_changes_nothing_but_the_length() {
    for mut frame in shapes() {
        let mut expected = parse(&frame).unwrap();
        expected.values[Value::Length as usize] += 46;
        frame.resize(frame.len() + 46, 0xff);
        assert_eq!(parse(&frame), Ok(expected));
    }
}

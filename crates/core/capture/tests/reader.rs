//! Captures of every kind, whole and broken.

mod support;

use capture::{CaptureFormat, CapturedPacket, ReadError, Reader, format_of};
use support::read;
use support::written::{Order, block, enhanced, interface, pcap, section, udp};

const STAMP: u64 = 1_700_000_000;

#[test]
fn every_format_says_the_same() {
    let frames: Vec<Vec<u8>> = (0..5).map(|n| udp(1, 2, 9, 60 + n)).collect();
    let at = |n: u64, per_second: u64| STAMP * per_second + n * per_second / 1_000_000;
    let mut captures = Vec::new();
    for order in [Order::Little, Order::Big] {
        for (nanos, per_second) in [(false, 1_000_000), (true, 1_000_000_000)] {
            let packets: Vec<_> = (0..)
                .zip(&frames)
                .map(|(n, frame)| (at(n, per_second), &frame[..], frame.len() as u32))
                .collect();
            captures.push(pcap(order, nanos, 1, &packets));
            let mut pcapng = section(order);
            pcapng.extend(interface(order, 1, "eth0", if nanos { 9 } else { 6 }));
            packets.iter().for_each(|it| pcapng.extend(enhanced(order, 0, *it, (1, "hello"))));
            captures.push(pcapng);
        }
    }
    let expected: Vec<_> =
        (0..5).map(|n| (STAMP * 1_000_000_000 + n * 1_000, 60 + n as u32, 0, true)).collect();
    for capture in &captures {
        for piece in [1, 7, 64, capture.len()] {
            let (packets, reader) = read(capture, piece);
            assert_eq!(packets, expected, "{:?} in pieces of {piece}", reader.format());
            assert_eq!(reader.counts().rest, 0);
        }
    }
}

#[test]
fn what_is_cut_or_out_of_order_is_counted() {
    let frame = udp(1, 2, 9, 1_000);
    let packets = [(5, &frame[..60], 1_000), (9, &frame[..], 1_000), (7, &frame[..20], 1_000)];
    let capture = pcap(Order::Little, true, 1, &packets);
    let (packets, reader) = read(&capture, 100);
    let lengths: Vec<_> = packets.iter().map(|packet| (packet.0, packet.1)).collect();
    assert_eq!(lengths, [(5, 1_000), (9, 1_000), (9, 1_000)]);
    let counts = reader.counts();
    assert_eq!((counts.cut, counts.malformed, counts.backwards), (2, 1, 1));
    let (_, reader) = read(&capture[..capture.len() - 1], 100);
    assert_eq!((reader.counts().packets, reader.counts().rest), (2, 16 + 19));
}

#[test]
fn damaged_blocks_are_left_out_and_absurd_lengths_end_it() {
    let order = Order::Little;
    let frame = udp(1, 2, 9, 60);
    let packet = |units| enhanced(order, 0, (units, &frame, 60), (2, ""));
    let mut capture = section(order);
    capture.extend(enhanced(order, 3, (1, &frame, 60), (0, "")));
    capture.extend(interface(order, 1, "eth0", 9));
    capture.extend(interface(order, 105, "wlan0", 9));
    capture.extend(packet(1));
    // A packet that claims more bytes than its block has.
    let mut wrong = packet(2);
    wrong[20..24].copy_from_slice(&10_000_u32.to_le_bytes());
    capture.extend(wrong);
    capture.extend(enhanced(order, 1, (3, &frame, 60), (0, "")));
    capture.extend(block(order, 3, &[60, 0, 0, 0]));
    capture.extend(block(order, 0x0bad, &[1; 40]));
    capture.extend(packet(4));
    let whole = capture.len();
    capture.extend([6, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0]);
    capture.extend(packet(5));
    let (packets, reader) = read(&capture, 33);
    let counts = *reader.counts();
    assert_eq!(packets.len(), 2, "{counts:?}");
    assert_eq!((counts.damaged, counts.unknown_interface, counts.unknown_link), (1, 1, 1));
    assert_eq!((counts.unstamped, counts.rest), (1, (capture.len() - whole) as u64));
    let names: Vec<_> = reader.interfaces().iter().map(|it| it.name.as_deref()).collect();
    assert_eq!(names, [Some("eth0"), Some("wlan0")]);
}

#[test]
fn comments_of_our_nic_and_directions_are_read() {
    let frame = udp(1, 2, 9, 60);
    let mut capture = section(Order::Big);
    capture.extend(interface(Order::Big, 1, "b0", 9));
    let comment = "mark=no hold=75.000us interrupt=1 reason=timer queue=0";
    capture.extend(enhanced(Order::Big, 0, (9, &frame, 60), (1, comment)));
    capture.extend(enhanced(Order::Big, 0, (9, &frame, 60), (2, "transmitted")));
    let mut seen = Vec::new();
    let mut each =
        |it: &CapturedPacket| seen.push((it.direction, it.recorded.map(|it| it.hold_ns)));
    Reader::new().feed(&capture, &mut each).unwrap();
    use capture::PacketDirection::{In, Out};
    assert_eq!(seen, [(In, Some(75_000)), (Out, None)]);
}

#[test]
fn other_files_are_refused_with_what_to_do() {
    let fed = |bytes: &[u8]| {
        let mut reader = Reader::new();
        reader.feed(bytes, &mut |_| {}).and_then(|()| reader.finish()).unwrap_err()
    };
    assert_eq!(fed(b"Coalesce parameters for eth0:"), ReadError::NoCapture);
    assert_eq!(fed(&[0x1f, 0x8b, 8, 0]), ReadError::Compressed);
    assert_eq!(fed(&[0xd4, 0xc3]), ReadError::NoCapture);
    assert!(
        fed(b"").to_string().contains("tcpdump")
            && fed(b"\x1f\x8b  ").to_string().contains("gunzip")
    );
    assert_eq!(format_of(&section(Order::Big)), Some(CaptureFormat::Pcapng));
}

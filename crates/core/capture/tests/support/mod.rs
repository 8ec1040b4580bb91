//! Captures that tests write, and what fuzzers and ordinary tests do with any bytes.
#![allow(dead_code, reason = "each user takes its part")]

pub(crate) mod written;

use capture::{CapturedPacket, Owner, Reader};

/// The first byte says how long the pieces are; the rest is the capture.
///
/// Whatever it is: no panic, the same packets in pieces as in one, stamps that never go back, no
/// packet longer than is believed, and every packet is counted.
pub(crate) fn replay(bytes: &[u8]) {
    let Some((piece, bytes)) = bytes.split_first() else { return };
    let (whole, reader) = read(bytes, bytes.len().max(1));
    let (pieces, in_pieces) = read(bytes, usize::from(*piece) % 61 + 1);
    assert_eq!((&whole, reader.counts()), (&pieces, in_pieces.counts()));
    assert_eq!(reader.interfaces(), in_pieces.interfaces());
    assert_eq!(reader.counts().packets, whole.len() as u64);
    assert!(whole.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    assert!(whole.iter().all(|packet| packet.1 <= 1 << 18));
}

/// Stamp, length, interface, and whether it has arrived, of each packet, read in pieces.
pub(crate) fn read(bytes: &[u8], piece: usize) -> (Vec<(u64, u32, usize, bool)>, Reader) {
    let (mut reader, mut owner, mut packets) = (Reader::new(), Owner::new(None), Vec::new());
    let mut each = |packet: &CapturedPacket| {
        owner.look(packet);
        packets.push((packet.at_ns, packet.length, packet.interface, owner.received(packet)));
    };
    let fed = bytes.chunks(piece).try_for_each(|piece| reader.feed(piece, &mut each));
    let ended = fed.and_then(|()| reader.finish());
    assert!(ended.is_ok_and(|()| reader.format().is_some()) || packets.is_empty());
    (packets, reader)
}

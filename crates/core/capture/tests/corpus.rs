//! What the fuzzer knows, on every `cargo test` and without a fuzzer.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
mod support;

use base::prng::Prng;
use replay::replay_corpus;
use support::written::{Order, enhanced, interface, pcap, section, udp};

#[test]
fn captures() {
    assert!(replay_corpus("captures", support::replay) > 5);
}

/// Whole captures with bytes changed, cut out and doubled.
#[test]
fn broken_captures_are_read_alike_in_pieces_and_whole() {
    let mut random = Prng::new(58);
    for round in 0..3_000 {
        let order = if round % 2 == 0 { Order::Little } else { Order::Big };
        let frames: Vec<Vec<u8>> = (0..6).map(|n| udp(1, 2, 9, 60 + 7 * n)).collect();
        let packets: Vec<_> =
            (0..).zip(&frames).map(|(n, frame)| (n, &frame[..], frame.len() as u32)).collect();
        let mut bytes = vec![round as u8];
        if round % 3 == 0 {
            bytes.extend(pcap(order, round % 4 == 0, 1, &packets));
        } else {
            bytes.extend(section(order));
            bytes.extend(interface(order, 1, "eth0", 9));
            packets.iter().for_each(|it| bytes.extend(enhanced(order, 0, *it, (1, "x"))));
        }
        for _ in 0..random.below(6) {
            let at = 1 + random.below(bytes.len() as u64 - 1) as usize;
            match random.below(3) {
                0 => bytes[at] = random.next_u64() as u8,
                1 => bytes.truncate(at.max(5)),
                _ => bytes[at] ^= 1 << random.below(8),
            }
        }
        support::replay(&bytes);
    }
}

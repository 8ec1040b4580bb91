//! Flows, and when their packets come off one wire.

use crate::random::Random;

use super::CaptureDecoy;

/// A packet off the wire: seconds, flow, bytes.
pub(super) type OffWire = (f64, u64, u32);

/// Bytes on the wire beside those of a capture.
const BESIDE: f64 = 24.0;

/// A flow, by what its sender does.
#[derive(Clone, Copy, Debug)]
struct TrafficSource {
    /// Bursts a second.
    per_second: f64,
    /// Packets of a burst, and bytes of each.
    burst: (u32, u32),
    bytes: u32,
    /// Bursts come at even distances.
    is_paced: bool,
    /// Where even ones begin, as a part of the distance.
    phase: f64,
}

/// The flows of a capture, over a wire of a rate.
#[derive(Clone, Debug)]
pub(super) struct Traffic {
    flows: Vec<TrafficSource>,
    bits_per_second: f64,
    seconds: f64,
}

impl Traffic {
    pub(super) fn draw(random: &mut Random, decoy: Option<CaptureDecoy>) -> Self {
        let bits_per_second = random.one(&[1e9, 1e9, 10e9, 25e9]);
        let mut flows = Vec::new();
        let even = |per_second, burst, bytes, phase| TrafficSource {
            per_second,
            burst,
            bytes,
            is_paced: true,
            phase,
        };
        match decoy {
            Some(CaptureDecoy::Paced) => {
                let burst = random.whole(1, 8);
                flows.push(even(random.between(500.0, 10_000.0), (burst, burst), 1_514, 0.3));
            }
            Some(CaptureDecoy::InStep) => {
                let per_second = random.between(1_000.0, 8_000.0);
                for _ in 0..2 {
                    flows.push(even(per_second, (1, 1), 200, random.share()));
                }
            }
            Some(CaptureDecoy::FullWire) => {
                let per_second = 0.98 * bits_per_second / (1_538.0 * 8.0 * 16.0);
                flows.push(even(per_second, (16, 16), 1_514, 0.0));
            }
            _ => {}
        }
        // Bulk in bursts, as segmentation makes them.
        for _ in 0..random.whole(0, 2) {
            let per_second = random.between(500.0, 6_000.0);
            let burst = (1, random.whole(2, 16));
            flows.push(TrafficSource {
                per_second,
                burst,
                bytes: 1_514,
                is_paced: false,
                phase: 0.0,
            });
        }
        // Requests of many clients.
        let load = random.between(500.0, 25_000.0);
        let clients = random.whole(2, 40);
        for _ in 0..clients {
            let (bytes, per_second) = (random.whole(66, 300), load / f64::from(clients));
            flows.push(TrafficSource {
                per_second,
                burst: (1, 2),
                bytes,
                is_paced: false,
                phase: 0.0,
            });
        }
        // NTP and the like.
        for _ in 0..random.whole(0, 4) {
            flows.push(even(random.between(1.0, 50.0), (1, 1), 90, random.share()));
        }
        Self { flows, bits_per_second, seconds: random.between(0.5, 3.0) }
    }

    /// All packets, in the order of the wire.
    pub(super) fn arrivals(&self, random: &mut Random) -> Vec<OffWire> {
        let mut sent: Vec<OffWire> = Vec::new();
        for (number, flow) in (1..).zip(&self.flows) {
            let mut at = flow.phase / flow.per_second;
            while at < self.seconds {
                let count = random.whole(flow.burst.0, flow.burst.1);
                sent.extend((0..count).map(|n| (at + f64::from(n) * 1e-9, number, flow.bytes)));
                at += match flow.is_paced {
                    true => 1.0 / flow.per_second,
                    false => random.exponential(1.0 / flow.per_second),
                };
            }
        }
        sent.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = 0.0_f64;
        for packet in &mut sent {
            let wire = (f64::from(packet.2).max(60.0) + BESIDE) * 8.0 / self.bits_per_second;
            free = free.max(packet.0) + wire;
            packet.0 = free;
        }
        sent
    }
}

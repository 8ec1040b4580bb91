//! A switch with a cable to each host.
//!
//! ```text
//! host ── up: rate, faults ──▶ switch: cut? damaged? late? ── down: rate, queue, faults ──▶ host
//! ```
//!
//! The cables are [`network::link::Link`]s: a frame occupies the wire for as long as its bits
//! take, may be lost, doubled or overtaken, and is dropped at once if the queue of the port is
//! full. All the latency is on the way up, so that what a cable down holds is the queue of the
//! switch port.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use base::prng::Prng;
use base::time::{Duration, Instant};
use bytes::Bytes;
use network::link::{Link, LinkSettings};

/// Bytes of the Ethernet header before a frame of the protocol.
pub const ETHERNET: usize = 14;

/// What the network is like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wires {
    /// Megabits a second of each cable; 0 is no limit.
    pub rate_mbit: u32,
    /// From one host to another, beyond the time on the wires.
    pub latency: Duration,
    /// Frames that a port of the switch keeps for its host.
    pub queue: usize,
    /// Faults on the way, each in a million frames: half of them before the switch.
    pub loss_ppm: u32,
    /// Frames that come twice.
    pub duplicate_ppm: u32,
    /// Frames that are overtaken.
    pub reorder_ppm: u32,
    /// How late those are.
    pub reorder_delay: Duration,
    /// Frames that are damaged.
    pub damage_ppm: u32,
    /// Damaged frames arrive all the same: no FCS finds them.
    pub hostile: bool,
    /// Each frame is up to so late, at random; it may overtake others.
    pub jitter: Duration,
}

/// The switch and its cables.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) wires: Wires,
    pub(crate) up: Vec<Link<Bytes>>,
    pub(crate) down: Vec<Link<Bytes>>,
    /// Pairs between which nothing passes.
    cut: BTreeSet<(usize, usize)>,
    random: Prng,
    /// Frames carry checksums, so damage may arrive.
    pub(crate) checksums: bool,
}

/// Frames that a cable up holds: what is sent and what travels.
const UP: usize = 1 << 14;

impl Network {
    pub(crate) fn new(wires: Wires, hosts: usize, random: &mut Prng) -> Self {
        let mut links = |latency, capacity| -> Vec<_> {
            let link = |_| {
                let settings = settings(&wires, latency, random.next_u64());
                Link::new(settings, capacity)
            };
            (0..hosts).map(link).collect()
        };
        let up = links(wires.latency, UP);
        let down = links(Duration::ZERO, wires.queue);
        let random = Prng::new(random.next_u64());
        Self { wires, up, down, cut: BTreeSet::new(), random, checksums: false }
    }

    pub(crate) fn heal(&mut self, now: Instant) {
        self.cut.clear();
        let (rate_mbit, latency) = (self.wires.rate_mbit, self.wires.latency);
        let queue = self.wires.queue;
        self.wires = Wires { rate_mbit, latency, queue, ..Wires::default() };
        let wires = self.wires;
        for (links, latency, capacity) in
            [(&mut self.up, latency, UP), (&mut self.down, Duration::ZERO, queue)]
        {
            for link in links {
                let mut healed = Link::new(settings(&wires, latency, 0), capacity);
                // What is under way arrives, at once.
                while let Some(at) = link.next_arrival() {
                    if let Some((_, frame)) = link.receive(at) {
                        let _ = healed.send(now, frame);
                    }
                }
                *link = healed;
            }
        }
    }

    /// Nothing passes between these two from now on, or everything does again.
    pub(crate) fn cut(&mut self, one: usize, other: usize, is_cut: bool) {
        for pair in [(one, other), (other, one)] {
            if is_cut {
                self.cut.insert(pair);
            } else {
                self.cut.remove(&pair);
            }
        }
    }

    /// What becomes of a frame in the switch: the port that it leaves by, and how late.
    pub(crate) fn forward(
        &mut self,
        from: usize,
        frame: Bytes,
    ) -> Option<(usize, Duration, Bytes)> {
        let to = usize::from(u16::from_be_bytes([*frame.get(4)?, *frame.get(5)?]));
        if to >= self.down.len() || self.cut.contains(&(from, to)) {
            return None;
        }
        let late = match self.wires.jitter.as_nanos() {
            0 => Duration::ZERO,
            most => Duration::from_nanos(self.random.below(most)),
        };
        if self.wires.damage_ppm == 0 || !self.random.chance(self.wires.damage_ppm) {
            return Some((to, late, frame));
        }
        if !self.wires.hostile && !self.checksums {
            return None;
        }
        let mut damaged = frame.to_vec();
        for _ in 0..=self.random.below(3) {
            let bits = (damaged.len() - ETHERNET) as u64 * 8;
            let bit = self.random.below(bits) as usize;
            damaged[ETHERNET + bit / 8] ^= 1 << (bit % 8);
        }
        Some((to, late, damaged.into()))
    }
}

fn settings(wires: &Wires, latency: Duration, seed: u64) -> LinkSettings {
    LinkSettings {
        rate_mbit: Some(wires.rate_mbit),
        latency,
        loss_ppm: wires.loss_ppm / 2,
        duplicate_ppm: wires.duplicate_ppm / 2,
        reorder_ppm: wires.reorder_ppm / 2,
        reorder_delay: wires.reorder_delay,
        seed,
    }
}

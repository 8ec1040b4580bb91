//! The time behind a clump in which no packet is seen, and how many ought to be.

use super::{Clump, MAX_FLOWS, TOGETHER_NS};

/// Bytes above which a frame takes long on a wire.
pub(super) const SHORT: u32 = 256;
/// The part of a zone that counts: its end is where packets are seen again.
const PART: f64 = 0.9;

/// How many packets are in zones, and how many ought to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visits {
    pub(super) expected: f64,
    pub(super) seen: u64,
}

impl Visits {
    /// Of zones of `length_ns` behind each clump, if flows were independent.
    ///
    /// A flow visits zones behind clumps that it has no part in: what it does behind its own
    /// packets is its own affair. Its packets are spread over the time that is left to it, and
    /// each of its clumps is one visit, however many packets come at once.
    pub(super) fn of(clumps: &[Clump], length_ns: f64) -> Self {
        let end = (PART * length_ns) as u64;
        let (mut own, mut foreign) = ([0_u64; MAX_FLOWS + 2], [0_f64; MAX_FLOWS + 2]);
        let (mut all, mut whole, mut seen) = (0.0, 0.0, 0);
        for pair in clumps.windows(2) {
            let distance = pair[1].begin.saturating_sub(pair[0].end);
            let zone = distance.min(end).saturating_sub(TOGETHER_NS) as f64;
            all += zone;
            whole += pair[1].begin.saturating_sub(pair[0].begin) as f64;
            for flow in pair[0].flows.into_iter().filter(|flow| *flow > 0) {
                own[usize::from(flow)] += 1;
                foreign[usize::from(flow)] += zone;
            }
            let is_stranger = pair[1].flows.iter().any(|flow| *flow > 0 && !pair[0].has(*flow));
            seen += u64::from(distance < end && is_stranger);
        }
        let expected = own.iter().zip(&foreign).map(|(count, own_zones)| {
            *count as f64 * (all - own_zones).max(0.0) / (whole - own_zones).max(1.0)
        });
        Self { expected: expected.sum(), seen }
    }
}

/// Whether the distances of clumps are those of a wire that was full: hardly a clump has two long
/// frames, and bytes come at one rate.
pub(super) fn is_full_wire(clumps: &[Clump], edge_ns: f64) -> bool {
    let dense = clumps
        .windows(2)
        .filter(|pair| (pair[1].begin.saturating_sub(pair[0].begin) as f64) < 1.5 * edge_ns);
    let (mut count, mut several, mut rates) = (0.0, 0.0, Vec::new());
    for pair in dense {
        count += 1.0;
        several += f64::from(u8::from(pair[0].long > 1 && pair[0].packets > 1));
        let wire = pair[0].bytes + 24 * u64::from(pair[0].packets);
        rates.push(wire as f64 / pair[1].begin.saturating_sub(pair[0].begin).max(1) as f64);
    }
    rates.sort_unstable_by(f64::total_cmp);
    let Some((low, high)) = rates.get(rates.len() / 10).zip(rates.get(rates.len() * 9 / 10)) else {
        return false;
    };
    several < 0.1 * count && *high < 1.5 * low
}

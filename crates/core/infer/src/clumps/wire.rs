//! Stamps that follow the wire: each packet is behind the one before by the time that the wire
//! needs for it, often by no more, and never by less.

/// Rates of Ethernet in Mbit/s.
const RATES: [u64; 10] = [10, 100, 1_000, 2_500, 5_000, 10_000, 25_000, 40_000, 50_000, 100_000];
/// Bytes on the wire beside those of a capture (FCS, preamble, gap), and the shortest frame.
const BESIDE: u64 = 24;
const SHORTEST: u64 = 60;
/// By how much a stamp may be wrong, in nanoseconds; hardware counts in steps of up to 8.
const STEP_NS: u64 = 10;
/// Pairs that have to be at the distance of the wire, at least, and as a part of all.
const FEWEST: u64 = 50;
const PART: u64 = 50;
/// By how many times more pairs have to be there than a little further apart: what a processor
/// needs for a packet varies.
const SHARP: u64 = 5;
/// Of so many pairs one may be too close: stamps are not always in the order of the wire.
const RARE: u64 = 500;

/// Distances of pairs, held against each rate.
#[derive(Clone, Debug, Default)]
pub(super) struct WireSpacing {
    last: Option<u64>,
    pairs: u64,
    at: [u64; RATES.len()],
    /// Pairs that are further apart than that by up to as much as a stamp may be wrong, twice.
    beside: [u64; RATES.len()],
    too_close: [u64; RATES.len()],
}

impl WireSpacing {
    pub(super) fn add(&mut self, at_ns: u64, bytes: u32) {
        let Some(last) = self.last.replace(at_ns) else { return };
        let distance = at_ns.saturating_sub(last);
        let bits = (u64::from(bytes).max(SHORTEST) + BESIDE) * 8;
        self.pairs += 1;
        for (number, rate) in RATES.iter().enumerate() {
            let wire = bits * 1_000 / rate;
            let slack = STEP_NS + wire / 50;
            // No wire brings two frames at once.
            self.at[number] += u64::from(distance > 0 && distance.abs_diff(wire) <= slack);
            let is_beside = distance > wire + slack && distance <= wire + 3 * slack;
            self.beside[number] += u64::from(is_beside);
            self.too_close[number] += u64::from(distance + slack < wire);
        }
    }

    /// The rate in Mbit/s that they follow, if they do.
    pub(super) fn rate(&self) -> Option<u64> {
        let follows = |number: &usize| {
            self.at[*number] >= FEWEST.max(self.pairs / PART)
                && self.at[*number] >= SHARP * self.beside[*number]
                && self.too_close[*number] * RARE <= self.pairs
        };
        (0..RATES.len()).find(follows).map(|number| RATES[number])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_at_the_distance_of_the_wire_betray_its_rate() {
        let mut spacing = WireSpacing::default();
        let mut at = 0;
        for number in 0..1_000 {
            let bytes = if number % 3 == 0 { 60 } else { 1_514 };
            at += (bytes + 24) * 8 + if number % 5 == 0 { 40_000 } else { 0 };
            spacing.add(at, bytes as u32);
        }
        assert_eq!(spacing.rate(), Some(1_000));
        // In clumps, between whose packets a processor takes its time.
        let mut clumped = WireSpacing::default();
        for number in 0..1_000 {
            clumped.add(number / 8 * 100_000 + number % 8 * 300 + number * 37 % 160, 1_514);
        }
        assert_eq!(clumped.rate(), None);
        // Packets with one stamp: those of a poll whose clock stands still.
        let mut at_once = WireSpacing::default();
        (0..1_000).for_each(|number| at_once.add(number / 8 * 100_000, 66));
        assert_eq!(at_once.rate(), None);
    }
}

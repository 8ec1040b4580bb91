//! A distribution as bars: where round trips cluster, which no quantile tells.
//!
//! A throttled NIC whose two ends fall into step shows as a second cluster at two periods; a
//! free-running tick shows as a plateau. Bins are a sixteenth of an octave wide (4 to 6 %), so that
//! 125 us and 250 us are well apart.

use base::distribution::Distribution;
use schemars::JsonSchema;
use serde::Serialize;

use report::terminal::Width;

/// Bins in each octave.
const PER_OCTAVE: u32 = 16;

/// Columns of the longest bar.
const WIDTH: usize = 50;

/// Columns beside the bars.
const BESIDE: usize = 35;

/// Values from `from_us` to `to_us`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Bin {
    /// Lower bound in microseconds, included.
    pub from_us: f64,
    /// Upper bound in microseconds, excluded.
    pub to_us: f64,
    /// How many values.
    pub count: u64,
}

/// The lower bound of the bin that `nanos` falls into, and its width.
fn bin_of(nanos: u64) -> (u64, u64) {
    let octave = nanos.max(u64::from(PER_OCTAVE)).ilog2();
    let width = 1 << (octave - PER_OCTAVE.ilog2());
    (nanos / width * width, width)
}

/// The bins that hold something, ascending.
pub fn bins(distribution: &Distribution) -> Vec<Bin> {
    let mut bins: Vec<Bin> = Vec::new();
    for &[nanos, count] in distribution.buckets.iter().filter(|[nanos, _]| *nanos >= 0) {
        let (from, width) = bin_of(nanos.unsigned_abs());
        let (from_us, to_us) = (from as f64 / 1e3, (from + width) as f64 / 1e3);
        let count = count.unsigned_abs();
        match bins.last_mut() {
            Some(last) if last.from_us == from_us => last.count += count,
            _ => bins.push(Bin { from_us, to_us, count }),
        }
    }
    bins
}

/// The bins as lines of text.
pub fn bars(bins: &[Bin], width: Width) -> String {
    let longest = width.bar(BESIDE, WIDTH) as f64;
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(1) as f64;
    let line = |bin: &Bin| {
        let bar = "#".repeat((bin.count as f64 / most * longest).ceil() as usize);
        format!("{:>9.1} - {:>9.1} us {:>8} {bar}\n", bin.from_us, bin.to_us, bin.count)
    };
    bins.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_period_and_two_are_distinguished() {
        let buckets = vec![[124_900, 5], [125_100, 95], [250_100, 3]];
        let bins = bins(&Distribution { buckets, ..Distribution::default() });
        let counts: Vec<u64> = bins.iter().map(|bin| bin.count).collect();
        assert_eq!(counts, [100, 3]);
        assert!(bins[0].from_us <= 124.9 && 125.1 < bins[0].to_us);
        let bars = |columns| bars(&bins, Width::columns(columns));
        assert!(bars(100).lines().next().unwrap().ends_with(&"#".repeat(50)));
        assert!(bars(60).lines().all(|line| line.len() <= 60));
    }

    #[test]
    fn small_values_have_bins_too() {
        assert_eq!(bin_of(0), (0, 1));
        assert_eq!(bin_of(17), (17, 1));
        assert_eq!(bin_of(1_000), (992, 32));
    }
}

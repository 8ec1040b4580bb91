//! Robust statistics of small samples. Units are those of the samples.

use base::quantiles::nearest_rank;

/// Sorts; there are no NaNs in what is measured.
pub(crate) fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The quantile of sorted values by nearest rank, 0 for none at all.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    nearest_rank(sorted, (share * 1e3).round() as u32).unwrap_or_default()
}

pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    quantile(&sorted(values.into_iter().collect()), 0.5)
}

/// The narrowest interval that holds `share` of the sorted values: where it begins, and its width.
pub(crate) fn narrowest(sorted: &[f64], share: f64) -> (usize, usize, f64) {
    if sorted.len() < 2 {
        return (0, sorted.len(), 0.0);
    }
    let size = ((sorted.len() as f64 * share).ceil() as usize).clamp(2, sorted.len());
    let windows = sorted.windows(size).map(|window| window[size - 1] - window[0]).enumerate();
    let (at, width) = windows.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0));
    (at, at + size, width)
}

/// So many values are averaged by their median: the mode of fewer would be chance.
const DOZEN: usize = 12;

/// Where most values are: half-sample mode (Robertson and Cryer, "An iterative procedure for
/// estimating the mode", 1974).
pub(crate) fn mode(values: &[f64]) -> f64 {
    let sorted = sorted(values.to_vec());
    let mut rest = sorted.as_slice();
    while rest.len() > DOZEN {
        let (from, to, _) = narrowest(rest, 0.5);
        rest = &rest[from..to];
    }
    quantile(rest, 0.5)
}

/// The first of those that cost least; each is looked at once.
pub(crate) fn cheapest<T>(of: impl Iterator<Item = T>, cost: impl Fn(&T) -> f64) -> Option<T> {
    let priced = of.map(|item| (cost(&item), item));
    priced.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, item)| item)
}

/// Fewer values are closer together by so many times only if the rest are of another kind: of one
/// bell, all shares show the same deviation.
const CLOSER: f64 = 3.0;

/// A standard deviation's worth of the half of the values that lie closest together; of fewer where
/// these lie so much closer that the others must be strays. Shares are those of a normal
/// distribution.
pub(crate) fn spread(values: &[f64]) -> f64 {
    const SHARES: [(f64, f64); 3] = [(0.5, 1.349), (0.3, 0.771), (0.15, 0.378)];
    let sorted = sorted(values.to_vec());
    let widths = SHARES.map(|(share, deviations)| narrowest(&sorted, share).2 / deviations);
    widths
        .into_iter()
        .reduce(|wide, close| if CLOSER * close < wide { close } else { wide })
        .unwrap_or(0.0)
}

/// Each point is paired with so many: their slopes' median is as good as that of all pairs, by a
/// few percent, and takes no time that grows with the square.
const PARTNERS: usize = 24;

/// The slope of `y` over `x` as the median of the slopes of pairs (Theil, 1950; Sen, 1968).
pub(crate) fn slope(points: &[(f64, f64)]) -> f64 {
    // Pairs that are far apart say most; a fixed number of them is enough.
    let half = points.len() / 2;
    let mut slopes = Vec::new();
    for (at, (x, y)) in points.iter().enumerate().take(half) {
        let step = (half / PARTNERS).max(1);
        for (x2, y2) in points[half..].iter().skip(at % step).step_by(step) {
            if x2 > x {
                slopes.push((y2 - y) / (x2 - x));
            }
        }
    }
    if slopes.is_empty() { 0.0 } else { median(slopes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_is_not_moved_by_what_lies_elsewhere() {
        let mut values: Vec<f64> = (0..60).map(|at| 100.0 + f64::from(at % 7) / 10.0).collect();
        values.extend((0..40).map(|at| f64::from(at) * 9.0));
        assert!((mode(&values) - 100.3).abs() < 0.4, "{}", mode(&values));
        assert!(spread(&values) < 1.0);
    }

    #[test]
    fn slope_is_that_of_the_line_under_outliers() {
        let line = |at: u32| (f64::from(at), f64::from(at) * 0.5 + f64::from(at % 5 / 4) * 90.0);
        let points: Vec<_> = (0..100).map(line).collect();
        assert!((slope(&points) - 0.5).abs() < 0.05);
        assert_eq!(slope(&[]), 0.0);
    }
}

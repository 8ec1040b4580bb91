//! From values to pixels: linear and logarithmic axes, and the values worth a grid line.

/// Maps values to pixels along one axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    logarithmic: bool,
    low: f64,
    high: f64,
    start_px: f64,
    end_px: f64,
}

impl Scale {
    /// A linear axis; a range without extent is widened so that its value sits in the middle.
    pub(super) fn linear((low, high): (f64, f64), (start_px, end_px): (f64, f64)) -> Self {
        let (low, high) = if !low.is_finite() || !high.is_finite() {
            (0.0, 1.0)
        } else if low < high {
            (low, high)
        } else {
            let half = (low.abs() * 0.25).max(0.5);
            (low - half, low + half)
        };
        Self { logarithmic: false, low, high, start_px, end_px }
    }

    /// A logarithmic axis; falls back to a linear one when the range is not positive.
    pub(super) fn log((low, high): (f64, f64), px: (f64, f64)) -> Self {
        if !low.is_finite() || !high.is_finite() || low <= 0.0 || high < low {
            return Self::linear((low, high), px);
        }
        // It begins at a power of ten. Less than this on a page looks like noise blown up to a
        // finding.
        const MIN_RATIO: f64 = 1.5;
        let low = decade(low);
        Self {
            logarithmic: true,
            low,
            high: high.max(low * MIN_RATIO),
            start_px: px.0,
            end_px: px.1,
        }
    }

    /// The pixel of a value; values outside the range sit on its edge.
    pub(super) fn at(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.start_px + share * (self.end_px - self.start_px)
    }

    pub(super) fn is_log(&self) -> bool {
        self.logarithmic
    }

    /// Round values within the range, at most about `most` of them.
    pub(super) fn ticks(&self, most: usize) -> Vec<f64> {
        if self.logarithmic {
            log_ticks(self.low, self.high, most)
        } else {
            linear_ticks(self.low, self.high, most)
        }
    }
}

/// The power of ten at or below a positive value, where a logarithmic axis begins.
pub(super) fn decade(value: f64) -> f64 {
    let below = 10f64.powf(value.log10().floor());
    if below > 0.0 && below.is_finite() { below } else { value }
}

pub(super) fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|value| value.is_finite()).fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

fn linear_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let raw = (high - low) / most.max(1) as f64;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|step| *step >= raw * 0.999)
        .unwrap_or(10.0 * power);
    let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    // Counting in integers keeps 0.30000000000000004 off the page.
    (0..=(last - first).max(0.0) as usize).map(|index| (first + index as f64) * step).collect()
}

fn log_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    const FINE: [f64; 9] = [1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    const USUAL: [f64; 5] = [1.0, 2.0, 3.0, 5.0, 7.0];
    const COARSE: [f64; 3] = [1.0, 2.0, 5.0];
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let within = |factors: &[f64]| -> Vec<f64> {
        let all = decades.clone().flat_map(|decade| factors.iter().map(move |f| (decade, *f)));
        let all = all.map(|(decade, factor)| factor * 10f64.powi(decade));
        all.filter(|tick| *tick >= low * 0.999_999 && *tick <= high * 1.000_001).collect()
    };
    let choices = [&FINE[..], &USUAL, &COARSE, &[1.0]].map(within);
    let Some(ticks) = choices.into_iter().find(|ticks| ticks.len() <= most) else {
        let all = within(&[1.0]);
        return all.iter().copied().step_by(all.len().div_ceil(most.max(1))).collect();
    };
    // Half a decade or less: the round numbers of a linear axis read better than two ticks.
    if ticks.len() < 3 { linear_ticks(low, high, most) } else { ticks }
}

/// A number with as many digits as a reader needs, without a suffix that stands for thousands:
/// `0.5`, `75`, `109`, `41900`.
pub(super) fn short(value: f64) -> String {
    let digits = match value.abs() {
        magnitude if magnitude >= 99.95 => 0,
        magnitude if magnitude >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// A time given in microseconds. A page has one unit for all of them, so that they compare.
pub(super) fn time(us: f64) -> String {
    format!("{} us", short(us))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(linear_ticks(0.0, 300.0, 6), [0.0, 50.0, 100.0, 150.0, 200.0, 250.0, 300.0]);
        assert_eq!(
            Scale::linear((0.1, 0.9), (0.0, 1.0)).ticks(4),
            [0.2, 0.4, 0.6000000000000001, 0.8]
        );
    }

    #[test]
    fn log_ticks_fit_the_range() {
        assert_eq!(log_ticks(80.0, 450.0, 9), [80.0, 100.0, 150.0, 200.0, 300.0, 400.0]);
        assert_eq!(log_ticks(1.0, 1e4, 5), [1.0, 10.0, 100.0, 1e3, 1e4]);
        assert!(log_ticks(1e-30, 1e30, 8).len() <= 8);
        assert!(log_ticks(110.0, 140.0, 8).len() >= 3);
    }

    #[test]
    fn ranges_without_extent_are_widened() {
        let scale = Scale::linear((5.0, 5.0), (0.0, 100.0));
        assert!((scale.at(5.0) - 50.0).abs() < 1e-9 && !scale.ticks(6).is_empty());
        let scale = Scale::log((10.0, 10.0), (0.0, 100.0));
        assert!(scale.at(10.0) == 0.0 && scale.at(15.0) == 100.0 && !scale.ticks(6).is_empty());
        let zero = Scale::log((0.0, 0.0), (0.0, 100.0));
        assert!(!zero.is_log() && zero.at(0.0) == 50.0);
        assert!(Scale::log((f64::NAN, 1.0), (0.0, 1.0)).at(0.5).is_finite());
    }

    #[test]
    fn logarithmic_axes_begin_at_a_power_of_ten() {
        for (low, first) in [(122.0, 100.0), (100.0, 100.0), (0.5, 0.1), (4_667.0, 1_000.0)] {
            let scale = Scale::log((low, 20.0 * low), (0.0, 100.0));
            assert!((scale.ticks(10)[0] / first - 1.0).abs() < 1e-9, "{low}");
            assert!(scale.at(first).abs() < 1e-9, "{low}");
        }
    }

    #[test]
    fn numbers_are_short() {
        let shown = [0.0, 0.5, 75.0, 109.4, 999.9, 2_130.0, 41_900.0, 1.5e6].map(short);
        assert_eq!(shown, ["0", "0.5", "75", "109", "1000", "2130", "41900", "1500000"]);
        assert_eq!([75.0, 1500.0, 25_000.0].map(time), ["75 us", "1500 us", "25000 us"]);
    }
}

//! Ratios of figures that were measured in the same round.
//!
//! Machines drift, so a figure is divided by one of the same round. The median of these ratios is
//! the result, and their range says how far to trust it.

use base::quantiles::median;
use schemars::JsonSchema;
use serde::Serialize;

/// The ratios of all rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Spread {
    /// Median of the ratios.
    pub median: f64,
    /// The smallest value.
    pub min: f64,
    /// The greatest of the ratios.
    pub max: f64,
}

impl Spread {
    /// Of pairs of a figure and what it is divided by, one for each round; none if nothing can be
    /// divided by.
    pub fn of(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let ratios: Vec<f64> = pairs.filter(|(_, to)| *to > 0.0).map(|(of, to)| of / to).collect();
        let median = median(ratios.iter().copied())?;
        let [min, max] = [f64::min, f64::max].map(|of| ratios.iter().copied().fold(median, of));
        Some(Self { median, min, max })
    }

    /// The cell of a table: the median, and the range if there is more than one round.
    pub fn cell(&self, repeated: bool) -> String {
        let Self { median, min, max } = self.to_owned();
        if repeated {
            format!("x{} ({}-{})", digits(median), digits(min), digits(max))
        } else {
            format!("x{}", digits(median))
        }
    }
}

/// The cell of what the others are divided by.
pub const FIRST: &str = "1";

/// What the reader must know of the ratios to the setting `first`.
pub fn legend(first: &str, repeated: bool) -> String {
    if repeated {
        format!("Ratios to {first}: median of those within rounds (least-greatest).")
    } else {
        format!("Ratios to {first}.")
    }
}

/// Two digits behind the point, and for small ratios three.
fn digits(ratio: f64) -> String {
    if ratio < 0.0995 { format!("{ratio:.3}") } else { format!("{ratio:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_divided_within_their_round() {
        // The machine is three times as slow in the last round, and the ratio does not see it.
        let pairs = [(20.0, 10.0), (21.0, 10.0), (57.0, 30.0)];
        let spread = Spread::of(pairs.into_iter()).unwrap();
        assert_eq!(spread, Spread { median: 2.0, min: 1.9, max: 2.1 });
        assert_eq!(spread.cell(true), "x2.00 (1.90-2.10)");
        assert_eq!(spread.cell(false), "x2.00");
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        assert_eq!(Spread::of([(20.0, 0.0)].into_iter()), None);
        let spread = Spread::of([(20.0, 0.0), (1.0, 4.0)].into_iter()).unwrap();
        assert_eq!(spread.cell(true), "x0.25 (0.25-0.25)");
    }

    #[test]
    fn small_ratios_keep_two_digits_that_mean_something() {
        assert_eq!(
            Spread { median: 0.0512, min: 0.0, max: 0.0996 }.cell(true),
            "x0.051 (0.000-0.10)"
        );
    }
}

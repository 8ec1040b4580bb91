//! Numbers that people write, which need not be whole ones.

use std::ops::RangeInclusive;

use base::quantity::Unit;

/// A number of a unit, in a range.
///
/// # Errors
/// If `text` is none; the message reads on from it.
pub fn read(unit: Unit, text: &str, range: RangeInclusive<f64>) -> Result<f64, String> {
    let (numerator, denominator) = unit.read(text).map_err(|why| why.to_string())?;
    let value = numerator as f64 / denominator as f64;
    if range.contains(&value) {
        return Ok(value);
    }
    Err(format!("is outside {} to {} {}", range.start(), range.end(), unit.plural()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_read_and_ranges_are_kept() {
        assert_eq!(read(Unit::Seconds, "0.3", 0.0..=1.0), Ok(0.3));
        assert_eq!(read(Unit::Cores, "30%", 0.0..=1.0), Ok(0.3));
        let why = read(Unit::Seconds, "2m", 0.01..=60.0).unwrap_err();
        assert_eq!(why, "is outside 0.01 to 60 seconds");
        let why = read(Unit::Seconds, "nan", 0.0..=60.0).unwrap_err();
        assert_eq!(why, "is not a time such as 2s, 300ms or 5m (alone: seconds)");
    }
}

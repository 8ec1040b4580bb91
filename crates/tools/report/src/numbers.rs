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

/// A number with so many digits behind the point. What rounds to nothing has no sign.
pub fn rounded(value: f64, digits: usize) -> String {
    without_sign_of_nothing(format!("{value:.digits$}"))
}

/// The same with its sign, plus included.
pub fn signed(value: f64, digits: usize) -> String {
    without_sign_of_nothing(format!("{value:+.digits$}"))
}

fn without_sign_of_nothing(text: String) -> String {
    let is_nothing = !text.contains(|c: char| c.is_alphabetic() || ('1'..='9').contains(&c));
    if is_nothing { text.trim_start_matches(['-', '+']).to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_no_sign() {
        let texts =
            [0.0, -0.0, -0.004, 0.004, -0.006, 1.25].map(|it| (rounded(it, 2), signed(it, 2)));
        let texts = texts.each_ref().map(|(plain, signed)| [plain.as_str(), signed.as_str()]);
        let nothing = ["0.00", "0.00"];
        let some = [["-0.01", "-0.01"], ["1.25", "+1.25"]];
        assert_eq!(texts, [nothing, nothing, nothing, nothing, some[0], some[1]]);
        assert_eq!(signed(f64::NEG_INFINITY, 1), "-inf");
    }

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

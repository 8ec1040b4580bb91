//! Numbers with units, as people write them: `50`, `50us`, `1.5ms`, `2s`, `30%`, `2.5Gbit`, `20k`.
//!
//! Every option, setting, rule and goal reads its numbers here, so that one spelling means one
//! thing everywhere. What is read has a [`Unit`]: that of a number without one. Arithmetic is
//! exact: `0.3us` is 300 ns, and what a setting cannot hold exactly is refused, not rounded.
//!
//! ```
//! use base::quantity::Unit;
//!
//! assert_eq!(Unit::Nanos.read_whole("20us", 0..=u64::MAX), Ok(20_000_u64));
//! let (numerator, denominator) = Unit::Micros.read("0.3ms").unwrap();
//! assert_eq!(numerator, 300 * denominator);
//! let error = Unit::Micros.read_whole::<u32>("300ns", 0..=100).unwrap_err();
//! assert_eq!(error.to_string(), "is not a whole number of microseconds");
//! let error = Unit::Nanos.read("20kg").unwrap_err();
//! assert_eq!(error.to_string(), "is not a time such as 20us or 1.5ms (alone: nanoseconds)");
//! ```

use core::fmt;
use core::ops::RangeInclusive;

/// The unit of a number, and of one that is written without a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Time in nanoseconds.
    Nanos,
    /// Time in microseconds.
    Micros,
    /// Time in seconds.
    Seconds,
    /// Megabits a second, of 1,000,000 bits.
    Mbit,
    /// Times a second.
    PerSecond,
    /// Processor cores that are busy all the time.
    Cores,
    /// Percent: hundredths of a whole.
    Percent,
    /// Bytes of memory or data.
    Bytes,
    /// Frames, queues, times: numbers without a unit.
    Count,
}

/// Names of units of one dimension, each with how many of the smallest it is.
type Scale = &'static [(&'static str, u64)];

const TIME: Scale = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
];
const BITS: Scale = &[
    ("bit", 1),
    ("kbit", 1_000),
    ("Mbit", 1_000_000),
    ("M", 1_000_000),
    ("Gbit", 1_000_000_000),
    ("G", 1_000_000_000),
];
const THOUSANDS: Scale = &[("", 1), ("k", 1_000), ("M", 1_000_000)];
const CORES: Scale = &[("%", 1), ("core", 100), ("cores", 100)];
const PERCENT: Scale = &[("%", 1)];
const BYTES: Scale = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

/// Why a text is no number of some unit. It reads on from that text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// No number, or one with a unit of another dimension.
    NotOne(Unit),
    /// A fraction of what is counted in whole numbers.
    NotWhole(Unit),
    /// Less than the first number, or more than the second.
    OutOfRange(Unit, u64, u64),
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOne(Unit::Count) => f.write_str("is not a number without a unit, such as 16"),
            Self::NotOne(unit) => {
                write!(f, "is not {} (alone: {})", unit.words().0, unit.plural())
            }
            Self::NotWhole(Unit::Count) => f.write_str("is not a whole number"),
            Self::NotWhole(unit) => write!(f, "is not a whole number of {}", unit.plural()),
            Self::OutOfRange(unit, least, most) => {
                write!(f, "is outside {least} to {most}")?;
                if *unit == Unit::Count { Ok(()) } else { write!(f, " {}", unit.plural()) }
            }
        }
    }
}

impl core::error::Error for QuantityError {}

impl Unit {
    /// Its dimension, and how many of that dimension's smallest unit it is.
    const fn scale(self) -> (Scale, u64) {
        match self {
            Self::Nanos => (TIME, 1),
            Self::Micros => (TIME, 1_000),
            Self::Seconds => (TIME, 1_000_000_000),
            Self::Mbit => (BITS, 1_000_000),
            Self::PerSecond => (THOUSANDS, 1),
            Self::Cores => (CORES, 100),
            Self::Percent => (PERCENT, 1),
            Self::Bytes => (BYTES, 1),
            Self::Count => (&[], 1),
        }
    }

    const fn is_rate(self) -> bool {
        matches!(self, Self::Mbit | Self::PerSecond)
    }

    /// Examples, what a number counts, and what is written behind it.
    const fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Nanos => ("a time such as 20us or 1.5ms", "nanoseconds", "ns"),
            Self::Micros => ("a time such as 20us or 1.5ms", "microseconds", "us"),
            Self::Seconds => ("a time such as 2s, 300ms or 5m", "seconds", "s"),
            Self::Mbit => ("a bit rate such as 900Mbit or 2.5Gbit", "Mbit/s", "Mbit"),
            Self::PerSecond => ("a number a second such as 20000 or 20k", "times a second", "/s"),
            Self::Cores => ("a share of processors such as 30% or 1.5 cores", "cores", " cores"),
            Self::Percent => ("a percentage such as 0.5 or 0.5%", "percent", "%"),
            Self::Bytes => ("a size such as 1500 or 64KiB", "bytes", "B"),
            Self::Count => ("a number such as 16", "", ""),
        }
    }

    /// What a number of it counts: `microseconds`.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        self.words().1
    }

    /// What is written behind a number of it, without a space: `us`.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        self.words().2
    }

    /// A whole number in a range, and in that of its type.
    ///
    /// # Errors
    /// If `text` is no number, of another dimension, no whole number of this unit, or not in the
    /// range.
    pub fn read_whole<T: TryFrom<u64>>(
        self,
        text: &str,
        range: RangeInclusive<u64>,
    ) -> Result<T, QuantityError> {
        let (counted, one) = self.read(text)?;
        if counted % one != 0 {
            return Err(QuantityError::NotWhole(self));
        }
        let value = u64::try_from(counted / one).ok().filter(|value| range.contains(value));
        let value = value.and_then(|value| T::try_from(value).ok());
        value.ok_or(QuantityError::OutOfRange(self, *range.start(), *range.end()))
    }

    /// A number that is not negative, as the numerator and denominator of a ratio.
    ///
    /// # Errors
    /// If `text` is no such number, or its unit is of another dimension.
    pub fn read(self, text: &str) -> Result<(u128, u128), QuantityError> {
        let wrong = || QuantityError::NotOne(self);
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (digits, suffix) = text.split_at(end);
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
            return Err(wrong());
        }
        let ten = |value: u128| value.checked_mul(10).ok_or_else(wrong);
        let mut counted: u128 = 0;
        for digit in whole.bytes().chain(fraction.bytes()) {
            counted = ten(counted)? + u128::from(digit - b'0');
        }
        let (scale, own) = self.scale();
        let mut one = u128::from(own);
        for _ in fraction.bytes() {
            one = ten(one)?;
        }
        let suffix = suffix.trim();
        let name =
            if self.is_rate() { suffix.strip_suffix("/s").unwrap_or(suffix) } else { suffix };
        let unit = match scale.iter().find(|(known, _)| *known == name) {
            Some((_, factor)) => *factor,
            None if suffix.is_empty() => own,
            None => return Err(wrong()),
        };
        Ok((counted.checked_mul(unit.into()).ok_or_else(wrong)?, one))
    }
}

#[cfg(test)]
mod tests {
    extern crate alloc;

    use alloc::string::ToString;

    use super::*;

    #[test]
    fn one_spelling_means_one_thing() {
        for (unit, text, thousandths) in [
            (Unit::Micros, "50", 50_000),
            (Unit::Micros, "50us", 50_000),
            (Unit::Micros, " 50 µs ", 50_000),
            (Unit::Nanos, "50", 50_000),
            (Unit::Nanos, "50us", 50_000_000),
            (Unit::Seconds, "0.3", 300),
            (Unit::Seconds, ".5", 500),
            (Unit::Seconds, "2m", 120_000),
            (Unit::Seconds, "1h", 3_600_000),
            (Unit::Micros, "2s", 2_000_000_000),
            (Unit::Micros, "250ns", 250),
            (Unit::Mbit, "900", 900_000),
            (Unit::Mbit, "2.5Gbit", 2_500_000),
            (Unit::Mbit, "900 Mbit/s", 900_000),
            (Unit::PerSecond, "20k", 20_000_000),
            (Unit::PerSecond, "7/s", 7_000),
            (Unit::Cores, "30%", 300),
            (Unit::Cores, "1.5 cores", 1_500),
            (Unit::Cores, "2", 2_000),
            (Unit::Percent, "0.5%", 500),
            (Unit::Bytes, "64KiB", 65_536_000),
            (Unit::Count, "16", 16_000),
        ] {
            let (numerator, denominator) = unit.read(text).unwrap();
            assert_eq!(numerator * 1_000, thousandths * denominator, "{text}");
        }
    }

    #[test]
    fn whole_numbers_are_exact() {
        assert_eq!(Unit::Micros.read_whole("0.075ms", 0..=100), Ok(75_u32));
        assert_eq!(Unit::Micros.read_whole("75000ns", 0..=100), Ok(75_u8));
        assert_eq!(Unit::Nanos.read_whole("0.3us", 0..=u64::MAX), Ok(300_u64));
        let max = u64::MAX.to_string();
        assert_eq!(Unit::Count.read_whole(&max, 0..=u64::MAX), Ok(u64::MAX));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refused =
            |unit: Unit, text| unit.read_whole::<u64>(text, 1..=100).unwrap_err().to_string();
        for (unit, text, words) in [
            (Unit::Micros, "0.0755ms", "is not a whole number of microseconds"),
            (Unit::Count, "1.5", "is not a whole number"),
            (Unit::Micros, "101", "is outside 1 to 100 microseconds"),
            (Unit::Count, "0", "is outside 1 to 100"),
            (Unit::Micros, "1h", "is outside 1 to 100 microseconds"),
            (Unit::Micros, "5 frames", "is not a time such as 20us or 1.5ms (alone: microseconds)"),
            (Unit::Count, "5us", "is not a number without a unit, such as 16"),
        ] {
            assert_eq!(refused(unit, text), words, "{text}");
        }
        let far = "1".repeat(60);
        for text in ["", ".", "us", "-5", "+5", "1e3", "nan", "inf", "1.2.3", "5/s", "1,000", &far]
        {
            assert_eq!(Unit::Micros.read(text), Err(QuantityError::NotOne(Unit::Micros)), "{text}");
        }
    }
}

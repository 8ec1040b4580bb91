//! Values of options, as text has them.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use base::quantity::{QuantityError, Unit};
use clap::builder::ValueParserFactory;
use nic::moderation::Moderation;
use report::numbers;

use crate::suggestions::SuggestedValues;

/// A value that is text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<T>(pub T);

impl<T: FromStr> FromStr for Text<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.parse().map(Self)
    }
}

impl<T: fmt::Display> fmt::Display for Text<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ValueParserFactory for Text<Moderation> {
    type Parser = SuggestedValues<Self>;

    fn value_parser() -> SuggestedValues<Self> {
        SuggestedValues::new(Moderation::STRATEGIES.to_vec())
    }
}

/// Reads whole numbers of a unit, in a range.
pub fn whole<T: TryFrom<u64>>(
    unit: Unit,
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, QuantityError> + Clone {
    move |text| unit.read_whole(text, range.clone())
}

/// Reads numbers of a unit, in a range.
pub fn number(
    unit: Unit,
    range: RangeInclusive<f64>,
) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| numbers::read(unit, text, range.clone())
}

/// Reads sizes, in bytes.
pub fn bytes(text: &str) -> Result<usize, QuantityError> {
    whole(Unit::Bytes, 0..=u32::MAX.into())(text)
}

/// Reads times, in seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    numbers::read(Unit::Seconds, text, 0.0..=86_400.0)
}

/// Reads times in which something can happen, in seconds.
pub fn duration(text: &str) -> Result<f64, String> {
    numbers::read(Unit::Seconds, text, 0.01..=86_400.0)
}

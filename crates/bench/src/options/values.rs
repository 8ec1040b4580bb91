//! Values of options, as text has them.

use std::fmt;
use std::str::FromStr;

use clap::builder::ValueParserFactory;
use nic::moderation::Moderation;

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

/// A number up to `most`.
pub(super) fn up_to(most: u32) -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(..=i64::from(most))
}

/// A percentage.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (0.0..=100.0).contains(&value) { Ok(value) } else { Err("a percentage is 0 to 100".into()) }
}

/// A span in seconds.
///
/// # Errors
/// If it is not a number, or not one of 0 to 86400.
pub fn seconds(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if (0.0..=86_400.0).contains(&value) { Ok(value) } else { Err("seconds are 0 to 86400".into()) }
}

/// Seconds in which something can happen.
pub fn duration(text: &str) -> Result<f64, String> {
    let value = seconds(text)?;
    if value >= 0.01 { Ok(value) } else { Err("a measurement takes 0.01 seconds or more".into()) }
}

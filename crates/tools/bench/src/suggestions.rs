//! Values of options: words that shells offer, and numbers that are none.

use std::ffi::OsStr;
use std::marker::PhantomData;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, Command, Error};

/// Reads a value that has more forms than the words that completions offer for it.
#[derive(Clone, Debug)]
pub struct SuggestedValues<T> {
    words: Vec<&'static str>,
    value: PhantomData<T>,
}

impl<T> SuggestedValues<T> {
    /// A parser that offers `words`.
    pub fn new(words: Vec<&'static str>) -> Self {
        Self { words, value: PhantomData }
    }
}

impl<T> TypedValueParser for SuggestedValues<T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: Into<Box<dyn std::error::Error + Send + Sync + 'static>>,
{
    type Value = T;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        let parser = StringValueParser::new().try_map(|text| text.parse::<T>());
        parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.words.iter().map(PossibleValue::new)))
    }
}

/// The same error, in words for people where the standard library's are for programmers.
pub fn legible(error: Error) -> Error {
    let source = std::error::Error::source(&error);
    let Some(number) = source.and_then(|source| source.downcast_ref::<ParseIntError>()) else {
        return error;
    };
    let why = match number.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "it is too large a number",
        _ => "it must be a whole number, written in digits",
    };
    let context = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let (value, arg) = (context(ContextKind::InvalidValue), context(ContextKind::InvalidArg));
    Error::raw(
        ErrorKind::ValueValidation,
        format!(
            "invalid value '{value}' for '{arg}': {why}\n\nFor more information, try '--help'.\n"
        ),
    )
}

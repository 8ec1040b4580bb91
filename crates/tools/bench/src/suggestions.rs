//! Values of options: words that shells offer, and numbers that are none.

use std::ffi::OsStr;
use std::marker::PhantomData;
use std::net::AddrParseError;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};
use std::str::FromStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, Command, Error};
use report::names::remark;

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
        let words = self.words.clone();
        let parser = StringValueParser::new().try_map(move |text| {
            text.parse::<T>().map_err(|why| {
                // Of a setting such as delay:75+frames:8, the first word that is unknown.
                let is_sign = |c: char| !c.is_ascii_alphanumeric() && c != '-';
                let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_alphabetic());
                let unknown = |word: &&str| is_name(word) && !words.contains(word);
                let word = text.split(is_sign).find(unknown).unwrap_or_default();
                format!("{}{}", why.into(), remark(word, words.iter().copied()))
            })
        });
        parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.words.iter().map(PossibleValue::new)))
    }
}

/// What the standard library's error means; `None` if it is another one.
fn why(source: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    if let Some(number) = source.downcast_ref::<ParseIntError>() {
        return Some(match number.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "it is too large a number",
            _ => "it must be a whole number, written in digits",
        });
    }
    if source.is::<ParseFloatError>() {
        return Some("it must be a number, such as 0.5");
    }
    let is_with_port = source.downcast_ref::<AddrParseError>()?.to_string().contains("socket");
    Some(if is_with_port {
        "it must be an address with a port, such as 127.0.0.1:7013 or [::1]:7013"
    } else {
        "it must be an address, such as 10.0.0.2 or fd00::2"
    })
}

/// The same error, in words for people where the standard library's are for programmers.
pub fn legible(error: Error) -> Error {
    let source = std::error::Error::source(&error);
    let Some(why) = source.and_then(why) else { return error };
    let context = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let (value, arg) = (context(ContextKind::InvalidValue), context(ContextKind::InvalidArg));
    Error::raw(
        ErrorKind::ValueValidation,
        format!(
            "invalid value '{value}' for '{arg}': {why}\n\nFor more information, try '--help'.\n"
        ),
    )
}

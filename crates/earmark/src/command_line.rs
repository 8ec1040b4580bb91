//! Reading the command line: words that shells offer, and numbers that are none.

use std::ffi::OsStr;
use std::marker::PhantomData;
use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, Command, CommandFactory, Error, FromArgMatches};

use crate::cli::Cli;

/// Reads a value that has more forms than the words that completions offer for it.
#[derive(Clone, Debug)]
pub struct Offering<T> {
    words: Vec<&'static str>,
    value: PhantomData<T>,
}

impl<T> Offering<T> {
    /// Offers `words`.
    pub(crate) fn new(words: Vec<&'static str>) -> Self {
        Self { words, value: PhantomData }
    }
}

impl<T> TypedValueParser for Offering<T>
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

/// The command line of this process; a wrong one ends it with a message.
#[must_use]
pub fn read() -> Cli {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(std::env::args_os());
    let read = matches.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    read.unwrap_or_else(|error| legible(error).exit())
}

/// The command, with negative numbers as values everywhere: where they are wrong, the parser of the
/// value says so, and not that `-1` is an unknown option.
fn command() -> Command {
    with_negative_numbers(Cli::command())
}

fn with_negative_numbers(command: Command) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let command = command.mut_args(|arg| {
        let takes = arg.get_action().takes_values() && !arg.is_allow_hyphen_values_set();
        if takes { arg.allow_negative_numbers(true) } else { arg }
    });
    let each = |command: Command, name| command.mut_subcommand(name, with_negative_numbers);
    names.into_iter().fold(command, each)
}

/// The same error, in words for people where the standard library's are for programmers.
pub(crate) fn legible(error: Error) -> Error {
    let source = std::error::Error::source(&error);
    let Some(number) = source.and_then(|source| source.downcast_ref::<ParseIntError>()) else {
        return error;
    };
    let why = match number.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "it is too large a number",
        _ => "it must be a whole number, written in digits",
    };
    let said = |kind| error.get(kind).map(ToString::to_string).unwrap_or_default();
    let (value, arg) = (said(ContextKind::InvalidValue), said(ContextKind::InvalidArg));
    Error::raw(
        ErrorKind::ValueValidation,
        format!(
            "invalid value '{value}' for '{arg}': {why}\n\nFor more information, try '--help'.\n"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_a_sound_one() {
        command().debug_assert();
    }

    #[test]
    fn every_wrong_number_is_answered_in_words() {
        for (words, says) in [
            ("bench ping --duration -1", "seconds are 0 to 86400"),
            ("bench ping --rate 1e30", "it must be a whole number"),
            ("bench ping --rate -1", "-1 is not in 1..=1000000"),
            ("bench ping --rate 99999999999999999999", "it is too large a number"),
            ("bench ping --seed -1", "it must be a whole number"),
            ("bench ping --clients -1", "neither a number nor a range"),
            ("bench ping --rx-usecs 99999999999", "99999999999 is not in 0..=1000000"),
            ("bench ping --rx-frames -1", "-1 is not in 0..=65535"),
            ("bench ping --mtu -1", "-1 is not in"),
            ("demo --rounds -1", "-1 is not in 1..=100"),
            ("explain -1", ""),
            ("nic watch --count 1e3", "it must be a whole number"),
            ("echo --port 65536", "65536 is not in"),
        ] {
            let words = std::iter::once("earmark").chain(words.split(' '));
            let read = command().try_get_matches_from(words.clone());
            match read.map_err(legible) {
                Ok(_) => assert_eq!(says, "", "{:?}", words.collect::<Vec<_>>()),
                Err(error) => assert!(error.to_string().contains(says), "{error}"),
            }
        }
    }
}

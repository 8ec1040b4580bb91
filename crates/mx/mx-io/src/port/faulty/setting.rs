//! Faults as text.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use ::mx::wire::FrameType;

/// What goes wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is lost.
    Drop,
    /// It goes twice.
    Duplicate,
    /// It goes after the frame that follows it.
    Delay,
}

impl Fault {
    /// All faults, in the order of lists.
    pub const ALL: [Self; 3] = [Self::Drop, Self::Duplicate, Self::Delay];

    /// Its name in settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Duplicate => "duplicate",
            Self::Delay => "delay",
        }
    }
}

/// Something that goes wrong again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// What happens to the frame.
    pub fault: Fault,
    /// With frames of this type; `None`: of every type.
    pub frames: Option<FrameType>,
    /// With every so many of them.
    pub every: NonZeroU64,
}

/// All that goes wrong: `drop:medium:100,duplicate:ack:7,delay:50`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(Vec<Rule>);

impl Faults {
    /// The rules, in their order. A frame gets one fault, that of the first rule whose turn it is.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.0
    }
}

/// A text that is no setting of faults.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "fault `{0}`: {1}; write FAULT[:TYPE]:N, such as drop:medium:100 or delay:50, parts joined by \
     commas; faults are drop, duplicate, delay; types are {types}", types = types()
)]
pub struct BadFaults(String, &'static str);

fn types() -> String {
    FrameType::ALL.map(FrameType::name).join(", ")
}

impl FromStr for Rule {
    type Err = BadFaults;

    fn from_str(text: &str) -> Result<Self, BadFaults> {
        let bad = |why| BadFaults(text.to_owned(), why);
        let (fault, rest) = text.split_once(':').ok_or_else(|| bad("how often is missing"))?;
        let fault = Fault::ALL.into_iter().find(|it| it.name() == fault);
        let fault = fault.ok_or_else(|| bad("no such fault"))?;
        let (frames, every) = match rest.split_once(':') {
            None => (None, rest),
            Some((name, every)) => {
                let frames = FrameType::ALL.into_iter().find(|it| it.name() == name);
                (Some(frames.ok_or_else(|| bad("no such type of frames"))?), every)
            }
        };
        let every = every.parse().map_err(|_| bad("N is a whole number from 1"))?;
        Ok(Self { fault, frames, every })
    }
}

impl FromStr for Faults {
    type Err = BadFaults;

    fn from_str(text: &str) -> Result<Self, BadFaults> {
        text.split(',').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault, frames, every } = self;
        match frames {
            None => write!(f, "{}:{every}", fault.name()),
            Some(frames) => write!(f, "{}:{}:{every}", fault.name(), frames.name()),
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, rule) in self.0.iter().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            write!(f, "{rule}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read() {
        for text in ["drop:1", "drop:medium:100,duplicate:ack:7,delay:50"] {
            assert_eq!(text.parse::<Faults>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn nonsense_is_refused_with_what_there_is() {
        for (text, why) in [
            ("drop", "how often is missing"),
            ("lose:3", "no such fault"),
            ("drop:large:3", "no such type of frames"),
            ("drop:0", "N is a whole number from 1"),
            ("drop:ack:many", "N is a whole number from 1"),
            ("drop:3,", "how often is missing"),
        ] {
            let error = text.parse::<Faults>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
            assert!(error.contains("drop, duplicate, delay") && error.contains("rendezvous"));
        }
    }
}

//! What is said to a guest and what it answers.
//!
//! Orders go in, events come out, as messages in frames, which the module `channel` makes. Each
//! frame carries the number of the program that it is about; 0 stands for the guest itself.
//!
//! Neither side sends more than the other has room for: a program's output, each stream by itself,
//! and its input start with a window of [`WINDOW`] bytes, and only a credit opens it again. So a
//! program whose output is not taken stands still, as it would at a full pipe, and its neighbours
//! do not notice.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use serde::{Deserialize, Serialize};

/// How many bytes of a stream may be on their way.
pub const WINDOW: u64 = 64 * 1024;

/// The number that stands for the guest itself.
pub const GUEST: u32 = 0;

/// Where a guest has the program of its process 1.
pub const PROGRAM: &str = "/run/earmark-program";

/// What a guest can be ordered to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Start a program.
    Spawn(Spawn),
    /// More of its input.
    Input(Vec<u8>),
    /// Its input is at its end.
    CloseInput,
    /// There is room for more of its output.
    Credit(OutputStream, u64),
    /// No process reads this output any more; the program finds its pipe broken.
    CloseOutput(OutputStream),
    /// The size of its terminal has changed.
    Resize(Size),
    /// Send it a signal.
    Signal {
        /// The number of the signal.
        number: i32,
        /// To its whole process group, as a terminal does.
        group: bool,
    },
    /// Kill it; no event of it is wanted any more.
    Abandon,
    /// End the guest.
    PowerOff,
}

/// A program to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawn {
    /// Its name, or its path, and its arguments.
    pub words: Vec<Text>,
    /// Names and values of its environment.
    pub environment: Vec<(Text, Text)>,
    /// Its working directory; `/` if the guest has no such directory.
    pub directory: Text,
    /// Whether it gets input; otherwise it reads from `/dev/null`.
    pub input: bool,
    /// A terminal of this size for input and output.
    pub terminal: Option<Size>,
    /// Bytes of each output that it may write before a credit; absent: as many as it likes.
    pub window: Option<u64>,
}

/// One of a program's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputStream {
    /// Standard output, or the terminal.
    Output,
    /// Standard error, without a terminal.
    Error,
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Height of the terminal.
    pub rows: u16,
    /// Width of the terminal.
    pub columns: u16,
}

/// What a guest tells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestEvent {
    /// The guest is set up and takes orders.
    Ready,
    /// The program runs.
    Started,
    /// The program could not be started: the errno.
    Failed(i32),
    /// A part of its output.
    Output(OutputStream, Vec<u8>),
    /// There is room for more of its input; of the guest itself, for more orders.
    Credit(u64),
    /// It reads no more input.
    InputClosed,
    /// It has ended; all of its output was sent before.
    Exited(Status),
    /// The guest is about to end.
    PoweringOff,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// By itself, with this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Status {
    /// As a shell tells it: its own status, or 128 and the signal.
    pub fn code(self) -> i32 {
        match self {
            Self::Code(code) => code,
            Self::Signal(number) => 128 + number,
        }
    }
}

/// An order that a guest carries out by itself when its own clock says so.
///
/// A guest in virtual time takes no orders from outside: the moment of their arrival would differ
/// from run to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedCommand {
    /// When, in microseconds of the guest's `CLOCK_MONOTONIC`.
    pub at_us: u64,
    /// Which program it is about; the events have this number, too.
    pub program: u32,
    /// What to do.
    pub order: Order,
}

/// What the operating system calls text: any bytes. In JSON, those that are text are legible.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Text {
    /// Text that is UTF-8.
    Plain(String),
    /// Bytes that are no UTF-8.
    Raw(Vec<u8>),
}

impl Default for Text {
    fn default() -> Self {
        Self::Plain(String::new())
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::Plain(text.to_owned())
    }
}

impl From<OsString> for Text {
    fn from(text: OsString) -> Self {
        text.into_string().map_or_else(|other| Self::Raw(other.into_vec()), Self::Plain)
    }
}

impl From<Text> for OsString {
    fn from(text: Text) -> Self {
        match text {
            Text::Plain(text) => text.into(),
            Text::Raw(bytes) => Self::from_vec(bytes),
        }
    }
}

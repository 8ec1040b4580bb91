//! Printing: [`outln!`](crate::outln) results, [`errln!`](crate::errln) remarks.
//!
//! The reader of the results may stop, as in `earmark bench ... | head`. Then the command ends
//! without a message, with the status that shells know from programs that write to a closed pipe.
//! It ends by unwinding, not by the signal, so that all that it has set up is undone on the way, as
//! after any other end.
//!
//! A command that has changed what stays changed says so ([`settled`]). From then on it goes on to
//! its end, whatever becomes of its report: what standard output does not take goes to standard
//! error, and the exit status says that ([`UNREPORTED`]). So any other failure means that nothing
//! was changed, or that it is undone.

use std::fmt::{self, Arguments, Write as _};
use std::io::{self, ErrorKind, Write, stderr, stdout};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::terminal::Width;

/// 128 and the number of SIGPIPE.
const CLOSED_PIPE: u8 = 128 + 13;

/// The exit status of a command that has done its work, and whose report standard output did not
/// take.
pub const UNREPORTED: u8 = 4;

static IS_SETTLED: AtomicBool = AtomicBool::new(false);

/// The report goes to standard error since then.
static IS_DIVERTED: AtomicBool = AtomicBool::new(false);

/// Why a result was not written; what unwinds.
struct Unwritten(io::Error);

/// Prints a line on standard output.
#[macro_export]
macro_rules! outln {
    ($($words:tt)*) => { $crate::output::line(format_args!($($words)*)) };
}

/// Prints a line on standard error. A closed standard error is ignored.
#[macro_export]
macro_rules! errln {
    ($($words:tt)*) => { $crate::output::error_line(format_args!($($words)*)) };
}

/// From now on the command goes to its end although its report may be lost: it has changed what
/// stays changed.
pub fn settled() {
    IS_SETTLED.store(true, Ordering::Relaxed);
}

/// Writes a line, or ends the command, unless it has to go to its end.
pub fn line(words: Arguments<'_>) {
    write(|output| writeln!(output, "{}", Legible(words)));
}

/// Writes text as it is, or ends the command, unless it has to go to its end.
pub fn bytes(bytes: &[u8]) {
    write(|output| output.write_all(bytes).and_then(|()| output.flush()));
}

/// Writes to standard output, or to standard error if the first one takes no more and the command
/// has to go to its end.
fn write(result: impl Fn(&mut dyn Write) -> io::Result<()>) {
    if !IS_DIVERTED.load(Ordering::Relaxed) {
        let Err(error) = result(&mut stdout()) else { return };
        if !IS_SETTLED.load(Ordering::Relaxed) {
            end(error);
        }
        unreported(&format_args!("write to standard output: {error}"));
    }
    let _ = result(&mut stderr());
}

/// Ends the command, since its results cannot be written.
pub fn end(error: io::Error) -> ! {
    // Unlike a panic this says nothing itself.
    resume_unwind(Box::new(Unwritten(error)))
}

/// Says why a part of the report cannot be had; the rest of it goes to standard error.
pub fn unreported(why: &dyn fmt::Display) {
    IS_DIVERTED.store(true, Ordering::Relaxed);
    error_line(format_args!("earmark: {why}; what was done stays as it is. The report:"));
}

/// Writes a line on standard error, in as many as a terminal needs; one that is closed is ignored.
pub fn error_line(words: Arguments<'_>) {
    let text = Width::of_errors().fold(&Legible(words).to_string());
    let _ = writeln!(stderr(), "{text}");
}

/// Words with their control characters escaped: a name of a device may have some, which a terminal
/// would obey.
struct Legible<'a>(Arguments<'a>);

impl fmt::Display for Legible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escape(f), "{}", self.0)
    }
}

struct Escape<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for Escape<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let is_obeyed = |c: char| c.is_control() && c != '\n' && c != '\t';
        for part in text.split_inclusive(is_obeyed) {
            match part.chars().next_back().filter(|last| is_obeyed(*last)) {
                Some(last) => {
                    self.0.write_str(&part[..part.len() - last.len_utf8()])?;
                    write!(self.0, "{}", last.escape_default())?;
                }
                None => self.0.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// Runs a command until it ends, or until its standard output takes no more; its exit status.
pub fn while_read(command: impl FnOnce() -> Result<ExitCode>) -> Result<ExitCode> {
    let panic = match catch_unwind(AssertUnwindSafe(command)) {
        Ok(Ok(_)) if IS_DIVERTED.load(Ordering::Relaxed) => return Ok(ExitCode::from(UNREPORTED)),
        Ok(ended) => return ended,
        Err(panic) => panic,
    };
    match panic.downcast::<Unwritten>() {
        Ok(unwritten) if unwritten.0.kind() == ErrorKind::BrokenPipe => {
            Ok(ExitCode::from(CLOSED_PIPE))
        }
        Ok(unwritten) => Err(unwritten.0).context(
            "write to standard output; make room where it goes, or send it somewhere else",
        ),
        Err(panic) => resume_unwind(panic),
    }
}

/// What failed and why, each thing once: some errors name their cause in the middle of a sentence
/// that ends with what to do.
pub fn message(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = text + ": " + &cause;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_by_a_closed_pipe_undoes_everything() {
        struct Undone<'a>(&'a mut bool);
        impl Drop for Undone<'_> {
            fn drop(&mut self) {
                *self.0 = true;
            }
        }
        let mut is_undone = false;
        let ended = while_read(|| {
            let _host = Undone(&mut is_undone);
            write(|_| Err(ErrorKind::BrokenPipe.into()));
            unreachable!("it has ended");
        });
        assert_eq!(format!("{:?}", ended.unwrap()), format!("{:?}", ExitCode::from(141)));
        assert!(is_undone);
    }

    #[test]
    fn control_characters_are_escaped() {
        let name = "et\u{1b}[2Jh\u{9b}0\r";
        assert_eq!(
            Legible(format_args!("{name}:\t1\n2")).to_string(),
            "et\\u{1b}[2Jh\\u{9b}0\\r:\t1\n2"
        );
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let error = while_read(|| {
            write(|_| Err(ErrorKind::StorageFull.into()));
            Ok(ExitCode::SUCCESS)
        });
        assert!(error.unwrap_err().to_string().contains("standard output"));
    }

    #[test]
    fn a_cause_is_named_once() {
        let failed = || anyhow::anyhow!("full (os error 28)");
        let plain = Err::<(), _>(failed()).context("write x").unwrap_err();
        assert_eq!(message(&plain), "write x: full (os error 28)");
        let expected = "write x: full (os error 28); free some space";
        let with_remedy = Err::<(), _>(failed()).context(expected).unwrap_err();
        assert_eq!(message(&with_remedy), expected);
    }
}

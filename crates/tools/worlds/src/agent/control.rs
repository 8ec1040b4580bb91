//! The agent's side of the conversation with its parent: lines in, lines of JSON out.

use bench::records::AgentMessage;
use std::io::{self, Write};

/// The longest command, in bytes, with blanks and the end of its line.
const LONGEST: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// The moment is time zero.
    Go,
    /// A server's end.
    Stop,
    /// The parent has closed the pipe, or is gone.
    End,
}

/// Standard input, read without buffering ahead, so that readiness tells the truth about it.
#[derive(Debug, Default)]
pub(super) struct Control {
    pending: Vec<u8>,
}

impl Control {
    pub(super) fn wait(&mut self) -> io::Result<Command> {
        loop {
            if let Some(command) = self.take()? {
                return Ok(command);
            }
            if self.read()? == 0 {
                return Ok(Command::End);
            }
        }
    }

    /// Reads once and returns the first command that is complete, if one is. Standard input must be
    /// readable, or this waits.
    pub(super) fn poll(&mut self) -> io::Result<Option<Command>> {
        if self.read()? == 0 {
            return Ok(Some(Command::End));
        }
        self.take()
    }

    fn read(&mut self) -> io::Result<usize> {
        let mut chunk = [0; 256];
        loop {
            match rustix::io::read(io::stdin(), &mut chunk) {
                Ok(read) => {
                    self.pending.extend_from_slice(&chunk[..read]);
                    return Ok(read);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The next complete line as a command. More commands in one read wait for their turn.
    pub(super) fn take(&mut self) -> io::Result<Option<Command>> {
        let Some(end) = self.pending.iter().position(|&byte| byte == b'\n') else {
            return match self.pending.len() {
                ..LONGEST => Ok(None),
                _ => Err(unknown(&self.pending[..LONGEST])),
            };
        };
        let line: Vec<u8> = self.pending.drain(..=end).collect();
        match line.trim_ascii() {
            b"go" => Ok(Some(Command::Go)),
            b"stop" => Ok(Some(Command::Stop)),
            other => Err(unknown(other)),
        }
    }
}

fn unknown(command: &[u8]) -> io::Error {
    let command = String::from_utf8_lossy(command);
    io::Error::other(format!("unknown command \"{command}\" on standard input; say go or stop"))
}

/// Prints one message as one line. A parent that has gone away cannot read it, which is no error of
/// ours.
pub(super) fn print(message: &AgentMessage) {
    let line = serde_json::to_string(message).expect("messages are plain data");
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_without_an_end_is_none() {
        let taken = |pending: &[u8]| Control { pending: pending.to_vec() }.take();
        assert_eq!(taken(b" go \nsto").unwrap(), Some(Command::Go));
        assert_eq!(taken(&[b' '; LONGEST - 1]).unwrap(), None);
        assert!(taken(&[b' '; LONGEST]).unwrap_err().to_string().contains("unknown command"));
        assert!(taken(b"went\n").unwrap_err().to_string().contains("\"went\""));
    }
}

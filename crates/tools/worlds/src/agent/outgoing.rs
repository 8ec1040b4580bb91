//! What messages of MX are made of.
//!
//! A program that sends by MX leaves its message where it is, and the endpoint reads it from there.
//! Workloads lend their bytes only until they are asked again. So that no copy is measured which a
//! program would not make, a message has the first bytes of what the workload said, where sequence
//! numbers are, and its length; the rest is the same in all messages.

use mx::buffers::Source;
use std::sync::Arc;

/// Bytes that are the workload's.
const HEAD: usize = 8;

#[derive(Debug)]
pub(super) struct OutgoingMessage {
    head: [u8; HEAD],
    length: usize,
    rest: Arc<[u8]>,
}

/// What the rest of all messages is.
#[derive(Debug)]
pub(super) struct Filler(Arc<[u8]>);

impl Default for Filler {
    fn default() -> Self {
        Self(Arc::new([]))
    }
}

impl Filler {
    /// A message like `bytes`.
    pub(super) fn message(&mut self, bytes: &[u8]) -> OutgoingMessage {
        if self.0.len() < bytes.len() {
            self.0 = bytes.into();
        }
        let mut head = [0; HEAD];
        let known = bytes.len().min(HEAD);
        head[..known].copy_from_slice(&bytes[..known]);
        OutgoingMessage { head, length: bytes.len(), rest: Arc::clone(&self.0) }
    }
}

impl Source for OutgoingMessage {
    fn length(&self) -> u64 {
        self.length as u64
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        let from = offset as usize;
        into.copy_from_slice(&self.rest[from..from + into.len()]);
        if from < HEAD {
            let known = into.len().min(HEAD - from);
            into[..known].copy_from_slice(&self.head[from..from + known]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_begins_as_the_workload_said() {
        let mut filler = Filler::default();
        let messages = [&b"0123456789abcdef"[..], b"abcdefghijkl", b"xy", b""];
        let expected = [&b"0123456789abcdef"[..], b"abcdefgh89ab", b"xy", b""];
        let messages = messages.map(|bytes| filler.message(bytes));
        for (message, expected) in messages.iter().zip(expected) {
            assert_eq!(message.length(), expected.len() as u64);
            for from in 0..=expected.len() {
                for to in from..=expected.len() {
                    let mut read = vec![0; to - from];
                    message.read(from as u64, &mut read);
                    assert_eq!(read, expected[from..to]);
                }
            }
        }
    }
}

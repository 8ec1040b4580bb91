//! Messages as MX reads and writes them.

use std::sync::Arc;

use mx::buffers::{Sink, Source};
use mx_io::memory::{Copies, Payload};

use crate::memory::{CallerSegments, Parts};

/// Messages up to here are kept within their request.
const SHORT: usize = 128;

#[derive(Debug)]
pub(crate) struct Outgoing(Payload<Parts, SHORT>);

impl Outgoing {
    pub(crate) fn copied(from: &CallerSegments, copies: &Arc<Copies>) -> Self {
        Self(Payload::copied(from, copies))
    }

    /// A message that is read from the user's memory until its send has ended.
    pub(crate) const fn lent(from: CallerSegments) -> Self {
        Self(Payload::Lent(from))
    }
}

impl Source for Outgoing {
    fn length(&self) -> u64 {
        self.0.length() as u64
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        self.0.read(offset as usize, into);
    }

    fn piece(&self, offset: u64, most: usize) -> &[u8] {
        self.0.piece(offset as usize, most)
    }
}

#[derive(Debug)]
pub(crate) struct ReceiveBuffer(pub(crate) CallerSegments);

impl Sink for ReceiveBuffer {
    fn capacity(&self) -> u64 {
        self.0.length() as u64
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        self.0.write(offset as usize, from);
    }

    fn piece(&mut self, offset: u64, most: usize) -> &mut [u8] {
        self.0.place(offset as usize, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::lent;
    use crate::memory::tests::list;

    #[test]
    fn copies_are_what_was_sent_and_are_counted() {
        for length in [0, 1, SHORT, SHORT + 1, 300] {
            let mut bytes: Vec<u8> = (0..length).map(|index| index as u8).collect();
            let list = list(&mut [&mut bytes]);
            let copies = Arc::default();
            let memory = lent!(list.as_ptr(), 1).unwrap();
            let copied = Outgoing::copied(&memory, &copies);
            bytes.fill(0xee);
            let mut read = vec![0; length];
            assert_eq!(copied.length(), length as u64);
            copied.read(0, &mut read);
            assert!(read.iter().enumerate().all(|(index, byte)| *byte == index as u8));
            assert_eq!(copies.bytes(), if length > SHORT { length } else { 0 });
            drop(copied);
            assert_eq!(copies.bytes(), 0);
        }
    }
}

//! The first bytes of a message that its sender has announced.

use crate::wire::HEAD;

/// What an announcement took along of its message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    bytes: [u8; HEAD],
    length: u8,
}

impl Head {
    pub(super) fn new(head: &[u8]) -> Self {
        let length = head.len().min(HEAD);
        let mut bytes = [0; HEAD];
        bytes[..length].copy_from_slice(&head[..length]);
        Self { bytes, length: length as u8 }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

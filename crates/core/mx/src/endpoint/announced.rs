//! A large message that its sender has announced.

use crate::outgoing::Reference;
use crate::wire::HEAD;

/// A large message, which its sender calls `region`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    pub(super) match_info: u64,
    pub(super) total: u64,
    pub(super) region: u32,
    pub(super) head: Head,
    /// Where it can be read, without its first bytes, which are in `head`.
    pub(super) reference: Option<Reference>,
}

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

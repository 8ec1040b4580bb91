//! Remote memory, as messages.
//!
//! A peer that wants to write or read sends a request. The owner of the memory attends to it when
//! it reads a queue or a counter, as libfabric's manual progress has it:
//!
//! ```text
//! short write   request with the bytes ─▶   written, ◀─ answer
//! long write    request, bytes ─▶           received where they belong; the send ends with that
//! read          request ─▶                  ◀─ answer with the bytes, received where wanted
//! ```
//!
//! Long bytes are messages of their own, which MX moves from memory to memory. An answer may
//! say in its header why there is nothing; a long write without memory for it is truncated.

pub(crate) const LENGTH: usize = 48;

/// So many bytes to write go with their request, at most.
pub(crate) const SHORT: usize = 8 << 10;

/// So many requests are received at a time; others wait in MX.
pub(crate) const PLACES: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Write what follows.
    Write = 1,
    /// Write what comes in another message.
    WriteLong = 2,
    /// Answer with what is there.
    Read = 3,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RmaRequest {
    pub(crate) operation: Operation,
    pub(crate) id: u32,
    pub(crate) key: u64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) data: Option<u64>,
}

impl RmaRequest {
    pub(crate) fn encode(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        bytes[0] = self.operation as u8;
        bytes[1] = self.data.is_some().into();
        bytes[4..8].copy_from_slice(&self.id.to_be_bytes());
        let words = [self.key, self.offset, self.length, self.data.unwrap_or(0)];
        for (place, word) in bytes[8..].chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Reads a request, and the bytes after it; `None` if it is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = bytes.split_first_chunk::<LENGTH>()?;
        let word = |at: usize| {
            let bytes = head[at..at + 8].try_into().unwrap_or_default();
            u64::from_be_bytes(bytes)
        };
        let operation = match head[0] {
            1 => Operation::Write,
            2 => Operation::WriteLong,
            3 => Operation::Read,
            _ => return None,
        };
        let request = Self {
            operation,
            id: u32::from_be_bytes(head[4..8].try_into().ok()?),
            key: word(8),
            offset: word(16),
            length: word(24),
            data: (head[1] == 1).then(|| word(32)),
        };
        let is_whole = operation != Operation::Write || rest.len() as u64 == request.length;
        is_whole.then_some((request, rest))
    }
}

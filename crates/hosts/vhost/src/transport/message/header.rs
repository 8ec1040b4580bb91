//! What every message begins with.

/// Bytes of a header.
pub const HEADER: usize = 12;

/// The longest payload that is read. The longest that is known is a memory table of
/// [`MAX_REGIONS`], 264 bytes.
pub const MAX_PAYLOAD: usize = 1_024;

/// Memory regions in one table, and file descriptors in one message
/// (`VHOST_MEMORY_BASELINE_NREGIONS`).
pub const MAX_REGIONS: usize = 8;

/// The longest configuration space that a message carries (`VHOST_USER_MAX_CONFIG_SIZE`).
pub const MAX_CONFIG: usize = 256;

/// The protocol version, in the two lowest bits of a header's flags.
pub(super) const VERSION: u32 = 1;

pub(super) const VERSION_MASK: u32 = 3;

pub(super) const FLAG_REPLY: u32 = 1 << 2;

pub(super) const FLAG_NEED_REPLY: u32 = 1 << 3;

/// Why bytes are no message.
#[expect(missing_docs, reason = "the messages say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error("a vhost-user message has flags {0:#x}: not version 1 of the protocol")]
    Version(u32),
    #[error("vhost-user message {0} announces {1} bytes; the longest known has 264")]
    TooLong(u32, u32),
    #[error("vhost-user message {0} has {1} bytes, too few for its fields")]
    TooShort(u32, usize),
    #[error("a vhost-user memory table has {0} regions; 1 to {MAX_REGIONS} are possible")]
    Regions(u32),
    #[error("a vhost-user message is about {0} bytes of configuration; {MAX_CONFIG} at most")]
    Config(u32),
}

/// What precedes every payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The number of the request, or of what is replied to.
    pub request: u32,
    flags: u32,
    /// Bytes that follow.
    pub size: u32,
}

impl Header {
    /// Reads a header; its payload has at most [`MAX_PAYLOAD`] bytes.
    pub fn parse(bytes: &[u8; HEADER]) -> Result<Self, MessageError> {
        let field = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let header = Self { request: field(0), flags: field(4), size: field(8) };
        if header.flags & VERSION_MASK != VERSION {
            return Err(MessageError::Version(header.flags));
        }
        if header.size as usize > MAX_PAYLOAD {
            return Err(MessageError::TooLong(header.request, header.size));
        }
        Ok(header)
    }

    /// Whether the sender waits for an acknowledgement.
    pub fn needs_reply(&self) -> bool {
        self.flags & FLAG_NEED_REPLY != 0
    }

    /// Whether this is a reply.
    pub fn is_reply(&self) -> bool {
        self.flags & FLAG_REPLY != 0
    }
}

pub(super) fn with_header(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + payload.len());
    for field in [request, VERSION | flags, payload.len() as u32] {
        message.extend(field.to_ne_bytes());
    }
    message.extend(payload);
    message
}

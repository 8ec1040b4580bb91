//! The messages of the vhost-user protocol: bytes to values and back, without sockets.
//!
//! Numbers and layouts are those of the vhost-user specification, section "Communication"
//! (<https://qemu-project.gitlab.io/qemu/interop/vhost-user.html>), in the byte order of the
//! machine. Whatever comes from a socket is untrusted: [`Header::parse`] bounds the payload before
//! it is read, [`Request::parse`] takes any bytes and never panics.
//!
//! A payload may be longer than its fields, because Linux in user mode always sends a memory table
//! of two regions (`arch/um/drivers/vhost_user.h`); it must not be shorter.

mod payload;
mod request;

use payload::Fields;
pub use payload::{Config, Region, VringAddress, VringFd, VringState};
pub use request::Request;

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
const VERSION: u32 = 1;
const VERSION_MASK: u32 = 3;
const FLAG_REPLY: u32 = 1 << 2;
const FLAG_NEED_REPLY: u32 = 1 << 3;

/// The backend can speak of protocol features (`VHOST_USER_F_PROTOCOL_FEATURES`, a bit among the
/// virtio features).
pub const F_PROTOCOL_FEATURES: u64 = 1 << 30;

/// More than one queue pair (`VHOST_USER_PROTOCOL_F_MQ`).
pub const PROTOCOL_F_MQ: u64 = 1 << 0;
/// A sender may ask for an acknowledgement of any message (`VHOST_USER_PROTOCOL_F_REPLY_ACK`).
pub const PROTOCOL_F_REPLY_ACK: u64 = 1 << 3;
/// A channel for messages of the backend (`VHOST_USER_PROTOCOL_F_BACKEND_REQ`).
pub const PROTOCOL_F_BACKEND_REQ: u64 = 1 << 5;
/// The configuration space is the backend's (`VHOST_USER_PROTOCOL_F_CONFIG`).
pub const PROTOCOL_F_CONFIG: u64 = 1 << 9;
/// The device can be reset (`VHOST_USER_PROTOCOL_F_RESET_DEVICE`).
pub const PROTOCOL_F_RESET_DEVICE: u64 = 1 << 13;
/// Kicks and calls are messages (`VHOST_USER_PROTOCOL_F_INBAND_NOTIFICATIONS`).
pub const PROTOCOL_F_INBAND_NOTIFICATIONS: u64 = 1 << 14;
/// The frontend tells the device status (`VHOST_USER_PROTOCOL_F_STATUS`).
pub const PROTOCOL_F_STATUS: u64 = 1 << 16;

/// The backend interrupts a ring in-band (`VHOST_USER_BACKEND_VRING_CALL`).
const BACKEND_VRING_CALL: u32 = 4;

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// Another version of the protocol.
    #[error("a vhost-user message has flags {0:#x}: not version 1 of the protocol")]
    Version(u32),
    /// A payload longer than [`MAX_PAYLOAD`].
    #[error("vhost-user message {request} announces {size} bytes; the longest known has 264")]
    TooLong {
        /// The number of the request.
        request: u32,
        /// The announced length.
        size: u32,
    },
    /// A payload that ends before its last field.
    #[error("vhost-user message {request} has {size} bytes, too few for its fields")]
    TooShort {
        /// The number of the request.
        request: u32,
        /// The length of the payload.
        size: usize,
    },
    /// A memory table with no region, or with more than [`MAX_REGIONS`].
    #[error("a vhost-user memory table has {0} regions; 1 to {MAX_REGIONS} are possible")]
    Regions(u32),
    /// More configuration than there is.
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
    ///
    /// # Errors
    /// If it is of another version, or announces more.
    pub fn parse(bytes: &[u8; HEADER]) -> Result<Self, MessageError> {
        let field = |at: usize| {
            u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let header = Self { request: field(0), flags: field(4), size: field(8) };
        if header.flags & VERSION_MASK != VERSION {
            return Err(MessageError::Version(header.flags));
        }
        if header.size as usize > MAX_PAYLOAD {
            return Err(MessageError::TooLong { request: header.request, size: header.size });
        }
        Ok(header)
    }

    /// Whether the sender waits for an acknowledgement.
    #[must_use]
    pub fn needs_reply(&self) -> bool {
        self.flags & FLAG_NEED_REPLY != 0
    }

    /// Whether this is a reply.
    #[must_use]
    pub fn is_reply(&self) -> bool {
        self.flags & FLAG_REPLY != 0
    }
}

fn with_header(request: u32, flags: u32, payload: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(HEADER + payload.len());
    for field in [request, VERSION | flags, payload.len() as u32] {
        message.extend(field.to_ne_bytes());
    }
    message.extend(payload);
    message
}

/// A reply to `request`, whole.
#[must_use]
pub fn reply(request: u32, payload: &[u8]) -> Vec<u8> {
    with_header(request, FLAG_REPLY, payload)
}

/// Reads a reply that is one number.
///
/// # Errors
/// If it is too short.
pub fn parse_u64(header: &Header, payload: &[u8]) -> Result<u64, MessageError> {
    Fields::new(header, payload).u64()
}

/// The message that interrupts ring `index` in-band; the frontend acknowledges it with a number.
#[must_use]
pub fn vring_call(index: u32, acknowledged: bool) -> Vec<u8> {
    let flags = if acknowledged { FLAG_NEED_REPLY } else { 0 };
    with_header(BACKEND_VRING_CALL, flags, &VringState { index, number: 0 }.encode())
}

/// Reads a message of the backend: the ring that it interrupts, if that is what it does.
///
/// # Errors
/// If the payload is too short.
pub fn parse_vring_call(header: &Header, payload: &[u8]) -> Result<Option<u32>, MessageError> {
    if header.request != BACKEND_VRING_CALL {
        return Ok(None);
    }
    VringState::parse(header, payload).map(|state| Some(state.index))
}

#[cfg(test)]
mod tests;

//! The messages of the vhost-user protocol: bytes to values and back, without sockets.
//!
//! Numbers and layouts are those of the vhost-user specification, section "Communication"
//! (<https://qemu-project.gitlab.io/qemu/interop/vhost-user.html>), in the byte order of the
//! machine. Whatever comes from a socket is untrusted: [`Header::parse`] bounds the payload before
//! it is read, [`FrontendRequest::parse`] takes any bytes and never panics.
//!
//! A payload may be longer than its fields, because Linux in user mode always sends a memory table
//! of two regions (`arch/um/drivers/vhost_user.h`); it must not be shorter.

mod header;
mod payload;
mod request;

use header::{FLAG_REPLY, with_header};
pub use header::{HEADER, Header, MAX_CONFIG, MAX_PAYLOAD, MAX_REGIONS, MessageError};
use payload::Fields;
pub use payload::{Config, Region, VringAddress, VringFd, VringState};
pub use request::FrontendRequest;

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

/// A reply to `request`, whole.
pub fn reply(request: u32, payload: &[u8]) -> Vec<u8> {
    with_header(request, FLAG_REPLY, payload)
}

/// Reads a reply that is one number.
pub fn parse_u64(header: &Header, payload: &[u8]) -> Result<u64, MessageError> {
    Fields::new(header, payload).u64()
}

/// The message that interrupts ring `index` in-band; it asks for no acknowledgement.
pub fn vring_call(index: u32) -> Vec<u8> {
    with_header(BACKEND_VRING_CALL, 0, &VringState { index, number: 0 }.encode())
}

/// Reads a message of the backend: the ring that it interrupts, if that is what it does.
pub fn parse_vring_call(header: &Header, payload: &[u8]) -> Result<Option<u32>, MessageError> {
    if header.request != BACKEND_VRING_CALL {
        return Ok(None);
    }
    VringState::parse(header, payload).map(|state| Some(state.index))
}

#[cfg(test)]
mod tests;

//! What calls return, how requests end, and what both mean to people.

use std::ffi::{CStr, c_char};

use mx::status::RequestError;

/// What a call returns. Values are only ever added.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum earmark_mx_return_t {
    /// It did what was asked; whether a request has ended is another matter.
    EARMARK_MX_SUCCESS = 0,
    /// earmark_mx_init() was not called.
    EARMARK_MX_NOT_INITIALIZED = 1,
    /// earmark_mx_init() was called before.
    EARMARK_MX_ALREADY_INITIALIZED = 2,
    /// The program was compiled for a version that this library is not.
    EARMARK_MX_BAD_API = 3,
    /// An argument is NULL, or is none of its values.
    EARMARK_MX_BAD_ARGUMENT = 4,
    /// There is no such endpoint, or not any more.
    EARMARK_MX_BAD_ENDPOINT = 5,
    /// There is no such request, or not any more; or the call is not for its kind.
    EARMARK_MX_BAD_REQUEST = 6,
    /// The address is not one that connecting, or a status, has given.
    EARMARK_MX_BAD_ADDRESS = 7,
    /// There is no such port.
    EARMARK_MX_BAD_PORT = 8,
    /// A setting is out of its range.
    EARMARK_MX_BAD_SETTING = 9,
    /// Too many segments, too long ones, or one without memory.
    EARMARK_MX_BAD_SEGMENTS = 10,
    /// The match information has bits outside the mask.
    EARMARK_MX_BAD_MATCH_MASK = 11,
    /// The mask does not cover the bits of the context.
    EARMARK_MX_BAD_CONTEXT_MASK = 12,
    /// The endpoint number is taken.
    EARMARK_MX_TAKEN = 13,
    /// The system does not permit it.
    EARMARK_MX_NOT_ALLOWED = 14,
    /// The port does not work any more.
    EARMARK_MX_PORT_FAILED = 15,
    /// The system has no more of something.
    EARMARK_MX_NO_RESOURCES = 16,
    /// Somebody is at it already, or a peer has as many peers as it can.
    EARMARK_MX_BUSY = 17,
    /// The endpoint is being closed.
    EARMARK_MX_CLOSING = 18,
    /// The endpoint is closed, but messages are lost.
    EARMARK_MX_UNFINISHED = 19,
    /// The peer is lost; connect again.
    EARMARK_MX_PEER_LOST = 20,
    /// The time is over. Only connecting returns this.
    EARMARK_MX_TIMEOUT = 21,
    /// There is no such endpoint at this interface.
    EARMARK_MX_NO_ENDPOINT = 22,
    /// The key is not the peer's.
    EARMARK_MX_BAD_KEY = 23,
    /// The peer speaks another version of the protocol.
    EARMARK_MX_BAD_VERSION = 24,
    /// No host of that name has answered.
    EARMARK_MX_HOST_NOT_FOUND = 25,
    /// A fault of the library.
    EARMARK_MX_INTERNAL = 26,
}

/// How a request ended. Values are only ever added.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum earmark_mx_status_code_t {
    /// It did what was asked.
    EARMARK_MX_STATUS_SUCCESS = 0,
    /// The message was longer than the receive; what fitted was delivered.
    EARMARK_MX_STATUS_TRUNCATED = 1,
    /// It was cancelled.
    EARMARK_MX_STATUS_CANCELLED = 2,
    /// The peer does not answer.
    EARMARK_MX_STATUS_UNREACHABLE = 3,
    /// The peer was restarted.
    EARMARK_MX_STATUS_RESTARTED = 4,
    /// The peer closed its endpoint.
    EARMARK_MX_STATUS_CLOSED = 5,
    /// There is no such endpoint at this interface.
    EARMARK_MX_STATUS_NO_ENDPOINT = 6,
    /// The key is not the peer's.
    EARMARK_MX_STATUS_BAD_KEY = 7,
    /// The peer speaks another version of the protocol.
    EARMARK_MX_STATUS_BAD_VERSION = 8,
    /// The peer has as many peers as it can.
    EARMARK_MX_STATUS_BUSY = 9,
    /// The time is over.
    EARMARK_MX_STATUS_TIMEOUT = 10,
    /// The peer broke the protocol.
    EARMARK_MX_STATUS_PROTOCOL = 11,
    /// This endpoint was closed.
    EARMARK_MX_STATUS_ABORTED = 12,
}

pub(crate) use earmark_mx_return_t as Return;
use earmark_mx_status_code_t as Status;

pub(crate) const fn of(result: Result<(), RequestError>) -> Status {
    let error = match result {
        Ok(()) => return Status::EARMARK_MX_STATUS_SUCCESS,
        Err(error) => error,
    };
    match error {
        RequestError::Truncated => Status::EARMARK_MX_STATUS_TRUNCATED,
        RequestError::Cancelled => Status::EARMARK_MX_STATUS_CANCELLED,
        RequestError::Unreachable => Status::EARMARK_MX_STATUS_UNREACHABLE,
        RequestError::Restarted => Status::EARMARK_MX_STATUS_RESTARTED,
        RequestError::Closed => Status::EARMARK_MX_STATUS_CLOSED,
        RequestError::NoEndpoint => Status::EARMARK_MX_STATUS_NO_ENDPOINT,
        RequestError::BadKey => Status::EARMARK_MX_STATUS_BAD_KEY,
        RequestError::BadVersion => Status::EARMARK_MX_STATUS_BAD_VERSION,
        RequestError::Busy => Status::EARMARK_MX_STATUS_BUSY,
        RequestError::Timeout => Status::EARMARK_MX_STATUS_TIMEOUT,
        RequestError::Protocol => Status::EARMARK_MX_STATUS_PROTOCOL,
        RequestError::Aborted => Status::EARMARK_MX_STATUS_ABORTED,
    }
}

/// The texts of earmark_mx_return_t, by number.
const RETURNS: [&CStr; 27] = [
    c"success",
    c"library is not initialized; call earmark_mx_init first",
    c"library is initialized already",
    c"program was compiled for another version of this library; compile it anew",
    c"argument is NULL or none of its values",
    c"no such endpoint, or not any more",
    c"no such request, or not any more, or of another kind",
    c"address of no peer; take it from connect or from a status",
    c"no such port; use packet:IFACE, udp:ADDR or udp:IFACE",
    c"setting is out of its range",
    c"too many segments, too long ones, or one without memory",
    c"match information has bits outside the mask",
    c"mask does not cover the bits of the context",
    c"endpoint number is taken; use another, or EARMARK_MX_ANY_ENDPOINT",
    c"not allowed; run as root or with CAP_NET_RAW, or use a udp port",
    c"port does not work any more; close the endpoint and open another",
    c"system has no more resources",
    c"busy; try again later",
    c"endpoint is being closed",
    c"endpoint is closed, but its peers have not fetched all messages",
    c"peer is lost; connect again",
    c"timeout",
    c"no such endpoint at this interface; is the program running there?",
    c"key is not the peer's",
    c"peer speaks another version of the protocol",
    c"no host of that name has answered",
    c"fault of the library; please report it",
];

/// The texts of earmark_mx_status_code_t, by number.
const STATUSES: [&CStr; 13] = [
    c"success",
    c"message was longer than the receive",
    c"cancelled",
    c"peer does not answer",
    c"peer was restarted; connect again",
    c"peer closed its endpoint",
    c"no such endpoint at this interface; is the program running there?",
    c"key is not the peer's",
    c"peer speaks another version of the protocol",
    c"peer has as many peers as it can have",
    c"timeout",
    c"peer broke the protocol",
    c"endpoint was closed",
];

/// What a value of earmark_mx_return_t means. The text is for the life of the process.
// SAFETY: names of this library begin with `earmark_mx_`, which no other library uses.
// JUSTIFICATION: C finds functions by their names. Both are true of all functions of this crate.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_strerror(code: u32) -> *const c_char {
    RETURNS.get(code as usize).unwrap_or(&c"unknown code").as_ptr()
}

/// What a value of earmark_mx_status_code_t means. The text is for the life of the process.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_strstatus(code: u32) -> *const c_char {
    STATUSES.get(code as usize).unwrap_or(&c"unknown code").as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_text() {
        assert_eq!(RETURNS.len(), earmark_mx_return_t::EARMARK_MX_INTERNAL as usize + 1);
        assert_eq!(STATUSES.len(), Status::EARMARK_MX_STATUS_ABORTED as usize + 1);
    }
}

//! How requests end, and events.

use core::fmt;

use crate::ids::{PeerId, ReceiveId, SendId};

/// Why a request failed, or why a peer was lost (`mx_status_code_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestError {
    /// The message was longer than the receive; what fitted was delivered.
    Truncated,
    /// It was cancelled.
    Cancelled,
    /// The peer said nothing for as long as peers may.
    Unreachable,
    /// The peer is another one now: it was restarted.
    Restarted,
    /// The peer closed its endpoint.
    Closed,
    /// There is no such endpoint at this interface.
    NoEndpoint,
    /// The key is not the peer's.
    BadKey,
    /// The peer speaks another version of the protocol.
    BadVersion,
    /// The peer has as many peers as it can.
    Busy,
    /// The time that was given is over.
    Timeout,
    /// The peer broke the protocol.
    Protocol,
    /// This endpoint was closed.
    Aborted,
}

impl RequestError {
    /// Whether it is about a connection to an earlier instance of the peer, which is over: connect
    /// again.
    #[must_use]
    pub const fn is_of_earlier_instance(self) -> bool {
        matches!(self, Self::Restarted | Self::Closed | Self::Unreachable)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "message was longer than the receive",
            Self::Cancelled => "cancelled",
            Self::Unreachable => "peer does not answer",
            Self::Restarted => "peer was restarted; connect again",
            Self::Closed => "peer closed its endpoint",
            Self::NoEndpoint => "no such endpoint at this interface; is the program running there?",
            Self::BadKey => "key is not the peer's",
            Self::BadVersion => "peer speaks another version of the protocol",
            Self::Busy => "peer has as many peers as it can have",
            Self::Timeout => "timeout",
            Self::Protocol => "peer broke the protocol",
            Self::Aborted => "endpoint was closed",
        })
    }
}

impl core::error::Error for RequestError {}

/// How a request ended (`mx_status_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Whether it did what was asked.
    pub result: Result<(), RequestError>,
    /// The peer that sent the message, or that it was sent to. Unknown for a receive that ended
    /// before a message came.
    pub peer: Option<PeerId>,
    /// The match information of the message; of the receive, if no message came.
    pub match_info: u64,
    /// Bytes of the message (`msg_length`).
    pub length: u64,
    /// Bytes of it that were delivered (`xfer_length`). For an eager send: that were accepted.
    pub transferred: u64,
    /// What the request was given (`context`).
    pub context: u64,
}

/// What an endpoint reports.
#[derive(Debug)]
pub enum Event<R> {
    /// A send has ended. An eager one ends when its last frame is on its way: the memory may be
    /// used again, and what becomes of the message is the endpoint's concern.
    Sent(SendId, Status),
    /// A receive has ended, and gives its memory back.
    Received(ReceiveId, Status, R),
    /// The attempt to connect has ended.
    Connected(PeerId, Result<(), RequestError>),
    /// A peer that was connected is lost, for this reason. Its requests have ended.
    Lost(PeerId, RequestError),
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// This peer is unknown, or lost, for the reason given then.
    NoPeer(RequestError),
    /// The match information has bits outside the mask (`MX_BAD_MATCH_MASK`).
    BadMask,
    /// The mask does not cover the bits of the context.
    ContextNotCovered,
    /// The endpoint is being closed.
    Closing,
    /// The request has ended, or was not one.
    NoRequest,
    /// The message was taken by another receive, or its sender was lost.
    NoMessage,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPeer(error) => write!(f, "no connection to this peer: {error}"),
            Self::BadMask => f.write_str("match information has bits outside the mask"),
            Self::ContextNotCovered => f.write_str("mask does not cover the bits of the context"),
            Self::Closing => f.write_str("endpoint is being closed"),
            Self::NoRequest => f.write_str("request has ended"),
            Self::NoMessage => f.write_str("message was taken, or its sender was lost"),
        }
    }
}

impl core::error::Error for Refusal {}

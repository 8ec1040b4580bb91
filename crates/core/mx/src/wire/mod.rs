//! Frames on the wire.
//!
//! What stands here follows the EtherType 0x86df of an Ethernet frame, or the UDP header where raw
//! frames are not allowed. All numbers are big-endian.
//!
//! ```text
//!  0       1       2         3         4                  8                  12
//! ┌───────┬───────┬─────────┬─────────┬──────────────────┬──────────────────┐
//! │ type  │ flags │ to      │ from    │ token            │ sequence number  │
//! │       │       │ endpoint│ endpoint│                  │                  │
//! ├───────┴───────┴─────────┴─────────┼──────────────────┼─────────┬────────┤
//! │ acknowledged: all before this     │ credit           │ window  │ length │ then the body,
//! └───────────────────────────────────┴──────────────────┴─────────┴────────┘ then CRC32C if
//!  12                                  16                 20        22      24  the flag says so
//! ```
//!
//! - **flags**: 0x80 is the *mark*: the sender says that a host waits for this frame. It is set
//!   before the frame is handed over, in a byte of its own, so a NIC needs to look at one byte.
//! - **full**, 0x02: the sender of this frame has so many messages that no receive has taken that
//!   its receiver must begin no new one. Messages that have begun, and all else, go on.
//! - **ask**, 0x04: the sender of this frame can send no more until it hears what has arrived; an
//!   acknowledgement should not wait. In a pull: it will soon have nothing to do before it has the
//!   last of these frames, which should be marked. In a reply: this is the last.
//! - **token**: chosen at random by the receiver of this frame when the two connected. Frames of an
//!   earlier life, of strangers and of forgers do not have it.
//! - **sequence number**: of this frame, if its type is [sequenced](FrameType::is_sequenced); such
//!   frames are processed in order. Of the next such frame, otherwise.
//! - **acknowledged**, **window**: the sender of this frame has all sequenced frames before the
//!   one, and takes so many more.
//! - **credit**: how many bytes of eager messages its receiver may send, counted modulo 2^32 since
//!   they connected.
//! - **length** of the body: Ethernet pads short frames, and [`write()`] those that may be
//!   [refused](FrameType::is_refused).
//!
//! The types bear the numbers of their relatives in Open-MX (`omx_wire.h`), the layouts do not.
//!
//! **If you add a type, also change**: [`FrameType`] and its name; [`Body`] and both
//! directions in `parse.rs` and `write.rs`; `Endpoint::handle_frame`; `docs/mx-protocol.md`; the
//! dissector.

mod parse;
mod run;
#[cfg(test)]
mod tests;
mod write;

pub(crate) use parse::parse_reply_head;
pub use parse::{Malformed, parse};
pub use run::{BULK_EAGER, BULK_FRAME, BULK_PAYLOAD, RUN, RUN_FRAMES, RUN_HEAD, Run};
pub use write::write;
pub(crate) use write::{REFUSAL, overhead, write_data, write_head};

use crate::seq::Seq;

/// The EtherType of MX frames: the one that Open-MX uses by default.
pub const ETHER_TYPE: u16 = 0x86df;
/// The version of the protocol, which two endpoints compare when they connect.
pub const VERSION: u16 = 3;
/// Bytes of the header that every frame begins with.
pub const HEADER: usize = 24;
pub(crate) const CHECKSUM: usize = 4;
/// The bit of the flags byte by which the sender marks a frame.
pub const FLAG_MARK: u8 = 0x80;
/// The bit of the flags byte that forbids to begin a message.
pub(crate) const FLAG_FULL: u8 = 0x02;
/// The bit of the flags byte that asks for an acknowledgement, or for another pull.
pub const FLAG_ASK: u8 = 0x04;
/// The bit of the flags byte that says that a CRC32C follows the body.
pub(crate) const FLAG_CRC: u8 = 0x01;
/// Bytes of the longest list of frames that came out of order.
pub const BITMAP: usize = 32;

/// Bytes of the longest head of a message that its announcement takes along.
pub const HEAD: usize = 16;

/// In the end of a transfer, instead of a number of bytes: the receiver is being closed, and
/// never asks for the message.
pub const REFUSED: u64 = u64::MAX;

named! {
    /// What a frame is for.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    #[repr(u8)]
    pub enum FrameType {
        /// An acknowledgement that no other frame could take along.
        Ack = 35 => "ack",
        /// A request to connect, or the answer to one.
        Connect = 36 => "connect",
        /// A whole message.
        Small = 38 => "small",
        /// A piece of an eager message.
        Medium = 39 => "medium",
        /// There is a large message; its receiver may pull it.
        Rendezvous = 40 => "rendezvous",
        /// The receiver of a large message asks for up to 32 frames of it.
        Pull = 41 => "pull",
        /// One of these frames.
        Reply = 42 => "reply",
        /// The receiver has what it wanted of a large message.
        Notify = 43 => "notify",
        /// The sender has a frame back that was refused.
        Nack = 44 => "nack",
        /// Are you there?
        Probe = 46 => "probe",
        /// Nothing more will come from this endpoint.
        Close = 47 => "close",
    }
}

impl FrameType {
    /// Its place in [`FrameType::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        let number = self as usize;
        // No type has the numbers 37 and 45.
        number - Self::Ack as usize - (number > 37) as usize - (number > 45) as usize
    }

    /// Whether such frames are numbered, acknowledged, and processed in order.
    #[must_use]
    pub const fn is_sequenced(self) -> bool {
        matches!(self, Self::Small | Self::Medium | Self::Rendezvous | Self::Notify | Self::Close)
    }

    /// Whether a stranger's frame of this type is refused by a nack, since its sender waits for an
    /// answer. It is at least as long as the nack, so that a forged one brings no more than it has.
    #[must_use]
    pub const fn is_refused(self) -> bool {
        self.is_sequenced() || matches!(self, Self::Probe | Self::Pull)
    }

    fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|frame| *frame as u8 == number)
    }
}

/// What every frame says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The sender marked this frame.
    pub marked: bool,
    /// A CRC32C follows the body.
    pub crc: bool,
    /// The receiver of this frame must begin no message.
    pub full: bool,
    /// The sender of this frame waits for an acknowledgement.
    pub ask: bool,
    /// The endpoint that this frame is for.
    pub to: u8,
    /// The endpoint that sent it.
    pub from: u8,
    /// What the receiver of this frame chose when the two connected.
    pub token: u32,
    /// The number of this frame, or of the next one that is numbered.
    pub seq: Seq,
    /// All numbered frames before this one have arrived.
    pub ack: Seq,
    /// Bytes of eager messages that may be sent, counted since the two connected.
    pub credit: u32,
    /// Numbered frames that may be sent beyond those acknowledged.
    pub window: u16,
}

/// What a frame says beyond its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Numbered frames that have arrived beyond the acknowledged ones: bit `i` of byte `j`, from
    /// the least significant on, is the frame `8 j + i + 1` after the first that is missing.
    Ack(&'a [u8]),
    /// A request or a reply.
    Connect(Connect),
    /// Match information, and the message.
    Small(u64, &'a [u8]),
    /// A piece of a message.
    Medium {
        /// What a receive is matched with.
        match_info: u64,
        /// Bytes of the whole message.
        total: u32,
        /// Where this piece begins.
        offset: u32,
        /// The bytes of the piece.
        data: &'a [u8],
    },
    /// A message that may be pulled.
    Rendezvous {
        /// What a receive is matched with.
        match_info: u64,
        /// Bytes of the message.
        total: u64,
        /// The sender's name for it.
        region: u32,
        /// The message begins with this, for those who only look at it.
        head: &'a [u8],
    },
    /// A request for some frames of a message.
    Pull(Pull),
    /// One of them.
    Reply {
        /// The receiver's name for the transfer.
        pull: u32,
        /// Which frame of the message this is, modulo 2^32.
        index: u32,
        /// Bytes of the message.
        data: &'a [u8],
    },
    /// The end of a transfer.
    Notify(Notify),
    /// A frame was refused.
    Nack(Nack),
    /// A question that an acknowledgement answers.
    Probe,
    /// The end of an endpoint.
    Close,
}

impl Body<'_> {
    /// Bytes of a message, or of an acknowledgement's list, that follow what has a fixed length.
    #[must_use]
    pub const fn data(&self) -> &[u8] {
        match self {
            Self::Ack(data)
            | Self::Small(_, data)
            | Self::Medium { data, .. }
            | Self::Rendezvous { head: data, .. }
            | Self::Reply { data, .. } => data,
            _ => &[],
        }
    }

    /// The type of the frame.
    #[must_use]
    pub const fn frame_type(&self) -> FrameType {
        match self {
            Self::Ack(_) => FrameType::Ack,
            Self::Connect(_) => FrameType::Connect,
            Self::Small(..) => FrameType::Small,
            Self::Medium { .. } => FrameType::Medium,
            Self::Rendezvous { .. } => FrameType::Rendezvous,
            Self::Pull(_) => FrameType::Pull,
            Self::Reply { .. } => FrameType::Reply,
            Self::Notify(_) => FrameType::Notify,
            Self::Nack(_) => FrameType::Nack,
            Self::Probe => FrameType::Probe,
            Self::Close => FrameType::Close,
        }
    }
}

/// A request to connect, or the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connect {
    /// This life of the endpoint: a random number that it chose when it was opened.
    pub instance: u64,
    /// What the other has to send as token from now on.
    pub token: u32,
    /// What is needed to connect.
    pub key: u32,
    /// Version of the protocol; see [`VERSION`].
    pub version: u16,
    /// The largest frame that the sender can take, in bytes after the Ethernet header.
    pub mtu: u16,
    /// The answer; in a request, [`ConnectStatus::Request`].
    pub status: ConnectStatus,
    /// The sender wants checksums.
    pub crc: bool,
}

/// Whether two endpoints are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ConnectStatus {
    /// This is a question.
    Request = 0,
    /// They are connected from now on.
    Accepted = 1,
    /// The key is wrong.
    BadKey = 2,
    /// They speak different versions of the protocol.
    BadVersion = 3,
    /// There are too many peers.
    Busy = 4,
}

/// A request for frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pull {
    /// The sender's name for the message.
    pub region: u32,
    /// The receiver's name for the transfer.
    pub pull: u32,
    /// Where the first of up to 32 frames begins, in bytes from the start of the message.
    pub offset: u64,
    /// Which of them are wanted; the first is the least significant bit.
    pub wanted: u32,
    /// The number of the first one, modulo 2^32.
    pub first: u32,
    /// Bytes of data in each of them: as many as the MTU permits, or [`BULK_PAYLOAD`].
    pub payload: u16,
}

/// The end of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notify {
    /// The sender's name for the message.
    pub region: u32,
    /// Bytes that the receiver took, or [`REFUSED`].
    pub delivered: u64,
}

/// A frame that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack {
    /// The token of that frame, which shows that this is the answer to it.
    pub token: u32,
    /// Why that frame was refused.
    pub reason: NackReason,
}

/// Why a frame was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NackReason {
    /// There is no such endpoint.
    NoEndpoint = 1,
    /// There is one, but it knows nothing of the sender: it was restarted.
    BadToken = 2,
}

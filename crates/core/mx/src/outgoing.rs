//! A frame on its way out, and its path.

use crate::address::{Address, NicId};
use crate::ids::SendId;
use crate::wire::FrameType;

/// What a port has to know of a frame that was written for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The interface that the frame is for.
    pub to: NicId,
    /// The endpoint there, by which a port may choose a queue, or a way within this host.
    pub endpoint: u8,
    /// Its mark, which a port may copy to where other NICs look, such as the VLAN priority.
    pub marked: bool,
    /// Bytes that were written. More than the MTU: a bulk frame, for the peer's [`BulkPath`].
    pub length: usize,
    /// What the frame is for; `None` for one of another protocol, which a port has of its own.
    pub frame_type: Option<FrameType>,
    /// Bytes of messages in it; of an announcement, of the head that it takes along.
    pub payload: usize,
}

impl Outgoing {
    /// A frame of `length` bytes that is none of this protocol's, without a mark.
    #[must_use]
    pub const fn new(to: NicId, endpoint: u8, length: usize) -> Self {
        Self { to, endpoint, marked: false, length, frame_type: None, payload: 0 }
    }

    /// The endpoint that it is for.
    #[must_use]
    pub const fn address(&self) -> Address {
        Address { nic: self.to, endpoint: self.endpoint }
    }
}

/// A second path to a peer, for frames with much data, beside the one whose frames the MTU limits:
/// a connection on which nothing is lost as long as it is open, such as one of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BulkPath {
    /// There is none, or none any more: what was sent and not acknowledged may be lost.
    #[default]
    Closed,
    /// It takes frames.
    Open,
    /// It takes no frame for now.
    Full,
}

/// What has become of the bulk path to a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkState {
    /// Whether it takes frames.
    pub path: BulkPath,
    /// Eager messages of more bytes than this gain by it, if that is known better than
    /// [`Config::bulk_min`](crate::config::Config::bulk_min) has it.
    pub min: Option<u32>,
    /// Whether the peer can read large messages where they lie: the
    /// [data](crate::endpoint::Endpoint::data) of announcements are the messages, and may be read
    /// until these are complete.
    pub reads_memory: bool,
}

impl From<BulkPath> for BulkState {
    fn from(path: BulkPath) -> Self {
        Self { path, ..Self::default() }
    }
}

/// Where the data of a message lie that a peer has announced, as the port says through which the
/// announcement has come. The engine keeps it until there is a place for them
/// ([`Endpoint::next_read`](crate::endpoint::Endpoint::next_read)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Where in the memory of the peer.
    pub at: u64,
    /// How many bytes: all of the message but perhaps its first ones.
    pub length: u64,
    /// By which the port knows until when they are there.
    pub record: [u64; 2],
}

impl Reference {
    pub(crate) const fn part(self, offset: u64, length: u64) -> Self {
        Self { at: self.at + offset, length, ..self }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) send: SendId,
    pub(crate) offset: u64,
    pub(crate) length: usize,
}

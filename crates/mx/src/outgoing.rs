//! A frame on its way out, and its path.

use crate::address::NicId;
use crate::ids::SendId;

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
    /// Whether data that are [not written](crate::endpoint::Endpoint::data) to frames may be read
    /// after the frame was handed over.
    pub reads_later: bool,
}

impl From<BulkPath> for BulkState {
    fn from(path: BulkPath) -> Self {
        Self { path, ..Self::default() }
    }
}

/// Bytes of a message that follow those which were written of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Data {
    pub(crate) send: SendId,
    pub(crate) offset: u64,
    pub(crate) length: usize,
}

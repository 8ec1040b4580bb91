//! Requests and completions.

use mx::ids::{PeerId, ReceiveId, SendId};
use mx::status::{RequestError, Status};

/// A request that has been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// A message that is sent.
    Send(SendId),
    /// A receive that was posted.
    Receive(ReceiveId),
    /// An attempt to connect to a peer.
    Connect(PeerId),
}

/// What the completion of an attempt to connect carries, as a message carries its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// Match information, by which [`Endpoint::wait_any`](super::Endpoint::wait_any) finds it.
    pub match_info: u64,
    /// The context of the request.
    pub context: u64,
}

impl Label {
    pub(super) const fn status(self, peer: PeerId, result: Result<(), RequestError>) -> Status {
        let Self { match_info, context } = self;
        Status { result, peer: Some(peer), match_info, length: 0, transferred: 0, context }
    }
}

/// A request that has ended.
#[derive(Debug)]
pub struct Completed<R> {
    /// The request that has ended.
    pub request: RequestId,
    /// Its result, and the message that it was about.
    pub status: Status,
    /// The memory of a receive, with the message.
    pub sink: Option<R>,
}

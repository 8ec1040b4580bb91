//! Requests, and what ends them.

use mx::ids::{PeerId, ReceiveId, SendId};
use mx::status::Status;

/// A request that has been made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// To send.
    Send(SendId),
    /// To receive.
    Receive(ReceiveId),
    /// To connect.
    Connect(PeerId),
}

/// A request that has ended.
#[derive(Debug)]
pub struct Completed<R> {
    /// Which one.
    pub request: Request,
    /// How.
    pub status: Status,
    /// The memory of a receive, with the message.
    pub sink: Option<R>,
}

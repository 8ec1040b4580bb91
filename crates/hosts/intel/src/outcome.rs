//! What came of frames and causes, for cards and functions alike.

use super::message::Signal;

/// What came of looking for a frame that the driver sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// A frame.
    Frame,
    /// None yet, though there are descriptors.
    More,
    /// None.
    Nothing,
}

/// An interrupt that went out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raised {
    /// What the guest's bus is told; nothing if the vector is masked there.
    pub signal: Option<Signal>,
    /// The receive queues whose frames interrupt this way, a bit for each.
    pub queues: u32,
}

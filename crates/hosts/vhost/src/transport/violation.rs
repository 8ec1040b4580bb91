//! What ends a session.

use std::io;

use super::connection::ConnectionError;
use super::memory::MemoryError;
use super::message::MessageError;
use super::ring::RingError;

/// What a frontend or its guest did that costs it the port.
#[expect(missing_docs, reason = "the messages say it")]
#[derive(Debug, thiserror::Error)]
pub enum ProtocolViolation {
    /// The connection ended, or carries nonsense.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// A message is none.
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("vhost-user request {0} is unknown here, and an unknown answer may be expected")]
    Unknown(u32),
    #[error("the guest takes features {0:#x}, which were not offered")]
    Features(u64),
    #[error("the guest's driver does not speak virtio 1.0; a newer one is needed")]
    Legacy,
    #[error("{0} is about ring {1}; there are {2}")]
    NoSuchRing(String, u32, usize),
    #[error("{0} came with {1} file descriptors")]
    Descriptors(String, usize),
    #[error("{0} of ring {1}: {2}")]
    Descriptor(&'static str, usize, io::Error),
    #[error("ring {0} begins at {1}; indices have 16 bits")]
    Base(u32, u32),
    #[error("guest memory: {0}")]
    Memory(#[from] MemoryError),
    #[error("ring {0}: {1}")]
    Ring(usize, RingError),
    #[error("the guest has taken memory away that it had shared")]
    Poisoned,
    /// The process that connected has ended; a socket that it passed may keep its connection open.
    #[error("the frontend's process has ended")]
    Ended,
    #[error("the device was to use memory that the guest has not: {0}")]
    Dma(MemoryError),
    #[error("the frontend passes descriptors faster than they can be closed")]
    Unclosed,
    #[error("evicted")]
    Evicted,
}

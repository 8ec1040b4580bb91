//! A frame on its way out.

use crate::address::NicId;

/// What a port has to know of a frame that was written for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The interface that the frame is for.
    pub to: NicId,
    /// The endpoint there, by which a port may choose a queue, or a way within this host.
    pub endpoint: u8,
    /// Its mark, which a port may copy to where other NICs look, such as the VLAN priority.
    pub marked: bool,
    /// Bytes that were written.
    pub length: usize,
}

//! What the NIC notes of a packet while it moves it into host memory.

use crate::time::Instant;

/// A packet on its way to the host: Algorithm 1's "packet Descriptor" (Goglin and Furmento 2009,
/// section III-B).
///
/// The classifier has marked it, or not, before moderation sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// Frame length in bytes, Ethernet header included, frame check sequence excluded.
    pub length: u32,
    /// This packet completes something a host waits for.
    pub marked: bool,
    /// When the frame came off the wire.
    pub arrived_at: Instant,
    /// When its DMA completed: from here on the host can read it, and its hold begins. Before
    /// that, when it is due.
    pub completed_at: Instant,
}

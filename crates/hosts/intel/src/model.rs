//! Which card it is, and what it says of itself.

use super::configuration::Identity;

/// The MSI-X vectors of an 82574.
pub(crate) const VECTORS: u8 = 5;

/// Bytes of the registers.
pub(crate) const REGISTERS: u32 = 0x2_0000;

/// Model of an emulated card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// The 82574L, with five MSI-X vectors: Linux's `e1000e`.
    E82574,
    /// The 82545GM, with one pin for everything: Linux's `e1000`.
    E82545,
}

impl Model {
    /// The largest packet that its driver sends and receives, without the Ethernet header, in
    /// bytes.
    pub fn max_mtu(self) -> u16 {
        match self {
            // What Linux allows: `max_hw_frame_size` of `e1000_82574_info` less header, tag and
            // checksum, and `MAX_JUMBO_FRAME_SIZE` less header and checksum.
            Self::E82574 => 9_212,
            Self::E82545 => 16_110,
        }
    }

    pub(crate) fn identity(self) -> Identity {
        let (device, vectors) = match self {
            Self::E82574 => (0x10D3, VECTORS),
            Self::E82545 => (0x1026, 0),
        };
        Identity { device, revision: 0, subsystem: 0x1004, registers: REGISTERS, vectors }
    }

    /// What `STATUS` says after a reset, but for the link: full duplex, 1000 Mbit/s.
    pub(crate) fn status(self) -> u32 {
        match self {
            Self::E82574 => 0x0008_0781,
            Self::E82545 => 0x3781,
        }
    }
}

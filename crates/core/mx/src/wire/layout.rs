//! How the parts of a frame lie in memory.

use zerocopy::big_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct HeaderLayout {
    pub(super) frame_type: u8,
    pub(super) flags: u8,
    pub(super) to: u8,
    pub(super) from: u8,
    pub(super) token: U32,
    pub(super) seq: U32,
    pub(super) ack: U32,
    pub(super) credit: U32,
    pub(super) window: U16,
    pub(super) length: U16,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ConnectLayout {
    pub(super) instance: U64,
    pub(super) token: U32,
    pub(super) key: U32,
    pub(super) version: U16,
    pub(super) mtu: U16,
    pub(super) status: u8,
    pub(super) crc: u8,
    pub(super) reserved: U16,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct SmallLayout {
    pub(super) match_info: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct MediumLayout {
    pub(super) match_info: U64,
    pub(super) total: U32,
    pub(super) offset: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct RendezvousLayout {
    pub(super) match_info: U64,
    pub(super) total: U64,
    pub(super) region: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct PullLayout {
    pub(super) region: U32,
    pub(super) pull: U32,
    pub(super) offset: U64,
    pub(super) wanted: U32,
    pub(super) first: U32,
    pub(super) payload: U16,
}

#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct ReplyLayout {
    pub(super) pull: U32,
    pub(super) index: U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct NotifyLayout {
    pub(super) region: U32,
    pub(super) delivered: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct NackLayout {
    pub(super) token: U32,
    pub(super) reason: u8,
    pub(super) reserved: [u8; 3],
}

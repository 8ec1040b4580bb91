//! What sends with and without a tag have in common.

use std::ffi::c_void;

use super::object::{Ep, enabled};
use super::send::Send;
use crate::abi::constants::{FI_EOPBADSTATE, FI_INJECT};
use crate::abi::fid_ref;
use crate::abi::transfers::FidEp;
use crate::bits::Kind;
use crate::memory::Segments;

/// A send with the flags that the endpoint has for those without.
pub(super) fn sending(
    (ep, kind): (*mut FidEp, Kind),
    memory: Segments,
    to: u64,
    (tag, data): (u64, Option<u64>),
    context: *mut c_void,
) -> isize {
    let live = enabled!(ep);
    let (flags, context) = (live.tx.flags(), context as usize);
    let told = live.tx.tells(flags);
    live.send(&Send { kind, to, tag, data, memory, context, flags, told })
}

/// A send whose memory may be used again at once, and whose end is not told.
pub(super) fn injecting(
    (ep, kind): (*mut FidEp, Kind),
    memory: Segments,
    to: u64,
    (tag, data): (u64, Option<u64>),
) -> isize {
    let flags = FI_INJECT;
    enabled!(ep).send(&Send { kind, to, tag, data, memory, context: 0, flags, told: false })
}

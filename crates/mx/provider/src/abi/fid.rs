//! What every object begins with.

use std::ffi::{c_char, c_int, c_void};

use libc::EINVAL;

use super::constants::FI_CLASS_EQ;
use super::{fid_ref, fid_take};

c_struct! {
    Fid { class: usize, context: *mut c_void, ops: *const FidOps }
}

c_table! {
    FidOps {
        close(*mut Fid) -> c_int;
        bind(*mut Fid, *mut Fid, u64) -> c_int;
        control(*mut Fid, c_int, *mut c_void) -> c_int;
        ops_open(*mut Fid, *const c_char, u64, *mut *mut c_void, *mut c_void) -> c_int;
    }
}

/// Closes an object of this type, which nothing else has to know of.
pub(crate) unsafe extern "C" fn close<T>(fid: *mut Fid) -> c_int {
    drop(fid_take!(fid, T));
    0
}

/// An event queue may be bound; nothing of ours is reported there.
pub(crate) unsafe extern "C" fn bind_eq(_fid: *mut Fid, other: *mut Fid, _flags: u64) -> c_int {
    if fid_ref!(other, Fid).class == FI_CLASS_EQ { 0 } else { -EINVAL }
}

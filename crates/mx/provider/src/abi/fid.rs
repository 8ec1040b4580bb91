//! What every object begins with.

use std::ffi::{c_char, c_int, c_void};

use libc::EINVAL;

use super::constants::FI_CLASS_EQ;
use super::{fid_ref, fid_take};
use crate::refuse;

#[repr(C)]
pub(crate) struct Fid {
    pub(crate) class: usize,
    pub(crate) context: *mut c_void,
    pub(crate) ops: *const FidOps,
}

#[repr(C)]
pub(crate) struct FidOps {
    pub(crate) size: usize,
    pub(crate) close: unsafe extern "C" fn(*mut Fid) -> c_int,
    pub(crate) bind: unsafe extern "C" fn(*mut Fid, *mut Fid, u64) -> c_int,
    pub(crate) control: unsafe extern "C" fn(*mut Fid, c_int, *mut c_void) -> c_int,
    pub(crate) ops_open:
        unsafe extern "C" fn(*mut Fid, *const c_char, u64, *mut *mut c_void, *mut c_void) -> c_int,
}

impl FidOps {
    /// Those of an object that is only closed.
    pub(crate) const fn closing(close: unsafe extern "C" fn(*mut Fid) -> c_int) -> Self {
        let (bind, control, ops_open) = (refuse::bind, refuse::control, refuse::ops_open);
        Self { size: size_of::<Self>(), close, bind, control, ops_open }
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

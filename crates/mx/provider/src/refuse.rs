//! Functions of libfabric that this provider refuses.

use std::ffi::{c_char, c_int, c_void};

use libc::ENOSYS;

use crate::abi::fid::Fid;

/// A function of these types that says that it is not there.
macro_rules! refuse {
    ($($type:ty),* => $result:ty) => {{
        unsafe extern "C" fn refuse($(_: $type),*) -> $result {
            -(libc::ENOSYS as $result)
        }
        refuse
    }};
}

pub(crate) use refuse;

pub(crate) unsafe extern "C" fn bind(_fid: *mut Fid, _other: *mut Fid, _flags: u64) -> c_int {
    -ENOSYS
}

pub(crate) unsafe extern "C" fn control(_fid: *mut Fid, _command: c_int, _: *mut c_void) -> c_int {
    -ENOSYS
}

pub(crate) unsafe extern "C" fn ops_open(
    _fid: *mut Fid,
    _name: *const c_char,
    _flags: u64,
    _ops: *mut *mut c_void,
    _context: *mut c_void,
) -> c_int {
    -ENOSYS
}

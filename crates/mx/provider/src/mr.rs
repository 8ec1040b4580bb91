//! Memory that peers may write to and read from: `fi_mr_reg`.
//!
//! Keys are the program's own, and addresses count from the beginning of the memory (`mr_mode` 0,
//! which libfabric called scalable once). Nothing is pinned: frames are copied.
//!
//! A program that closes a region, or frees its memory, while peers still write to it or read from
//! it has a fault of its own, as with every provider.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use libc::{EINVAL, iovec};

use crate::abi::constants::{FI_CLASS_MR, FI_ENOKEY};
use crate::abi::fid::{Fid, FidOps, close};
use crate::abi::objects::{FidMr, MrAttr, MrOps};
use crate::abi::{arg_ref, fid_ref, out};
use crate::domain::Domain;
use crate::regions::{Region, Regions};

#[repr(C)]
struct Mr {
    fid: FidMr,
    regions: Arc<Regions>,
}

static FID: FidOps = FidOps { close: close::<Mr>, ..FidOps::REFUSES };

pub(crate) static OPS: MrOps = MrOps { reg, regv, regattr, ..MrOps::REFUSES };

fn register(
    domain: *mut Fid,
    start: *const c_void,
    length: usize,
    access: u64,
    key: u64,
    context: *mut c_void,
    place: *mut *mut Fid,
) -> c_int {
    let regions = Arc::clone(&fid_ref!(domain, Domain).regions);
    let region = Region { start: start.expose_provenance(), length, access };
    if !regions.add(key, region) {
        return -FI_ENOKEY;
    }
    let fid = Fid { class: FI_CLASS_MR, context, ops: &raw const FID };
    let fid = FidMr { fid, mem_desc: std::ptr::null_mut(), key };
    out!(place, Box::into_raw(Box::new(Mr { fid, regions })).cast());
    0
}

unsafe extern "C" fn reg(
    domain: *mut Fid,
    start: *const c_void,
    length: usize,
    access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    place: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    register(domain, start, length, access, key, context, place)
}

unsafe extern "C" fn regv(
    domain: *mut Fid,
    list: *const iovec,
    count: usize,
    access: u64,
    _offset: u64,
    key: u64,
    _flags: u64,
    place: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    let Some(part) = arg_ref!(list).filter(|_| count == 1) else { return -EINVAL };
    register(domain, part.iov_base, part.iov_len, access, key, context, place)
}

unsafe extern "C" fn regattr(
    domain: *mut Fid,
    attr: *const MrAttr,
    _flags: u64,
    place: *mut *mut Fid,
) -> c_int {
    let Some(attr) = arg_ref!(attr) else { return -EINVAL };
    let MrAttr { iov, iov_count, access, requested_key, context, .. } = *attr;
    let Some(part) = arg_ref!(iov).filter(|_| iov_count == 1) else { return -EINVAL };
    register(domain, part.iov_base, part.iov_len, access, requested_key, context, place)
}

impl Drop for Mr {
    fn drop(&mut self) {
        self.regions.remove(self.fid.key);
    }
}

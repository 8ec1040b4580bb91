//! Memory that peers may write to and read from: `fi_mr_reg`.
//!
//! Keys are the program's own, and addresses count from the beginning of the memory (`mr_mode` 0,
//! which libfabric called scalable once). Nothing is pinned: frames are copied.
//!
//! A program that closes a region, or frees its memory, while peers still write to it or read from
//! it has a fault of its own, as with every provider.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Arc, PoisonError, RwLock};

use libc::{EACCES, EINVAL, iovec};

use crate::abi::constants::{FI_CLASS_MR, FI_ENOKEY, FI_REMOTE_READ, FI_REMOTE_WRITE};
use crate::abi::objects::{Fid, FidMr, FidOps, MrAttr, MrOps};
use crate::abi::{give, ours, taken, theirs};
use crate::domain::Domain;
use crate::memory::{Segments, lent};
use crate::refuse;

/// Memory that was registered, as a number: nobody here looks at it without a request.
#[derive(Clone, Copy, Debug)]
struct Region {
    start: usize,
    length: usize,
    access: u64,
}

/// The memory of a domain, by key.
#[derive(Debug, Default)]
pub(crate) struct Regions(RwLock<HashMap<u64, Region>>);

impl Regions {
    /// What peers may write to, or read from; otherwise a number of libfabric.
    pub(crate) fn find(
        &self,
        key: u64,
        (offset, length): (u64, u64),
        writes: bool,
    ) -> Result<Segments, c_int> {
        let regions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let region = regions.get(&key).ok_or(FI_ENOKEY)?;
        let wanted = if writes { FI_REMOTE_WRITE } else { FI_REMOTE_READ };
        let end = offset.checked_add(length).ok_or(EINVAL)?;
        if region.access & wanted == 0 || end > region.length as u64 {
            return Err(EACCES);
        }
        let start = std::ptr::with_exposed_provenance_mut::<u8>(region.start);
        Ok(lent!(one, start.wrapping_add(offset as usize), length as usize))
    }

    /// False if the key is taken.
    fn add(&self, key: u64, region: Region) -> bool {
        let mut regions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_free = !regions.contains_key(&key);
        if is_free {
            regions.insert(key, region);
        }
        is_free
    }

    fn remove(&self, key: u64) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}

#[repr(C)]
struct Mr {
    fid: FidMr,
    regions: Arc<Regions>,
}

static FID: FidOps = FidOps {
    size: size_of::<FidOps>(),
    close,
    bind: refuse::bind,
    control: refuse::control,
    ops_open: refuse::ops_open,
};

pub(crate) static OPS: MrOps = MrOps { size: size_of::<MrOps>(), reg, regv, regattr };

fn register(
    domain: *mut Fid,
    (start, length): (*const c_void, usize),
    (access, key): (u64, u64),
    context: *mut c_void,
    place: *mut *mut Fid,
) -> c_int {
    let regions = Arc::clone(&ours!(domain, Domain).regions);
    let region = Region { start: start.expose_provenance(), length, access };
    if !regions.add(key, region) {
        return -FI_ENOKEY;
    }
    let fid = Fid { class: FI_CLASS_MR, context, ops: &raw const FID };
    let fid = FidMr { fid, mem_desc: std::ptr::null_mut(), key };
    give!(place, Box::into_raw(Box::new(Mr { fid, regions })).cast());
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
    register(domain, (start, length), (access, key), context, place)
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
    let Some(part) = theirs!(list).filter(|_| count == 1) else { return -EINVAL };
    register(domain, (part.iov_base, part.iov_len), (access, key), context, place)
}

unsafe extern "C" fn regattr(
    domain: *mut Fid,
    attr: *const MrAttr,
    _flags: u64,
    place: *mut *mut Fid,
) -> c_int {
    let Some(attr) = theirs!(attr) else { return -EINVAL };
    let Some(part) = theirs!(attr.iov).filter(|_| attr.iov_count == 1) else { return -EINVAL };
    let which = (attr.access, attr.requested_key);
    register(domain, (part.iov_base, part.iov_len), which, attr.context, place)
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    let mr = taken!(fid, Mr);
    mr.regions.remove(mr.fid.key);
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_found_as_far_as_it_was_registered() {
        let mut bytes = *b"abcdef";
        let start = bytes.as_mut_ptr().expose_provenance();
        let regions = Regions::default();
        assert!(regions.add(7, Region { start, length: 6, access: FI_REMOTE_READ }));
        assert!(!regions.add(7, Region { start, length: 1, access: 0 }), "a key is of one region");
        let mut piece = [0; 2];
        regions.find(7, (4, 2), false).unwrap().read(0, &mut piece);
        assert_eq!(&piece, b"ef");
        assert_eq!(regions.find(7, (4, 2), true).unwrap_err(), EACCES);
        assert_eq!(regions.find(7, (5, 2), false).unwrap_err(), EACCES);
        assert_eq!(regions.find(7, (u64::MAX, 2), false).unwrap_err(), EINVAL);
        assert_eq!(regions.find(8, (0, 1), false).unwrap_err(), FI_ENOKEY);
        regions.remove(7);
        assert_eq!(regions.find(7, (0, 1), false).unwrap_err(), FI_ENOKEY);
    }
}

//! The memory that peers may use, by key.

use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::{PoisonError, RwLock};

use libc::{EACCES, EFAULT, EINVAL};

use crate::abi::constants::{FI_ENOKEY, FI_REMOTE_READ, FI_REMOTE_WRITE};
use crate::memory::{Segments, borrow_iov};

/// Memory that was registered, as a number: this provider does not read it without a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) start: usize,
    pub(crate) length: usize,
    pub(crate) access: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Regions(RwLock<HashMap<u64, Region>>);

impl Regions {
    /// What peers may write to, or read from; otherwise a number of libfabric.
    pub(crate) fn find(
        &self,
        key: u64,
        offset: u64,
        length: u64,
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
        let memory = borrow_iov!(one, start.wrapping_add(offset as usize), length as usize);
        if memory.is_possible() { Ok(memory) } else { Err(EFAULT) }
    }

    pub(crate) fn add(&self, key: u64, region: Region) -> bool {
        let mut regions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_free = !regions.contains_key(&key);
        if is_free {
            regions.insert(key, region);
        }
        is_free
    }

    pub(crate) fn remove(&self, key: u64) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&key);
    }
}

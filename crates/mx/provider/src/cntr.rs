//! Counters: how many operations have ended, well or badly.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use libc::{EBUSY, ENOSYS, ETIMEDOUT};

use crate::abi::constants::{FI_CLASS_CNTR, FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_YIELD};
use crate::abi::fid::{Fid, FidOps};
use crate::abi::objects::{CntrAttr, CntrOps, FidCntr, FidDomain};
use crate::abi::{arg_ref, fid_ref, fid_take, out};
use crate::bound::Bound;

#[derive(Default)]
pub(crate) struct Counter {
    ended: AtomicU64,
    failed: AtomicU64,
    pub(crate) bound: Bound,
}

impl Counter {
    pub(crate) fn count(&self, well: bool) {
        let counter = if well { &self.ended } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

#[repr(C)]
pub(crate) struct Cntr {
    fid: FidCntr,
    pub(crate) counter: Arc<Counter>,
}

static FID: FidOps = FidOps { close, ..FidOps::REFUSES };

static OPS: CntrOps = CntrOps { read, readerr, add, set, wait, adderr, seterr, ..CntrOps::REFUSES };

pub(crate) unsafe extern "C" fn open(
    _domain: *mut FidDomain,
    attr: *mut CntrAttr,
    place: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    let wait_obj = arg_ref!(attr).map_or(FI_WAIT_NONE, |attr| attr.wait_obj);
    if ![FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_YIELD].contains(&wait_obj) {
        return -ENOSYS;
    }
    let fid = Fid { class: FI_CLASS_CNTR, context, ops: &raw const FID };
    let fid = FidCntr { fid, ops: &raw const OPS };
    out!(place, Box::into_raw(Box::new(Cntr { fid, counter: Arc::default() })).cast());
    0
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    if !fid_ref!(fid, Cntr).counter.bound.is_empty() {
        return -EBUSY;
    }
    drop(fid_take!(fid, Cntr));
    0
}

macro_rules! calls {
    ($field:ident: $read:ident, $add:ident, $set:ident) => {
        unsafe extern "C" fn $read(cntr: *mut FidCntr) -> u64 {
            let counter = &fid_ref!(cntr, Cntr).counter;
            counter.bound.progress();
            counter.$field.load(Ordering::Relaxed)
        }

        unsafe extern "C" fn $add(cntr: *mut FidCntr, value: u64) -> c_int {
            fid_ref!(cntr, Cntr).counter.$field.fetch_add(value, Ordering::Relaxed);
            0
        }

        unsafe extern "C" fn $set(cntr: *mut FidCntr, value: u64) -> c_int {
            fid_ref!(cntr, Cntr).counter.$field.store(value, Ordering::Relaxed);
            0
        }
    };
}

calls!(ended: read, add, set);
calls!(failed: readerr, adderr, seterr);

unsafe extern "C" fn wait(cntr: *mut FidCntr, threshold: u64, timeout: c_int) -> c_int {
    let counter = &fid_ref!(cntr, Cntr).counter;
    let begun = Instant::now();
    let limit = u64::try_from(timeout).map_or(Duration::MAX, Duration::from_millis);
    let failed = counter.failed.load(Ordering::Relaxed);
    loop {
        counter.bound.progress();
        if counter.ended.load(Ordering::Relaxed) >= threshold {
            return 0;
        }
        if counter.failed.load(Ordering::Relaxed) != failed {
            return -crate::abi::constants::FI_EAVAIL;
        }
        if begun.elapsed() >= limit {
            return -ETIMEDOUT;
        }
        std::thread::yield_now();
    }
}

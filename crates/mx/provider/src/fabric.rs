//! The fabric: all who speak MX. It only makes domains and event queues.

use std::ffi::{c_int, c_void};

use libc::{EAGAIN, EINVAL};

use crate::abi::constants::{FI_CLASS_CQ, FI_CLASS_FABRIC};
use crate::abi::fid::{Fid, FidOps, close};
use crate::abi::info::FabricAttr;
use crate::abi::objects::{FabricOps, FidFabric};
use crate::abi::{arg_ref, fid_ref, out};
use crate::cq::Cq;
use crate::{domain, eq};

#[repr(C)]
struct Fabric {
    fid: FidFabric,
}

static FID: FidOps = FidOps { close: close::<Fabric>, ..FidOps::REFUSES };

static OPS: FabricOps =
    FabricOps { domain: domain::open, eq_open: eq::open, trywait, ..FabricOps::REFUSES };

pub(crate) unsafe extern "C" fn open(
    attr: *const FabricAttr,
    place: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    let api_version = arg_ref!(attr).map_or(0, |attr| attr.api_version);
    let fid = Fid { class: FI_CLASS_FABRIC, context, ops: &raw const FID };
    let fabric = Box::new(Fabric { fid: FidFabric { fid, ops: &raw const OPS, api_version } });
    out!(place, Box::into_raw(fabric).cast());
    0
}

/// Whether a program may sleep on what these have to wait on: not while there is something to read.
unsafe extern "C" fn trywait(_fabric: *mut FidFabric, fids: *mut *mut Fid, count: c_int) -> c_int {
    for index in 0..usize::try_from(count).unwrap_or(0) {
        let Some(fid) = arg_ref!(fids.wrapping_add(index)) else { return -EINVAL };
        if fid_ref!(*fid, Fid).class == FI_CLASS_CQ && !fid_ref!(*fid, Cq).queue.may_sleep() {
            return -EAGAIN;
        }
    }
    0
}

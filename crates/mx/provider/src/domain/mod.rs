//! The domain: one port of this host, with all that is made for it.

mod object;

use std::ffi::{c_int, c_void};

use libc::EINVAL;

use crate::abi::constants::{FI_CLASS_DOMAIN, FI_CLASS_EQ};
use crate::abi::fid::{Fid, FidOps};
use crate::abi::info::{Info, RxAttr, TxAttr};
use crate::abi::objects::{DomainOps, FidDomain, FidFabric};
use crate::abi::{fid_ref, fid_take, out};
use crate::refuse::{self, refuse};
use crate::{av, cntr, cq, endpoint, mr};
pub(crate) use object::Domain;

static FID: FidOps = FidOps {
    size: size_of::<FidOps>(),
    close,
    bind,
    control: refuse::control,
    ops_open: refuse::ops_open,
};

static OPS: DomainOps = DomainOps {
    size: size_of::<DomainOps>(),
    av_open: av::open,
    cq_open: cq::open,
    endpoint: endpoint::open,
    scalable_ep: refuse!(*mut FidDomain, *mut Info, *mut *mut Fid, *mut c_void => c_int),
    cntr_open: cntr::open,
    poll_open: refuse!(*mut FidDomain, *mut c_void, *mut *mut Fid => c_int),
    stx_ctx: refuse!(*mut FidDomain, *mut TxAttr, *mut *mut Fid, *mut c_void => c_int),
    srx_ctx: refuse!(*mut FidDomain, *mut RxAttr, *mut *mut Fid, *mut c_void => c_int),
    query_atomic: refuse!(*mut FidDomain, c_int, c_int, *mut c_void, u64 => c_int),
    query_collective: refuse!(*mut FidDomain, c_int, *mut c_void, u64 => c_int),
};

pub(crate) unsafe extern "C" fn open(
    _fabric: *mut FidFabric,
    _info: *mut Info,
    place: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    let fid = Fid { class: FI_CLASS_DOMAIN, context, ops: &raw const FID };
    let fid = FidDomain { fid, ops: &raw const OPS, mr: &raw const mr::OPS };
    out!(place, Box::into_raw(Box::new(Domain::new(fid))).cast());
    0
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    drop(fid_take!(fid, Domain));
    0
}

/// An event queue may be bound; nothing that a domain of ours does is reported there.
unsafe extern "C" fn bind(_fid: *mut Fid, other: *mut Fid, _flags: u64) -> c_int {
    if fid_ref!(other, Fid).class == FI_CLASS_EQ { 0 } else { -EINVAL }
}

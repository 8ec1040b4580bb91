//! The domain: one port of this host, with all that is made for it.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::abi::constants::FI_CLASS_DOMAIN;
use crate::abi::fid::{Fid, FidOps, bind_eq, close};
use crate::abi::info::{Info, RxAttr, TxAttr};
use crate::abi::objects::{DomainOps, FidDomain, FidFabric};
use crate::abi::out;
use crate::refuse::refuse;
use crate::regions::Regions;
use crate::{av, cntr, cq, endpoint, mr};

#[repr(C)]
pub(crate) struct Domain {
    fid: FidDomain,
    /// The memory that peers may use.
    pub(crate) regions: Arc<Regions>,
}

static FID: FidOps = FidOps { bind: bind_eq, ..FidOps::closing(close::<Domain>) };

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
    out!(place, Box::into_raw(Box::new(Domain { fid, regions: Arc::default() })).cast());
    0
}

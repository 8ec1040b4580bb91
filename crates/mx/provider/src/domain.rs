//! The domain: one port of this host, with all that is made for it.

use std::ffi::{c_int, c_void};
use std::sync::Arc;

use crate::abi::constants::FI_CLASS_DOMAIN;
use crate::abi::fid::{Fid, FidOps, bind_eq, close};
use crate::abi::info::Info;
use crate::abi::objects::{DomainOps, FidDomain, FidFabric};
use crate::abi::out;
use crate::regions::Regions;
use crate::{av, cntr, cq, endpoint, mr};

#[repr(C)]
pub(crate) struct Domain {
    fid: FidDomain,
    /// The memory that peers may use.
    pub(crate) regions: Arc<Regions>,
}

static FID: FidOps = FidOps { close: close::<Domain>, bind: bind_eq, ..FidOps::REFUSES };

static OPS: DomainOps = DomainOps {
    av_open: av::open,
    cq_open: cq::open,
    endpoint: endpoint::open,
    cntr_open: cntr::open,
    ..DomainOps::REFUSES
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

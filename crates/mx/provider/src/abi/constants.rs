//! Numbers of `rdma/fabric.h` and its companions, as far as this provider knows them.

use std::ffi::c_int;

/// The interface of libfabric that this provider speaks: the newest one that was tried.
pub(crate) const API_VERSION: u32 = version(2, 5);

pub(crate) const fn version(major: u32, minor: u32) -> u32 {
    (major << 16) | minor
}

// Capabilities and flags of operations.
pub(crate) const FI_MSG: u64 = 1 << 1;
pub(crate) const FI_RMA: u64 = 1 << 2;
pub(crate) const FI_TAGGED: u64 = 1 << 3;
pub(crate) const FI_READ: u64 = 1 << 8;
pub(crate) const FI_WRITE: u64 = 1 << 9;
pub(crate) const FI_RECV: u64 = 1 << 10;
pub(crate) const FI_SEND: u64 = 1 << 11;
pub(crate) const FI_TRANSMIT: u64 = FI_SEND;
pub(crate) const FI_REMOTE_READ: u64 = 1 << 12;
pub(crate) const FI_REMOTE_WRITE: u64 = 1 << 13;
pub(crate) const FI_MULTI_RECV: u64 = 1 << 16;
pub(crate) const FI_REMOTE_CQ_DATA: u64 = 1 << 17;
pub(crate) const FI_PEEK: u64 = 1 << 19;
pub(crate) const FI_FENCE: u64 = 1 << 21;
pub(crate) const FI_COMPLETION: u64 = 1 << 24;
pub(crate) const FI_INJECT: u64 = 1 << 25;
pub(crate) const FI_INJECT_COMPLETE: u64 = 1 << 26;
pub(crate) const FI_TRANSMIT_COMPLETE: u64 = 1 << 27;
pub(crate) const FI_DELIVERY_COMPLETE: u64 = 1 << 28;
pub(crate) const FI_LOCAL_COMM: u64 = 1 << 51;
pub(crate) const FI_REMOTE_COMM: u64 = 1 << 52;
pub(crate) const FI_SOURCE: u64 = 1 << 57;
pub(crate) const FI_DISCARD: u64 = 1 << 58;
pub(crate) const FI_DIRECTED_RECV: u64 = 1 << 59;
pub(crate) const FI_CLAIM: u64 = 1 << 59;
/// When a queue is bound to an endpoint: only operations that ask for it are reported.
pub(crate) const FI_SELECTIVE_COMPLETION: u64 = 1 << 59;
/// When an address vector is opened.
pub(crate) const FI_EVENT: u64 = FI_COMPLETION;
/// Sends arrive in the order in which they were made.
pub(crate) const FI_ORDER_SAS: u64 = 1 << 8;

pub(crate) const FI_ADDR_UNSPEC: u64 = u64::MAX;
/// High bit of values that are a provider's own.
pub(crate) const FI_PROV_SPECIFIC: u32 = 1 << 31;

// enum fi_ep_type
pub(crate) const FI_EP_UNSPEC: c_int = 0;
pub(crate) const FI_EP_RDM: c_int = 3;
// enum fi_av_type
pub(crate) const FI_AV_UNSPEC: c_int = 0;
pub(crate) const FI_AV_TABLE: c_int = 2;
// enum fi_threading
pub(crate) const FI_THREAD_UNSPEC: c_int = 0;
pub(crate) const FI_THREAD_SAFE: c_int = 1;
// enum fi_mr_mode
pub(crate) const FI_MR_BASIC: c_int = 1;
// enum fi_progress
pub(crate) const FI_PROGRESS_UNSPEC: c_int = 0;
pub(crate) const FI_PROGRESS_AUTO: c_int = 1;
// enum fi_resource_mgmt
pub(crate) const FI_RM_ENABLED: c_int = 2;
// enum fi_wait_obj
pub(crate) const FI_WAIT_NONE: c_int = 0;
pub(crate) const FI_WAIT_UNSPEC: c_int = 1;
pub(crate) const FI_WAIT_FD: c_int = 3;
pub(crate) const FI_WAIT_YIELD: c_int = 5;
// enum fi_cq_format
pub(crate) const FI_CQ_FORMAT_UNSPEC: c_int = 0;
pub(crate) const FI_CQ_FORMAT_CONTEXT: c_int = 1;
pub(crate) const FI_CQ_FORMAT_MSG: c_int = 2;
pub(crate) const FI_CQ_FORMAT_DATA: c_int = 3;
pub(crate) const FI_CQ_FORMAT_TAGGED: c_int = 4;

// Classes of objects.
pub(crate) const FI_CLASS_FABRIC: usize = 1;
pub(crate) const FI_CLASS_DOMAIN: usize = 2;
pub(crate) const FI_CLASS_EP: usize = 3;
pub(crate) const FI_CLASS_AV: usize = 11;
pub(crate) const FI_CLASS_MR: usize = 12;
pub(crate) const FI_CLASS_EQ: usize = 13;
pub(crate) const FI_CLASS_CQ: usize = 14;
pub(crate) const FI_CLASS_CNTR: usize = 15;

// fi_control
pub(crate) const FI_GETOPSFLAG: c_int = 2;
pub(crate) const FI_SETOPSFLAG: c_int = 3;
pub(crate) const FI_GETWAIT: c_int = 5;
pub(crate) const FI_ENABLE: c_int = 6;
// fi_setopt
pub(crate) const FI_OPT_ENDPOINT: c_int = 0;
pub(crate) const FI_OPT_MIN_MULTI_RECV: c_int = 0;

// Errors beyond those of errno.h.
pub(crate) const FI_ETOOSMALL: c_int = 257;
pub(crate) const FI_EOPBADSTATE: c_int = 258;
pub(crate) const FI_EAVAIL: c_int = 259;
pub(crate) const FI_EBADFLAGS: c_int = 260;
pub(crate) const FI_ENOCQ: c_int = 263;
pub(crate) const FI_ETRUNC: c_int = 265;
pub(crate) const FI_ENOKEY: c_int = 266;
pub(crate) const FI_ENOAV: c_int = 267;

//! What `fi_getinfo` takes and gives.
//!
//! The layouts are those of libfabric 1.17. Later versions only append, so fields of theirs are
//! neither read nor set; what this provider hands out is followed by zeros, for programs that read
//! them.

use std::ffi::{c_char, c_int, c_void};

use super::fid::Fid;

c_struct! {
    TxAttr {
        caps: u64, mode: u64, op_flags: u64, msg_order: u64, comp_order: u64, inject_size: usize,
        size: usize, iov_limit: usize, rma_iov_limit: usize, tclass: u32,
    }
    RxAttr {
        caps: u64, mode: u64, op_flags: u64, msg_order: u64, comp_order: u64,
        total_buffered_recv: usize, size: usize, iov_limit: usize,
    }
    EpAttr {
        ep_type: c_int, protocol: u32, protocol_version: u32, max_msg_size: usize,
        msg_prefix_size: usize, max_order_raw_size: usize, max_order_war_size: usize,
        max_order_waw_size: usize, mem_tag_format: u64, tx_ctx_cnt: usize, rx_ctx_cnt: usize,
        auth_key_size: usize, auth_key: *mut u8,
    }
    DomainAttr {
        domain: *mut c_void, name: *mut c_char, threading: c_int, control_progress: c_int,
        data_progress: c_int, resource_mgmt: c_int, av_type: c_int, mr_mode: c_int,
        mr_key_size: usize, cq_data_size: usize, cq_cnt: usize, ep_cnt: usize, tx_ctx_cnt: usize,
        rx_ctx_cnt: usize, max_ep_tx_ctx: usize, max_ep_rx_ctx: usize, max_ep_stx_ctx: usize,
        max_ep_srx_ctx: usize, cntr_cnt: usize, mr_iov_limit: usize, caps: u64, mode: u64,
        auth_key: *mut u8, auth_key_size: usize, max_err_data: usize, mr_cnt: usize, tclass: u32,
    }
    FabricAttr {
        fabric: *mut c_void, name: *mut c_char, prov_name: *mut c_char, prov_version: u32,
        api_version: u32,
    }
    Info {
        next: *mut Info, caps: u64, mode: u64, addr_format: u32, src_addrlen: usize,
        dest_addrlen: usize, src_addr: *mut c_void, dest_addr: *mut c_void, handle: *mut Fid,
        tx_attr: *mut TxAttr, rx_attr: *mut RxAttr, ep_attr: *mut EpAttr,
        domain_attr: *mut DomainAttr, fabric_attr: *mut FabricAttr, nic: *mut c_void,
    }
}

/// What `fi_prov_ini` returns.
#[repr(C)]
#[derive(Debug)]
pub struct Provider {
    pub(crate) version: u32,
    pub(crate) fi_version: u32,
    pub(crate) context: [*mut c_void; 4],
    pub(crate) name: *const c_char,
    pub(crate) getinfo: unsafe extern "C" fn(
        u32,
        *const c_char,
        *const c_char,
        u64,
        *const Info,
        *mut *mut Info,
    ) -> c_int,
    pub(crate) fabric: unsafe extern "C" fn(*const FabricAttr, *mut *mut Fid, *mut c_void) -> c_int,
    pub(crate) cleanup: extern "C" fn(),
}

//! Objects as C sees them: each begins with a [`Fid`], and is followed by its tables of functions.
//!
//! A function that is not there is a null pointer where callers ask for it first (`FI_CHECK_OP`),
//! and otherwise one that says so.

use std::ffi::{c_char, c_int, c_void};

use libc::iovec;

use super::fid::Fid;
use super::info::{Info, RxAttr, TxAttr};

c_struct! {
    FidFabric { fid: Fid, ops: *const FabricOps, api_version: u32 }
    FidDomain { fid: Fid, ops: *const DomainOps, mr: *const MrOps }
    FidMr { fid: Fid, mem_desc: *mut c_void, key: u64 }
    MrAttr {
        iov: *const iovec, iov_count: usize, access: u64, offset: u64, requested_key: u64,
        context: *mut c_void,
    }
    AvAttr {
        av_type: c_int, rx_ctx_bits: c_int, count: usize, ep_per_node: usize, name: *const c_char,
        map_addr: *mut c_void, flags: u64,
    }
    FidAv { fid: Fid, ops: *const AvOps }
    EqAttr {
        size: usize, flags: u64, wait_obj: c_int, signaling_vector: c_int, wait_set: *mut c_void,
    }
    FidEq { fid: Fid, ops: *const EqOps }
    CqAttr {
        size: usize, flags: u64, format: c_int, wait_obj: c_int, signaling_vector: c_int,
        wait_cond: c_int, wait_set: *mut c_void,
    }
    CqErrEntry {
        op_context: *mut c_void, flags: u64, len: usize, buf: *mut c_void, data: u64, tag: u64,
        olen: usize, err: c_int, prov_errno: c_int, err_data: *mut c_void, err_data_size: usize,
    }
    FidCq { fid: Fid, ops: *const CqOps }
    CntrAttr { events: c_int, wait_obj: c_int, wait_set: *mut c_void, flags: u64 }
    FidCntr { fid: Fid, ops: *const CntrOps }
}

c_table! {
    FabricOps {
        domain(*mut FidFabric, *mut Info, *mut *mut Fid, *mut c_void) -> c_int;
        passive_ep(*mut FidFabric, *mut Info, *mut *mut Fid, *mut c_void) -> c_int;
        eq_open(*mut FidFabric, *mut EqAttr, *mut *mut Fid, *mut c_void) -> c_int;
        wait_open(*mut FidFabric, *mut c_void, *mut *mut Fid) -> c_int;
        trywait(*mut FidFabric, *mut *mut Fid, c_int) -> c_int;
    }
    DomainOps {
        av_open(*mut FidDomain, *mut AvAttr, *mut *mut Fid, *mut c_void) -> c_int;
        cq_open(*mut FidDomain, *mut CqAttr, *mut *mut Fid, *mut c_void) -> c_int;
        endpoint(*mut FidDomain, *mut Info, *mut *mut Fid, *mut c_void) -> c_int;
        scalable_ep(*mut FidDomain, *mut Info, *mut *mut Fid, *mut c_void) -> c_int;
        cntr_open(*mut FidDomain, *mut CntrAttr, *mut *mut Fid, *mut c_void) -> c_int;
        poll_open(*mut FidDomain, *mut c_void, *mut *mut Fid) -> c_int;
        stx_ctx(*mut FidDomain, *mut TxAttr, *mut *mut Fid, *mut c_void) -> c_int;
        srx_ctx(*mut FidDomain, *mut RxAttr, *mut *mut Fid, *mut c_void) -> c_int;
        query_atomic(*mut FidDomain, c_int, c_int, *mut c_void, u64) -> c_int;
        query_collective(*mut FidDomain, c_int, *mut c_void, u64) -> c_int;
    }
    MrOps {
        reg(
            *mut Fid, *const c_void, usize, u64, u64, u64, u64, *mut *mut Fid, *mut c_void,
        ) -> c_int;
        regv(
            *mut Fid, *const iovec, usize, u64, u64, u64, u64, *mut *mut Fid, *mut c_void,
        ) -> c_int;
        regattr(*mut Fid, *const MrAttr, u64, *mut *mut Fid) -> c_int;
    }
    AvOps {
        insert(*mut FidAv, *const c_void, usize, *mut u64, u64, *mut c_void) -> c_int;
        insertsvc(*mut FidAv, *const c_char, *const c_char, *mut u64, u64, *mut c_void) -> c_int;
        insertsym(
            *mut FidAv, *const c_char, usize, *const c_char, usize, *mut u64, u64, *mut c_void,
        ) -> c_int;
        remove(*mut FidAv, *mut u64, usize, u64) -> c_int;
        lookup(*mut FidAv, u64, *mut c_void, *mut usize) -> c_int;
        straddr(*mut FidAv, *const c_void, *mut c_char, *mut usize) -> *const c_char;
    }
    EqOps {
        read(*mut FidEq, *mut u32, *mut c_void, usize, u64) -> isize;
        readerr(*mut FidEq, *mut c_void, u64) -> isize;
        write(*mut FidEq, u32, *const c_void, usize, u64) -> isize;
        sread(*mut FidEq, *mut u32, *mut c_void, usize, c_int, u64) -> isize;
        strerror(*mut Fid, c_int, *const c_void, *mut c_char, usize) -> *const c_char;
    }
    CqOps {
        read(*mut FidCq, *mut c_void, usize) -> isize;
        readfrom(*mut FidCq, *mut c_void, usize, *mut u64) -> isize;
        readerr(*mut FidCq, *mut CqErrEntry, u64) -> isize;
        sread(*mut FidCq, *mut c_void, usize, *const c_void, c_int) -> isize;
        sreadfrom(*mut FidCq, *mut c_void, usize, *mut u64, *const c_void, c_int) -> isize;
        signal(*mut FidCq) -> c_int;
        strerror(*mut Fid, c_int, *const c_void, *mut c_char, usize) -> *const c_char;
    }
    CntrOps {
        read(*mut FidCntr) -> u64;
        readerr(*mut FidCntr) -> u64;
        add(*mut FidCntr, u64) -> c_int;
        set(*mut FidCntr, u64) -> c_int;
        wait(*mut FidCntr, u64, c_int) -> c_int;
        adderr(*mut FidCntr, u64) -> c_int;
        seterr(*mut FidCntr, u64) -> c_int;
    }
}

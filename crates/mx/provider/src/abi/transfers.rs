//! Endpoints, and what messages are sent and received with.

use std::ffi::{c_int, c_void};

use libc::iovec;

use super::fid::Fid;
use super::info::{RxAttr, TxAttr};

c_struct! {
    FidEp {
        fid: Fid, ops: *const EpOps, cm: *const CmOps, msg: *const MsgOps, rma: *const RmaOps,
        tagged: *const TaggedOps, atomic: *const c_void, collective: *const c_void,
    }
    Msg {
        iov: *const iovec, desc: *mut *mut c_void, iov_count: usize, addr: u64,
        context: *mut c_void, data: u64,
    }
    TaggedMsg {
        iov: *const iovec, desc: *mut *mut c_void, iov_count: usize, addr: u64, tag: u64,
        ignore: u64, context: *mut c_void, data: u64,
    }
    RmaIov { addr: u64, len: usize, key: u64 }
    RmaMsg {
        iov: *const iovec, desc: *mut *mut c_void, iov_count: usize, addr: u64,
        rma_iov: *const RmaIov, rma_iov_count: usize, context: *mut c_void, data: u64,
    }
}

c_table! {
    EpOps {
        cancel(*mut Fid, *mut c_void) -> isize;
        getopt(*mut Fid, c_int, c_int, *mut c_void, *mut usize) -> c_int;
        setopt(*mut Fid, c_int, c_int, *const c_void, usize) -> c_int;
        tx_ctx(*mut FidEp, c_int, *mut TxAttr, *mut *mut FidEp, *mut c_void) -> c_int;
        rx_ctx(*mut FidEp, c_int, *mut RxAttr, *mut *mut FidEp, *mut c_void) -> c_int;
        rx_size_left(*mut FidEp) -> isize;
        tx_size_left(*mut FidEp) -> isize;
    }
    CmOps {
        setname(*mut Fid, *mut c_void, usize) -> c_int;
        getname(*mut Fid, *mut c_void, *mut usize) -> c_int;
        getpeer(*mut FidEp, *mut c_void, *mut usize) -> c_int;
        connect(*mut FidEp, *const c_void, *const c_void, usize) -> c_int;
        listen(*mut c_void) -> c_int;
        accept(*mut FidEp, *const c_void, usize) -> c_int;
        reject(*mut c_void, *mut Fid, *const c_void, usize) -> c_int;
        shutdown(*mut FidEp, u64) -> c_int;
    }
}

type Desc = *mut c_void;
type Context = *mut c_void;

/// A table of calls that move bytes. There are three, with other names, and with other arguments
/// between the peer and the context.
macro_rules! table {
    (
        $table:ident, $message:ident, in($($in:ty),*), out($($out:ty),*):
        $recv:ident $recvv:ident $recvmsg:ident $send:ident $sendv:ident $sendmsg:ident
        $inject:ident $senddata:ident $injectdata:ident
    ) => {
        #[repr(C)]
        pub(crate) struct $table {
            pub(crate) size: usize,
            pub(crate) $recv: unsafe extern "C" fn(
                *mut FidEp, *mut u8, usize, Desc, u64, $($in,)* Context,
            ) -> isize,
            pub(crate) $recvv: unsafe extern "C" fn(
                *mut FidEp, *const iovec, *mut Desc, usize, u64, $($in,)* Context,
            ) -> isize,
            pub(crate) $recvmsg: unsafe extern "C" fn(*mut FidEp, *const $message, u64) -> isize,
            pub(crate) $send: unsafe extern "C" fn(
                *mut FidEp, *const u8, usize, Desc, u64, $($out,)* Context,
            ) -> isize,
            pub(crate) $sendv: unsafe extern "C" fn(
                *mut FidEp, *const iovec, *mut Desc, usize, u64, $($out,)* Context,
            ) -> isize,
            pub(crate) $sendmsg: unsafe extern "C" fn(*mut FidEp, *const $message, u64) -> isize,
            pub(crate) $inject: unsafe extern "C" fn(
                *mut FidEp, *const u8, usize, u64, $($out,)*
            ) -> isize,
            pub(crate) $senddata: unsafe extern "C" fn(
                *mut FidEp, *const u8, usize, Desc, u64, u64, $($out,)* Context,
            ) -> isize,
            pub(crate) $injectdata: unsafe extern "C" fn(
                *mut FidEp, *const u8, usize, u64, u64, $($out,)*
            ) -> isize,
        }
    };
}

table! {
    MsgOps, Msg, in(), out():
    recv recvv recvmsg send sendv sendmsg inject senddata injectdata
}
table! {
    TaggedOps, TaggedMsg, in(u64, u64), out(u64):
    recv recvv recvmsg send sendv sendmsg inject senddata injectdata
}
table! {
    RmaOps, RmaMsg, in(u64, u64), out(u64, u64):
    read readv readmsg write writev writemsg inject writedata injectdata
}

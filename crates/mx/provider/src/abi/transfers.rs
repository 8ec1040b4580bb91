//! Endpoints, and what messages are sent and received with.

use std::ffi::{c_int, c_void};

use libc::iovec;

use super::fid::Fid;
use super::info::{RxAttr, TxAttr};

#[repr(C)]
pub(crate) struct FidEp {
    pub(crate) fid: Fid,
    pub(crate) ops: *const EpOps,
    pub(crate) cm: *const CmOps,
    pub(crate) msg: *const MsgOps,
    pub(crate) rma: *const RmaOps,
    pub(crate) tagged: *const TaggedOps,
    pub(crate) atomic: *const c_void,
    pub(crate) collective: *const c_void,
}

#[repr(C)]
pub(crate) struct EpOps {
    pub(crate) size: usize,
    pub(crate) cancel: unsafe extern "C" fn(*mut Fid, *mut c_void) -> isize,
    pub(crate) getopt:
        unsafe extern "C" fn(*mut Fid, c_int, c_int, *mut c_void, *mut usize) -> c_int,
    pub(crate) setopt: unsafe extern "C" fn(*mut Fid, c_int, c_int, *const c_void, usize) -> c_int,
    pub(crate) tx_ctx:
        unsafe extern "C" fn(*mut FidEp, c_int, *mut TxAttr, *mut *mut FidEp, *mut c_void) -> c_int,
    pub(crate) rx_ctx:
        unsafe extern "C" fn(*mut FidEp, c_int, *mut RxAttr, *mut *mut FidEp, *mut c_void) -> c_int,
    pub(crate) rx_size_left: unsafe extern "C" fn(*mut FidEp) -> isize,
    pub(crate) tx_size_left: unsafe extern "C" fn(*mut FidEp) -> isize,
}

#[repr(C)]
pub(crate) struct CmOps {
    pub(crate) size: usize,
    pub(crate) setname: unsafe extern "C" fn(*mut Fid, *mut c_void, usize) -> c_int,
    pub(crate) getname: unsafe extern "C" fn(*mut Fid, *mut c_void, *mut usize) -> c_int,
    pub(crate) getpeer: unsafe extern "C" fn(*mut FidEp, *mut c_void, *mut usize) -> c_int,
    pub(crate) connect:
        unsafe extern "C" fn(*mut FidEp, *const c_void, *const c_void, usize) -> c_int,
    pub(crate) listen: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub(crate) accept: unsafe extern "C" fn(*mut FidEp, *const c_void, usize) -> c_int,
    pub(crate) reject: unsafe extern "C" fn(*mut c_void, *mut Fid, *const c_void, usize) -> c_int,
    pub(crate) shutdown: unsafe extern "C" fn(*mut FidEp, u64) -> c_int,
}

#[repr(C)]
pub(crate) struct Msg {
    pub(crate) iov: *const iovec,
    pub(crate) desc: *mut *mut c_void,
    pub(crate) iov_count: usize,
    pub(crate) addr: u64,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

#[repr(C)]
pub(crate) struct TaggedMsg {
    pub(crate) iov: *const iovec,
    pub(crate) desc: *mut *mut c_void,
    pub(crate) iov_count: usize,
    pub(crate) addr: u64,
    pub(crate) tag: u64,
    pub(crate) ignore: u64,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
}

#[repr(C)]
pub(crate) struct RmaIov {
    pub(crate) addr: u64,
    pub(crate) len: usize,
    pub(crate) key: u64,
}

#[repr(C)]
pub(crate) struct RmaMsg {
    pub(crate) iov: *const iovec,
    pub(crate) desc: *mut *mut c_void,
    pub(crate) iov_count: usize,
    pub(crate) addr: u64,
    pub(crate) rma_iov: *const RmaIov,
    pub(crate) rma_iov_count: usize,
    pub(crate) context: *mut c_void,
    pub(crate) data: u64,
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

//! Remote memory: what `fi_read`, `fi_write` and their relatives call.

use std::ffi::c_void;

use libc::{EINVAL, iovec};

use super::object::{Ep, enabled, listed};
use super::remote::Transfer;
use crate::abi::constants::{FI_COMPLETION, FI_EOPBADSTATE, FI_INJECT, FI_REMOTE_CQ_DATA};
use crate::abi::transfers::{FidEp, RmaMsg, RmaOps};
use crate::abi::{arg_ref, fid_ref};
use crate::memory::{Segments, borrow_iov};

pub(super) static OPS: RmaOps = RmaOps {
    size: size_of::<RmaOps>(),
    read,
    readv,
    readmsg,
    write,
    writev,
    writemsg,
    inject,
    writedata,
    injectdata,
};

/// Where at a peer: its number, the place in its memory, the key of that.
type Where = (u64, u64, u64);

/// A transfer with the flags that the endpoint has for those without.
fn usual(
    ep: *mut FidEp,
    (writes, memory): (bool, Segments),
    (peer, offset, key): Where,
    data: Option<u64>,
    context: *mut c_void,
) -> isize {
    let live = enabled!(ep);
    let (flags, context) = (live.tx.flags(), context as usize);
    let told = live.tx.tells(flags);
    live.transfer(&Transfer { writes, memory, peer, offset, key, data, context, flags, told })
}

/// A write whose memory may be used again at once, and whose end is not told.
fn injected(
    ep: *mut FidEp,
    memory: Segments,
    (peer, offset, key): Where,
    data: Option<u64>,
) -> isize {
    let (flags, context, told) = (FI_INJECT, 0, false);
    let transfer = Transfer { writes: true, memory, peer, offset, key, data, context, flags, told };
    enabled!(ep).transfer(&transfer)
}

fn described(ep: *mut FidEp, message: *const RmaMsg, writes: bool, flags: u64) -> isize {
    let live = enabled!(ep);
    let Some(message) = arg_ref!(message) else { return -(EINVAL as isize) };
    let Some(at) = arg_ref!(message.rma_iov).filter(|_| message.rma_iov_count == 1) else {
        return -(EINVAL as isize);
    };
    let memory = listed!(message.iov, message.iov_count);
    live.transfer(&Transfer {
        writes,
        memory,
        peer: message.addr,
        offset: at.addr,
        key: at.key,
        data: (flags & FI_REMOTE_CQ_DATA != 0).then_some(message.data),
        context: message.context as usize,
        flags,
        told: !live.tx.selective || flags & FI_COMPLETION != 0,
    })
}

unsafe extern "C" fn read(
    ep: *mut FidEp,
    buffer: *mut u8,
    length: usize,
    _desc: *mut c_void,
    from: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    usual(ep, (false, borrow_iov!(one, buffer, length)), (from, offset, key), None, context)
}

unsafe extern "C" fn readv(
    ep: *mut FidEp,
    list: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    from: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    usual(ep, (false, listed!(list, count)), (from, offset, key), None, context)
}

unsafe extern "C" fn readmsg(ep: *mut FidEp, message: *const RmaMsg, flags: u64) -> isize {
    described(ep, message, false, flags)
}

unsafe extern "C" fn write(
    ep: *mut FidEp,
    buffer: *const u8,
    length: usize,
    _desc: *mut c_void,
    to: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    usual(ep, (true, borrow_iov!(one, buffer.cast_mut(), length)), (to, offset, key), None, context)
}

unsafe extern "C" fn writev(
    ep: *mut FidEp,
    list: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    usual(ep, (true, listed!(list, count)), (to, offset, key), None, context)
}

unsafe extern "C" fn writemsg(ep: *mut FidEp, message: *const RmaMsg, flags: u64) -> isize {
    described(ep, message, true, flags)
}

unsafe extern "C" fn inject(
    ep: *mut FidEp,
    buffer: *const u8,
    length: usize,
    to: u64,
    offset: u64,
    key: u64,
) -> isize {
    injected(ep, borrow_iov!(one, buffer.cast_mut(), length), (to, offset, key), None)
}

unsafe extern "C" fn writedata(
    ep: *mut FidEp,
    buffer: *const u8,
    length: usize,
    _desc: *mut c_void,
    data: u64,
    to: u64,
    offset: u64,
    key: u64,
    context: *mut c_void,
) -> isize {
    let memory = borrow_iov!(one, buffer.cast_mut(), length);
    usual(ep, (true, memory), (to, offset, key), Some(data), context)
}

unsafe extern "C" fn injectdata(
    ep: *mut FidEp,
    buffer: *const u8,
    length: usize,
    data: u64,
    to: u64,
    offset: u64,
    key: u64,
) -> isize {
    injected(ep, borrow_iov!(one, buffer.cast_mut(), length), (to, offset, key), Some(data))
}

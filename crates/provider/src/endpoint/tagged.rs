//! Tagged messages: what `fi_tsend`, `fi_trecv` and their relatives call.

use std::ffi::c_void;

use libc::{EINVAL, iovec};

use super::calls::{injecting, sending};
use super::object::{Ep, enabled, listed};
use super::receive::Receive;
use super::send::Send;
use crate::abi::constants::{FI_EOPBADSTATE, FI_REMOTE_CQ_DATA};
use crate::abi::transfers::{FidEp, TaggedMsg, TaggedOps};
use crate::abi::{arg_ref, fid_ref};
use crate::bits::Kind;
use crate::memory::borrow_iov;

pub(super) static OPS: TaggedOps = TaggedOps {
    size: size_of::<TaggedOps>(),
    recv,
    recvv,
    recvmsg,
    send,
    sendv,
    sendmsg,
    inject,
    senddata,
    injectdata,
};

unsafe extern "C" fn recv(
    ep: *mut FidEp,
    buffer: *mut u8,
    length: usize,
    _desc: *mut c_void,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    enabled!(ep).receive_plainly(
        (Kind::Tagged, tag, ignore),
        borrow_iov!(one, buffer, length),
        from,
        context as usize,
    )
}

unsafe extern "C" fn recvv(
    ep: *mut FidEp,
    list: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    from: u64,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    enabled!(ep).receive_plainly(
        (Kind::Tagged, tag, ignore),
        listed!(list, count),
        from,
        context as usize,
    )
}

unsafe extern "C" fn recvmsg(ep: *mut FidEp, message: *const TaggedMsg, flags: u64) -> isize {
    let live = enabled!(ep);
    let Some(message) = arg_ref!(message) else { return -(EINVAL as isize) };
    live.receive(&Receive {
        kind: Kind::Tagged,
        from: message.addr,
        tag: message.tag,
        ignore: message.ignore,
        memory: listed!(message.iov, message.iov_count),
        context: message.context as usize,
        flags,
        told: live.rx.tells(flags),
    })
}

unsafe extern "C" fn send(
    ep: *mut FidEp,
    buffer: *const u8,
    length: usize,
    _desc: *mut c_void,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    sending(
        (ep, Kind::Tagged),
        borrow_iov!(one, buffer.cast_mut(), length),
        to,
        (tag, None),
        context,
    )
}

unsafe extern "C" fn sendv(
    ep: *mut FidEp,
    list: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    sending((ep, Kind::Tagged), listed!(list, count), to, (tag, None), context)
}

unsafe extern "C" fn sendmsg(ep: *mut FidEp, message: *const TaggedMsg, flags: u64) -> isize {
    let live = enabled!(ep);
    let Some(message) = arg_ref!(message) else { return -(EINVAL as isize) };
    live.send(&Send {
        kind: Kind::Tagged,
        to: message.addr,
        tag: message.tag,
        data: (flags & FI_REMOTE_CQ_DATA != 0).then_some(message.data),
        memory: listed!(message.iov, message.iov_count),
        context: message.context as usize,
        flags,
        told: live.tx.tells(flags),
    })
}

unsafe extern "C" fn inject(
    ep: *mut FidEp,
    buffer: *const u8,
    length: usize,
    to: u64,
    tag: u64,
) -> isize {
    injecting((ep, Kind::Tagged), borrow_iov!(one, buffer.cast_mut(), length), to, (tag, None))
}

unsafe extern "C" fn senddata(
    ep: *mut FidEp,
    buffer: *const u8,
    length: usize,
    _desc: *mut c_void,
    data: u64,
    to: u64,
    tag: u64,
    context: *mut c_void,
) -> isize {
    sending(
        (ep, Kind::Tagged),
        borrow_iov!(one, buffer.cast_mut(), length),
        to,
        (tag, Some(data)),
        context,
    )
}

unsafe extern "C" fn injectdata(
    ep: *mut FidEp,
    buffer: *const u8,
    length: usize,
    data: u64,
    to: u64,
    tag: u64,
) -> isize {
    injecting(
        (ep, Kind::Tagged),
        borrow_iov!(one, buffer.cast_mut(), length),
        to,
        (tag, Some(data)),
    )
}

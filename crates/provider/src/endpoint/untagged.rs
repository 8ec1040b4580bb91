//! Messages without a tag: what `fi_send`, `fi_recv` and their relatives call.

use std::ffi::c_void;

use libc::{EINVAL, iovec};

use super::calls::{injecting, sending};
use super::object::{Ep, enabled, listed};
use super::receive::Receive;
use super::send::Send;
use crate::abi::constants::{FI_EOPBADSTATE, FI_REMOTE_CQ_DATA};
use crate::abi::transfers::{FidEp, Msg, MsgOps};
use crate::abi::{arg_ref, fid_ref};
use crate::bits::Kind;
use crate::memory::borrow_iov;

pub(super) static OPS: MsgOps = MsgOps {
    size: size_of::<MsgOps>(),
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
    context: *mut c_void,
) -> isize {
    enabled!(ep).receive_plainly(
        (Kind::Untagged, 0, 0),
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
    context: *mut c_void,
) -> isize {
    enabled!(ep).receive_plainly(
        (Kind::Untagged, 0, 0),
        listed!(list, count),
        from,
        context as usize,
    )
}

unsafe extern "C" fn recvmsg(ep: *mut FidEp, message: *const Msg, flags: u64) -> isize {
    let live = enabled!(ep);
    let Some(message) = arg_ref!(message) else { return -(EINVAL as isize) };
    live.receive(&Receive {
        kind: Kind::Untagged,
        from: message.addr,
        tag: 0,
        ignore: 0,
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
    context: *mut c_void,
) -> isize {
    sending(
        (ep, Kind::Untagged),
        borrow_iov!(one, buffer.cast_mut(), length),
        to,
        (0, None),
        context,
    )
}

unsafe extern "C" fn sendv(
    ep: *mut FidEp,
    list: *const iovec,
    _desc: *mut *mut c_void,
    count: usize,
    to: u64,
    context: *mut c_void,
) -> isize {
    sending((ep, Kind::Untagged), listed!(list, count), to, (0, None), context)
}

unsafe extern "C" fn sendmsg(ep: *mut FidEp, message: *const Msg, flags: u64) -> isize {
    let live = enabled!(ep);
    let Some(message) = arg_ref!(message) else { return -(EINVAL as isize) };
    live.send(&Send {
        kind: Kind::Untagged,
        to: message.addr,
        tag: 0,
        data: (flags & FI_REMOTE_CQ_DATA != 0).then_some(message.data),
        memory: listed!(message.iov, message.iov_count),
        context: message.context as usize,
        flags,
        told: live.tx.tells(flags),
    })
}

unsafe extern "C" fn inject(ep: *mut FidEp, buffer: *const u8, length: usize, to: u64) -> isize {
    injecting((ep, Kind::Untagged), borrow_iov!(one, buffer.cast_mut(), length), to, (0, None))
}

unsafe extern "C" fn senddata(
    ep: *mut FidEp,
    buffer: *const u8,
    length: usize,
    _desc: *mut c_void,
    data: u64,
    to: u64,
    context: *mut c_void,
) -> isize {
    sending(
        (ep, Kind::Untagged),
        borrow_iov!(one, buffer.cast_mut(), length),
        to,
        (0, Some(data)),
        context,
    )
}

unsafe extern "C" fn injectdata(
    ep: *mut FidEp,
    buffer: *const u8,
    length: usize,
    data: u64,
    to: u64,
) -> isize {
    injecting(
        (ep, Kind::Untagged),
        borrow_iov!(one, buffer.cast_mut(), length),
        to,
        (0, Some(data)),
    )
}

//! Tagged messages: what `fi_tsend`, `fi_trecv` and their relatives call.

use std::ffi::c_void;

use libc::{EINVAL, iovec};

use super::receive::Receive;
use super::send::Send;
use super::{Ep, enabled, listed};
use crate::abi::constants::{FI_EOPBADSTATE, FI_INJECT, FI_REMOTE_CQ_DATA};
use crate::abi::transfers::{FidEp, TaggedMsg, TaggedOps};
use crate::abi::{ours, theirs};
use crate::bits::Kind;
use crate::memory::{Segments, lent};

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
    let live = enabled!(ep);
    let flags = live.rx.flags();
    live.receive(&Receive {
        kind: Kind::Tagged,
        from,
        tag,
        ignore,
        memory: lent!(one, buffer, length),
        context: context as usize,
        flags,
        told: live.rx.tells(flags),
    })
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
    let live = enabled!(ep);
    let flags = live.rx.flags();
    live.receive(&Receive {
        kind: Kind::Tagged,
        from,
        tag,
        ignore,
        memory: listed!(list, count),
        context: context as usize,
        flags,
        told: live.rx.tells(flags),
    })
}

unsafe extern "C" fn recvmsg(ep: *mut FidEp, message: *const TaggedMsg, flags: u64) -> isize {
    let live = enabled!(ep);
    let Some(message) = theirs!(message) else { return -(EINVAL as isize) };
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

/// A send with the flags that the endpoint has for those without.
fn sending(
    ep: *mut FidEp,
    memory: Segments,
    to: u64,
    (tag, data): (u64, Option<u64>),
    context: *mut c_void,
) -> isize {
    let live = enabled!(ep);
    let (flags, context) = (live.tx.flags(), context as usize);
    let (kind, told) = (Kind::Tagged, live.tx.tells(flags));
    live.send(&Send { kind, to, tag, data, memory, context, flags, told })
}

/// A send whose memory may be used again at once, and whose end is not told.
fn injecting(ep: *mut FidEp, memory: Segments, to: u64, (tag, data): (u64, Option<u64>)) -> isize {
    let (kind, flags) = (Kind::Tagged, FI_INJECT);
    enabled!(ep).send(&Send { kind, to, tag, data, memory, context: 0, flags, told: false })
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
    sending(ep, lent!(one, buffer.cast_mut(), length), to, (tag, None), context)
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
    sending(ep, listed!(list, count), to, (tag, None), context)
}

unsafe extern "C" fn sendmsg(ep: *mut FidEp, message: *const TaggedMsg, flags: u64) -> isize {
    let live = enabled!(ep);
    let Some(message) = theirs!(message) else { return -(EINVAL as isize) };
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
    injecting(ep, lent!(one, buffer.cast_mut(), length), to, (tag, None))
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
    sending(ep, lent!(one, buffer.cast_mut(), length), to, (tag, Some(data)), context)
}

unsafe extern "C" fn injectdata(
    ep: *mut FidEp,
    buffer: *const u8,
    length: usize,
    data: u64,
    to: u64,
    tag: u64,
) -> isize {
    injecting(ep, lent!(one, buffer.cast_mut(), length), to, (tag, Some(data)))
}

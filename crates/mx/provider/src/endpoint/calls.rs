//! The calls that move bytes. libfabric has the same nine for tagged messages, for messages without
//! a tag and for remote memory: the tables differ in the arguments between the peer and the
//! context, and in names. [`table`] writes all three.

use std::ffi::c_void;

use libc::{EFAULT, EINVAL, iovec};

use super::live::Live;
use super::object::{CompletionSide, Ep, enabled};
use crate::abi::constants::{FI_EOPBADSTATE, FI_INJECT, FI_REMOTE_CQ_DATA};
use crate::abi::transfers::{FidEp, Msg, RmaMsg, TaggedMsg};
use crate::abi::{arg_ref, fid_ref};
use crate::bits::MessageKind;
use crate::fault;
use crate::memory::{Segments, borrow_iov};

#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    Message(Envelope),
    Memory(RemoteMemory),
}

/// What messages are matched by; when one is sent, nothing is ignored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    pub(super) kind: MessageKind,
    pub(super) tag: u64,
    pub(super) ignore: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct RemoteMemory {
    pub(super) offset: u64,
    pub(super) key: u64,
}

impl Subject {
    pub(super) const UNTAGGED: Self =
        Self::Message(Envelope { kind: MessageKind::Untagged, tag: 0, ignore: 0 });

    pub(super) const fn tagged(tag: u64, ignore: u64) -> Self {
        Self::Message(Envelope { kind: MessageKind::Tagged, tag, ignore })
    }

    pub(super) const fn memory(offset: u64, key: u64) -> Self {
        Self::Memory(RemoteMemory { offset, key })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) memory: Segments,
    pub(super) peer: u64,
    pub(super) data: Option<u64>,
    pub(super) context: usize,
    pub(super) flags: u64,
    pub(super) completion: bool,
}

impl Call {
    pub(super) fn new(
        memory: Segments,
        peer: u64,
        data: Option<u64>,
        context: *mut c_void,
    ) -> Self {
        Self { memory, peer, data, context: context as usize, flags: 0, completion: false }
    }
}

/// A call without flags: the endpoint has some for it.
pub(super) fn plain(
    ep: *mut FidEp,
    direction: Direction,
    subject: Subject,
    mut call: Call,
) -> isize {
    let live = enabled!(ep);
    let side = side(live, direction, subject);
    call.flags = side.flags();
    call.completion = side.wants_completion(call.flags);
    submit(live, direction, subject, &call)
}

/// A call whose memory may be used again at once, and that is not completed.
pub(super) fn injected(ep: *mut FidEp, subject: Subject, mut call: Call) -> isize {
    call.flags = FI_INJECT;
    submit(enabled!(ep), Direction::Out, subject, &call)
}

pub(super) fn described<M: Described>(
    ep: *mut FidEp,
    direction: Direction,
    message: *const M,
    flags: u64,
) -> isize {
    let live = enabled!(ep);
    let Some((subject, mut call)) = arg_ref!(message).and_then(|message| message.call(flags))
    else {
        return -(EINVAL as isize);
    };
    call.flags = flags;
    call.completion = side(live, direction, subject).wants_completion(flags);
    submit(live, direction, subject, &call)
}

const fn side(live: &Live, direction: Direction, subject: Subject) -> &CompletionSide {
    match (direction, subject) {
        (Direction::In, Subject::Message(_)) => &live.rx,
        _ => &live.tx,
    }
}

/// Does what a call asks for: 0, or a number of libfabric.
fn submit(live: &Live, direction: Direction, subject: Subject, call: &Call) -> isize {
    if !call.memory.is_possible() {
        fault::warn_of_memory();
        return -(EFAULT as isize);
    }
    let done = match (direction, subject) {
        (Direction::In, Subject::Message(envelope)) => live.receive(envelope, call),
        (Direction::Out, Subject::Message(envelope)) => live.send(envelope, call),
        (Direction::In, Subject::Memory(remote)) => live.transfer(false, remote, call),
        (Direction::Out, Subject::Memory(remote)) => live.transfer(true, remote, call),
    };
    match done {
        Ok(()) => 0,
        Err(error) => -(error as isize),
    }
}

pub(super) trait Described {
    /// The call, or nothing if there cannot be such a one.
    fn call(&self, flags: u64) -> Option<(Subject, Call)>;
}

/// Memory in several pieces, and the remote CQ data if the flags say that there is some.
fn pieces(
    iov: *const iovec,
    count: usize,
    data: u64,
    flags: u64,
) -> Option<(Segments, Option<u64>)> {
    let memory = borrow_iov!(of, iov, count)?;
    Some((memory, (flags & FI_REMOTE_CQ_DATA != 0).then_some(data)))
}

impl Described for Msg {
    fn call(&self, flags: u64) -> Option<(Subject, Call)> {
        let Self { addr: peer, context, .. } = *self;
        let (memory, data) = pieces(self.iov, self.iov_count, self.data, flags)?;
        Some((Subject::UNTAGGED, Call::new(memory, peer, data, context)))
    }
}

impl Described for TaggedMsg {
    fn call(&self, flags: u64) -> Option<(Subject, Call)> {
        let Self { addr: peer, context, tag, ignore, .. } = *self;
        let (memory, data) = pieces(self.iov, self.iov_count, self.data, flags)?;
        Some((Subject::tagged(tag, ignore), Call::new(memory, peer, data, context)))
    }
}

impl Described for RmaMsg {
    fn call(&self, flags: u64) -> Option<(Subject, Call)> {
        let Self { addr: peer, context, .. } = *self;
        let at = arg_ref!(self.rma_iov).filter(|_| self.rma_iov_count == 1)?;
        let (memory, data) = pieces(self.iov, self.iov_count, self.data, flags)?;
        Some((Subject::memory(at.addr, at.key), Call::new(memory, peer, data, context)))
    }
}

/// A table of calls, and the calls. `incoming` and `outgoing` list the arguments between the peer
/// and the context, and the subject that they make.
macro_rules! table {
    (
        $ops:ident, $message:ident: $($field:ident = $call:ident),*;
        incoming($($in:ident),*) => $incoming:expr;
        outgoing($($out:ident),*) => $outgoing:expr;
    ) => {
        use std::ffi::c_void;

        use libc::{EINVAL, iovec};

        use crate::endpoint::calls::{
            Call, Direction, Subject, described, injected, plain,
        };
        use crate::abi::transfers::{FidEp, $message, $ops};
        use crate::memory::borrow_iov;

        pub(in crate::endpoint) static OPS: $ops =
            $ops { size: size_of::<$ops>(), $($field: $call),* };

        unsafe extern "C" fn recv(
            ep: *mut FidEp, buffer: *mut u8, length: usize, _desc: *mut c_void, peer: u64,
            $($in: u64,)* context: *mut c_void,
        ) -> isize {
            let memory = borrow_iov!(one, buffer, length);
            plain(ep, Direction::In, $incoming, Call::new(memory, peer, None, context))
        }

        unsafe extern "C" fn recvv(
            ep: *mut FidEp, list: *const iovec, _desc: *mut *mut c_void, count: usize, peer: u64,
            $($in: u64,)* context: *mut c_void,
        ) -> isize {
            let Some(memory) = borrow_iov!(of, list, count) else { return -(EINVAL as isize) };
            plain(ep, Direction::In, $incoming, Call::new(memory, peer, None, context))
        }

        unsafe extern "C" fn recvmsg(
            ep: *mut FidEp, message: *const $message, flags: u64,
        ) -> isize {
            described(ep, Direction::In, message, flags)
        }

        unsafe extern "C" fn send(
            ep: *mut FidEp, buffer: *const u8, length: usize, _desc: *mut c_void, peer: u64,
            $($out: u64,)* context: *mut c_void,
        ) -> isize {
            let memory = borrow_iov!(one, buffer.cast_mut(), length);
            plain(ep, Direction::Out, $outgoing, Call::new(memory, peer, None, context))
        }

        unsafe extern "C" fn sendv(
            ep: *mut FidEp, list: *const iovec, _desc: *mut *mut c_void, count: usize, peer: u64,
            $($out: u64,)* context: *mut c_void,
        ) -> isize {
            let Some(memory) = borrow_iov!(of, list, count) else { return -(EINVAL as isize) };
            plain(ep, Direction::Out, $outgoing, Call::new(memory, peer, None, context))
        }

        unsafe extern "C" fn sendmsg(
            ep: *mut FidEp, message: *const $message, flags: u64,
        ) -> isize {
            described(ep, Direction::Out, message, flags)
        }

        unsafe extern "C" fn inject(
            ep: *mut FidEp, buffer: *const u8, length: usize, peer: u64, $($out: u64),*
        ) -> isize {
            let memory = borrow_iov!(one, buffer.cast_mut(), length);
            injected(ep, $outgoing, Call::new(memory, peer, None, std::ptr::null_mut()))
        }

        unsafe extern "C" fn senddata(
            ep: *mut FidEp, buffer: *const u8, length: usize, _desc: *mut c_void, data: u64,
            peer: u64, $($out: u64,)* context: *mut c_void,
        ) -> isize {
            let memory = borrow_iov!(one, buffer.cast_mut(), length);
            plain(ep, Direction::Out, $outgoing, Call::new(memory, peer, Some(data), context))
        }

        unsafe extern "C" fn injectdata(
            ep: *mut FidEp, buffer: *const u8, length: usize, data: u64, peer: u64, $($out: u64),*
        ) -> isize {
            let memory = borrow_iov!(one, buffer.cast_mut(), length);
            injected(ep, $outgoing, Call::new(memory, peer, Some(data), std::ptr::null_mut()))
        }
    };
}

pub(super) use table;

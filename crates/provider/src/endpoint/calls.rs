//! The calls that move bytes. libfabric has the same nine for tagged messages, for messages without
//! a tag and for remote memory: the tables differ in the arguments between the peer and the
//! context, and in names. [`table`] writes all three.

use std::ffi::c_void;

use libc::{EFAULT, EINVAL, iovec};

use super::live::Live;
use super::object::{Ep, enabled};
use super::receive::Receive;
use super::remote::Transfer;
use super::send::Send;
use crate::abi::constants::{FI_EOPBADSTATE, FI_INJECT, FI_REMOTE_CQ_DATA};
use crate::abi::transfers::{FidEp, Msg, RmaMsg, TaggedMsg};
use crate::abi::{arg_ref, fid_ref};
use crate::bits::Kind;
use crate::fault;
use crate::memory::{Segments, borrow_iov};

/// What a call moves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    /// A message; when it is sent, nothing is ignored.
    Message { kind: Kind, tag: u64, ignore: u64 },
    /// Memory of the peer.
    Memory { offset: u64, key: u64 },
}

impl Subject {
    pub(super) const UNTAGGED: Self = Self::Message { kind: Kind::Untagged, tag: 0, ignore: 0 };

    pub(super) const fn tagged(tag: u64, ignore: u64) -> Self {
        Self::Message { kind: Kind::Tagged, tag, ignore }
    }
}

/// Whether bytes come from the peer or go there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    In,
    Out,
}

/// The arguments that all calls have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) subject: Subject,
    pub(super) memory: Segments,
    pub(super) peer: u64,
    pub(super) data: Option<u64>,
    pub(super) context: *mut c_void,
}

/// A call without flags: the endpoint has some for it.
pub(super) fn plain(ep: *mut FidEp, direction: Direction, call: Call) -> isize {
    let live = enabled!(ep);
    let side = match (direction, call.subject) {
        (Direction::In, Subject::Message { .. }) => &live.rx,
        _ => &live.tx,
    };
    let flags = side.flags();
    submit(live, direction, &call, flags, side.wants_completion(flags))
}

/// A call whose memory may be used again at once, and that is not completed.
pub(super) fn injected(ep: *mut FidEp, call: Call) -> isize {
    submit(enabled!(ep), Direction::Out, &call, FI_INJECT, false)
}

/// A call that a structure describes.
pub(super) fn described<M: Described>(
    ep: *mut FidEp,
    direction: Direction,
    message: *const M,
    flags: u64,
) -> isize {
    let live = enabled!(ep);
    let Some(call) = arg_ref!(message).and_then(|message| message.call(flags)) else {
        return -(EINVAL as isize);
    };
    let side = match (direction, call.subject) {
        (Direction::In, Subject::Message { .. }) => &live.rx,
        _ => &live.tx,
    };
    submit(live, direction, &call, flags, side.wants_completion(flags))
}

fn submit(live: &Live, direction: Direction, call: &Call, flags: u64, completion: bool) -> isize {
    let Call { subject, memory, peer, data, context } = *call;
    if !memory.is_possible() {
        fault::warn_of_memory();
        return -(EFAULT as isize);
    }
    let context = context as usize;
    match (direction, subject) {
        (Direction::In, Subject::Message { kind, tag, ignore }) => live.receive(&Receive {
            kind,
            from: peer,
            tag,
            ignore,
            memory,
            context,
            flags,
            completion,
        }),
        (Direction::Out, Subject::Message { kind, tag, .. }) => {
            live.send(&Send { kind, to: peer, tag, data, memory, context, flags, completion })
        }
        (_, Subject::Memory { offset, key }) => {
            let writes = direction == Direction::Out;
            let transfer =
                Transfer { writes, memory, peer, offset, key, data, context, flags, completion };
            live.transfer(&transfer)
        }
    }
}

/// A structure that describes a call.
pub(super) trait Described {
    /// The call, or nothing if there cannot be such a one.
    fn call(&self, flags: u64) -> Option<Call>;
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
    fn call(&self, flags: u64) -> Option<Call> {
        let Self { addr: peer, context, .. } = *self;
        let (memory, data) = pieces(self.iov, self.iov_count, self.data, flags)?;
        Some(Call { subject: Subject::UNTAGGED, memory, peer, data, context })
    }
}

impl Described for TaggedMsg {
    fn call(&self, flags: u64) -> Option<Call> {
        let Self { addr: peer, context, tag, ignore, .. } = *self;
        let (memory, data) = pieces(self.iov, self.iov_count, self.data, flags)?;
        Some(Call { subject: Subject::tagged(tag, ignore), memory, peer, data, context })
    }
}

impl Described for RmaMsg {
    fn call(&self, flags: u64) -> Option<Call> {
        let Self { addr: peer, context, .. } = *self;
        let at = arg_ref!(self.rma_iov).filter(|_| self.rma_iov_count == 1)?;
        let (memory, data) = pieces(self.iov, self.iov_count, self.data, flags)?;
        let subject = Subject::Memory { offset: at.addr, key: at.key };
        Some(Call { subject, memory, peer, data, context })
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

        use super::calls::{Call, Direction, Subject, described, injected, plain};
        use crate::abi::transfers::{FidEp, $message, $ops};
        use crate::memory::borrow_iov;

        pub(super) static OPS: $ops = $ops { size: size_of::<$ops>(), $($field: $call),* };

        unsafe extern "C" fn recv(
            ep: *mut FidEp,
            buffer: *mut u8,
            length: usize,
            _desc: *mut c_void,
            peer: u64,
            $($in: u64,)*
            context: *mut c_void,
        ) -> isize {
            let memory = borrow_iov!(one, buffer, length);
            let call = Call { subject: $incoming, memory, peer, data: None, context };
            plain(ep, Direction::In, call)
        }

        unsafe extern "C" fn recvv(
            ep: *mut FidEp,
            list: *const iovec,
            _desc: *mut *mut c_void,
            count: usize,
            peer: u64,
            $($in: u64,)*
            context: *mut c_void,
        ) -> isize {
            let Some(memory) = borrow_iov!(of, list, count) else { return -(EINVAL as isize) };
            let call = Call { subject: $incoming, memory, peer, data: None, context };
            plain(ep, Direction::In, call)
        }

        unsafe extern "C" fn recvmsg(
            ep: *mut FidEp,
            message: *const $message,
            flags: u64,
        ) -> isize {
            described(ep, Direction::In, message, flags)
        }

        unsafe extern "C" fn send(
            ep: *mut FidEp,
            buffer: *const u8,
            length: usize,
            _desc: *mut c_void,
            peer: u64,
            $($out: u64,)*
            context: *mut c_void,
        ) -> isize {
            let memory = borrow_iov!(one, buffer.cast_mut(), length);
            let call = Call { subject: $outgoing, memory, peer, data: None, context };
            plain(ep, Direction::Out, call)
        }

        unsafe extern "C" fn sendv(
            ep: *mut FidEp,
            list: *const iovec,
            _desc: *mut *mut c_void,
            count: usize,
            peer: u64,
            $($out: u64,)*
            context: *mut c_void,
        ) -> isize {
            let Some(memory) = borrow_iov!(of, list, count) else { return -(EINVAL as isize) };
            let call = Call { subject: $outgoing, memory, peer, data: None, context };
            plain(ep, Direction::Out, call)
        }

        unsafe extern "C" fn sendmsg(
            ep: *mut FidEp,
            message: *const $message,
            flags: u64,
        ) -> isize {
            described(ep, Direction::Out, message, flags)
        }

        unsafe extern "C" fn inject(
            ep: *mut FidEp,
            buffer: *const u8,
            length: usize,
            peer: u64,
            $($out: u64),*
        ) -> isize {
            let (memory, context) =
                (borrow_iov!(one, buffer.cast_mut(), length), std::ptr::null_mut());
            injected(ep, Call { subject: $outgoing, memory, peer, data: None, context })
        }

        unsafe extern "C" fn senddata(
            ep: *mut FidEp,
            buffer: *const u8,
            length: usize,
            _desc: *mut c_void,
            data: u64,
            peer: u64,
            $($out: u64,)*
            context: *mut c_void,
        ) -> isize {
            let memory = borrow_iov!(one, buffer.cast_mut(), length);
            let call = Call { subject: $outgoing, memory, peer, data: Some(data), context };
            plain(ep, Direction::Out, call)
        }

        unsafe extern "C" fn injectdata(
            ep: *mut FidEp,
            buffer: *const u8,
            length: usize,
            data: u64,
            peer: u64,
            $($out: u64),*
        ) -> isize {
            let (memory, context) =
                (borrow_iov!(one, buffer.cast_mut(), length), std::ptr::null_mut());
            injected(ep, Call { subject: $outgoing, memory, peer, data: Some(data), context })
        }
    };
}

pub(super) use table;

//! Event queues. Nothing that this provider does is reported there; they hold what programs write
//! to them.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use libc::{EAGAIN, EINVAL};

use crate::abi::constants::{FI_CLASS_EQ, FI_ETOOSMALL, FI_PEEK};
use crate::abi::fid::{Fid, FidOps, close};
use crate::abi::objects::{EqAttr, EqOps, FidEq, FidFabric};
use crate::abi::{arg_ref, fid_ref, out};
use crate::cq::strerror;

#[derive(Default)]
struct Queue {
    events: Mutex<VecDeque<(u32, Box<[u8]>)>>,
    written: Condvar,
}

#[repr(C)]
struct Eq {
    fid: FidEq,
    queue: Queue,
}

static FID: FidOps = FidOps { close: close::<Eq>, ..FidOps::REFUSES };

static OPS: EqOps = EqOps { read, readerr, write, sread, strerror, ..EqOps::REFUSES };

pub(crate) unsafe extern "C" fn open(
    _fabric: *mut FidFabric,
    _attr: *mut EqAttr,
    place: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    let fid = Fid { class: FI_CLASS_EQ, context, ops: &raw const FID };
    let fid = FidEq { fid, ops: &raw const OPS };
    out!(place, Box::into_raw(Box::new(Eq { fid, queue: Queue::default() })).cast());
    0
}

type Events<'a> = MutexGuard<'a, VecDeque<(u32, Box<[u8]>)>>;

fn take(mut events: Events<'_>, event: *mut u32, into: *mut u8, room: usize, flags: u64) -> isize {
    let Some((number, bytes)) = events.front() else { return -(EAGAIN as isize) };
    if bytes.len() > room {
        return -(FI_ETOOSMALL as isize);
    }
    out!(event, *number);
    for (index, byte) in bytes.iter().enumerate() {
        out!(into.wrapping_add(index), *byte);
    }
    let length = bytes.len() as isize;
    if flags & FI_PEEK == 0 {
        events.pop_front();
    }
    length
}

unsafe extern "C" fn read(
    eq: *mut FidEq,
    event: *mut u32,
    buffer: *mut c_void,
    length: usize,
    flags: u64,
) -> isize {
    let queue = &fid_ref!(eq, Eq).queue;
    let events = queue.events.lock().unwrap_or_else(PoisonError::into_inner);
    take(events, event, buffer.cast(), length, flags)
}

unsafe extern "C" fn sread(
    eq: *mut FidEq,
    event: *mut u32,
    buffer: *mut c_void,
    length: usize,
    timeout: c_int,
    flags: u64,
) -> isize {
    let queue = &fid_ref!(eq, Eq).queue;
    let begun = Instant::now();
    let mut events = queue.events.lock().unwrap_or_else(PoisonError::into_inner);
    while events.is_empty() {
        // Without a limit, it looks again now and then.
        let limit = u64::try_from(timeout).map_or(Duration::MAX, Duration::from_millis);
        let Some(left) = limit.checked_sub(begun.elapsed()) else { return -(EAGAIN as isize) };
        let nap = left.min(Duration::from_secs(1));
        let waited = queue.written.wait_timeout(events, nap);
        events = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
    take(events, event, buffer.cast(), length, flags)
}

unsafe extern "C" fn write(
    eq: *mut FidEq,
    event: u32,
    buffer: *const c_void,
    length: usize,
    _flags: u64,
) -> isize {
    let queue = &fid_ref!(eq, Eq).queue;
    let mut bytes = Vec::with_capacity(length);
    for index in 0..length {
        let Some(byte) = arg_ref!(buffer.cast::<u8>().wrapping_add(index)) else {
            return -(EINVAL as isize);
        };
        bytes.push(*byte);
    }
    let mut events = queue.events.lock().unwrap_or_else(PoisonError::into_inner);
    events.push_back((event, bytes.into()));
    queue.written.notify_one();
    length as isize
}

unsafe extern "C" fn readerr(_eq: *mut FidEq, _entry: *mut c_void, _flags: u64) -> isize {
    -(EAGAIN as isize)
}

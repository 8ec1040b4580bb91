//! Completion queues: what has ended, in its order.
//!
//! Reading one drives the endpoints that are bound to it, if nothing has ended yet. MPIs read again
//! and again, and do not always know that there are more ranks than cores: a thread that has found
//! nothing for a while lets others run.

use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use libc::{EAGAIN, EBUSY, EMFILE, ENOSYS};
use mx_io::endpoint::EventFd;

use crate::abi::constants::{
    FI_ADDR_UNSPEC, FI_CLASS_CQ, FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_MSG,
    FI_CQ_FORMAT_TAGGED, FI_CQ_FORMAT_UNSPEC, FI_EAVAIL, FI_GETWAIT, FI_WAIT_FD, FI_WAIT_NONE,
    FI_WAIT_UNSPEC, FI_WAIT_YIELD,
};
use crate::abi::fid::{Fid, FidOps};
use crate::abi::objects::{CqAttr, CqErrEntry, CqOps, FidCq, FidDomain};
use crate::abi::{arg_ref, fid_ref, fid_take, out};
use crate::av::give_text;
use crate::bound::Bound;
use crate::fault;

/// Something that has ended. Addresses are the user's, and this provider does not read what is
/// there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) context: usize,
    pub(crate) flags: u64,
    pub(crate) length: usize,
    pub(crate) buffer: usize,
    pub(crate) data: u64,
    pub(crate) tag: u64,
    /// The number of the sender's address, if programs want to know it.
    pub(crate) source: Option<u64>,
    /// How it failed, if it did.
    pub(crate) failure: Option<Failure>,
}

/// How an operation failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) error: c_int,
    /// Bytes of the message beyond the buffer.
    pub(crate) excess: usize,
}

#[derive(Default)]
pub(crate) struct Queue {
    entries: Mutex<VecDeque<Entry>>,
    /// How many they are: a thread that looks in vain, again and again, takes no lock.
    count: AtomicUsize,
    pub(crate) bound: Bound,
    /// What threads sleep on that wait for an end, if they may.
    pub(crate) bell: Option<Arc<EventFd>>,
    /// A thread relies on the bell.
    rings: AtomicBool,
    /// Threads that wait have to return.
    signalled: AtomicBool,
    /// How often in a row nothing was found.
    idle: AtomicU32,
}

/// After so many looks in vain, some 20 to 100 us, a reader lets others run.
const POLLS_BEFORE_YIELD: u32 = 256;
/// And then after so many more, each time.
const AGAIN: u32 = 4;

impl Queue {
    pub(crate) fn push(&self, entry: Entry) {
        let mut entries = self.lock();
        entries.push_back(entry);
        self.count.store(entries.len(), Ordering::Release);
        drop(entries);
        if let Some(bell) = &self.bell
            && self.rings.swap(false, Ordering::AcqRel)
        {
            bell.ring();
        }
    }

    /// Whether a thread may sleep on the bell: it will ring when something ends. False if there is
    /// something to read.
    pub(crate) fn may_sleep(&self) -> bool {
        let Some(bell) = &self.bell else { return true };
        self.bound.progress();
        bell.silence();
        self.rings.store(true, Ordering::Release);
        self.bound.ring_next() && self.is_empty()
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Looks for ends if there is none; whether there still is none.
    fn is_empty_still(&self) -> bool {
        if self.is_empty() {
            self.bound.progress();
        }
        self.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes up to `most` ends to `take`, and says how many there were, or a number of libfabric.
    fn read(&self, most: usize, mut take: impl FnMut(usize, Entry)) -> isize {
        if self.is_empty_still() {
            self.give_way();
            return -(EAGAIN as isize);
        }
        self.idle.store(0, Ordering::Relaxed);
        let mut entries = self.lock();
        let mut count = 0;
        while count < most
            && let Some(entry) = entries.front()
        {
            if entry.failure.is_some() {
                break;
            }
            take(count, *entry);
            entries.pop_front();
            count += 1;
        }
        self.count.store(entries.len(), Ordering::Release);
        match (count, entries.front()) {
            (0, Some(entry)) if entry.failure.is_some() => -(FI_EAVAIL as isize),
            (0, None) => -(EAGAIN as isize),
            _ => count as isize,
        }
    }

    /// Lets others run, if nothing was found for a while.
    fn give_way(&self) {
        // If two do so at once, one of them counts.
        let idle = self.idle.load(Ordering::Relaxed);
        self.idle.store(idle + 1, Ordering::Relaxed);
        if idle >= POLLS_BEFORE_YIELD {
            self.idle.store(POLLS_BEFORE_YIELD - AGAIN, Ordering::Relaxed);
            std::thread::yield_now();
        }
    }

    fn take_failure(&self) -> Option<(Entry, Failure)> {
        if self.is_empty_still() {
            return None;
        }
        let mut entries = self.lock();
        let failure = entries.front()?.failure?;
        let entry = entries.pop_front()?;
        self.count.store(entries.len(), Ordering::Release);
        Some((entry, failure))
    }
}

#[repr(C)]
pub(crate) struct Cq {
    fid: FidCq,
    pub(crate) queue: Arc<Queue>,
    /// How many words of an entry the program wants.
    words: usize,
}

static FID: FidOps = FidOps { close, control, ..FidOps::REFUSES };

static OPS: CqOps =
    CqOps { read, readfrom, readerr, sread, sreadfrom, signal, strerror, ..CqOps::REFUSES };

fn words(format: c_int) -> Option<usize> {
    Some(match format {
        FI_CQ_FORMAT_UNSPEC | FI_CQ_FORMAT_CONTEXT => 1,
        FI_CQ_FORMAT_MSG => 3,
        FI_CQ_FORMAT_DATA => 5,
        FI_CQ_FORMAT_TAGGED => 6,
        _ => return None,
    })
}

pub(crate) unsafe extern "C" fn open(
    _domain: *mut FidDomain,
    attr: *mut CqAttr,
    place: *mut *mut Fid,
    context: *mut c_void,
) -> c_int {
    let (format, wait_obj) = arg_ref!(attr)
        .map_or((FI_CQ_FORMAT_UNSPEC, FI_WAIT_NONE), |attr| (attr.format, attr.wait_obj));
    let bell = match wait_obj {
        FI_WAIT_NONE | FI_WAIT_YIELD => None,
        FI_WAIT_UNSPEC | FI_WAIT_FD => match EventFd::new() {
            Ok(bell) => Some(Arc::new(bell)),
            Err(error) => {
                fault::warn(&error.to_string());
                return -EMFILE;
            }
        },
        _ => return -ENOSYS,
    };
    let Some(words) = words(format) else { return -ENOSYS };
    let fid = Fid { class: FI_CLASS_CQ, context, ops: &raw const FID };
    let fid = FidCq { fid, ops: &raw const OPS };
    let queue = Arc::new(Queue { bell, ..Queue::default() });
    let cq = Cq { fid, queue, words };
    out!(place, Box::into_raw(Box::new(cq)).cast());
    0
}

unsafe extern "C" fn close(fid: *mut Fid) -> c_int {
    if !fid_ref!(fid, Cq).queue.bound.is_empty() {
        return -EBUSY;
    }
    drop(fid_take!(fid, Cq));
    0
}

unsafe extern "C" fn control(fid: *mut Fid, command: c_int, argument: *mut c_void) -> c_int {
    match &fid_ref!(fid, Cq).queue.bell {
        Some(bell) if command == FI_GETWAIT => {
            out!(argument.cast::<c_int>(), bell.descriptor());
            0
        }
        _ => -ENOSYS,
    }
}

/// Reads into the program's entries, which are as long as it said when it opened the queue.
fn read_into(cq: &Cq, buffer: *mut c_void, count: usize, sources: *mut u64) -> isize {
    cq.queue.read(count, |index, entry| {
        let place = buffer.cast::<u64>().wrapping_add(index * cq.words);
        let words = [
            entry.context as u64,
            entry.flags,
            entry.length as u64,
            entry.buffer as u64,
            entry.data,
            entry.tag,
        ];
        for (number, word) in words.into_iter().take(cq.words).enumerate() {
            out!(place.wrapping_add(number), word);
        }
        if !sources.is_null() {
            out!(sources.wrapping_add(index), entry.source.unwrap_or(FI_ADDR_UNSPEC));
        }
    })
}

unsafe extern "C" fn read(cq: *mut FidCq, buffer: *mut c_void, count: usize) -> isize {
    read_into(fid_ref!(cq, Cq), buffer, count, std::ptr::null_mut())
}

unsafe extern "C" fn readfrom(
    cq: *mut FidCq,
    buffer: *mut c_void,
    count: usize,
    sources: *mut u64,
) -> isize {
    read_into(fid_ref!(cq, Cq), buffer, count, sources)
}

unsafe extern "C" fn readerr(cq: *mut FidCq, place: *mut CqErrEntry, _flags: u64) -> isize {
    let Some((entry, failure)) = fid_ref!(cq, Cq).queue.take_failure() else {
        return -(EAGAIN as isize);
    };
    let error = CqErrEntry {
        op_context: entry.context as *mut c_void,
        flags: entry.flags,
        len: entry.length,
        buf: entry.buffer as *mut c_void,
        data: entry.data,
        tag: entry.tag,
        olen: failure.excess,
        err: failure.error,
        prov_errno: failure.error,
        err_data: std::ptr::null_mut(),
        err_data_size: 0,
    };
    out!(place, error);
    1
}

/// Reads, and sleeps or looks again until something has ended, the time is over, or somebody
/// signals.
fn wait_and_read(
    cq: &Cq,
    buffer: *mut c_void,
    count: usize,
    sources: *mut u64,
    timeout: c_int,
) -> isize {
    let begun = Instant::now();
    let limit = u64::try_from(timeout).map_or(Duration::MAX, Duration::from_millis);
    loop {
        let read = read_into(cq, buffer, count, sources);
        let is_over = cq.queue.signalled.swap(false, Ordering::AcqRel);
        if read != -(EAGAIN as isize) || is_over || begun.elapsed() >= limit {
            return read;
        }
        let Some(bell) = &cq.queue.bell else {
            std::thread::yield_now();
            continue;
        };
        // A thread that signals may have rung before the bell was silenced.
        if cq.queue.may_sleep() && !cq.queue.signalled.load(Ordering::Acquire) {
            let left = limit.saturating_sub(begun.elapsed());
            bell.wait((limit != Duration::MAX).then_some(left));
        }
    }
}

unsafe extern "C" fn sread(
    cq: *mut FidCq,
    buffer: *mut c_void,
    count: usize,
    _condition: *const c_void,
    timeout: c_int,
) -> isize {
    wait_and_read(fid_ref!(cq, Cq), buffer, count, std::ptr::null_mut(), timeout)
}

unsafe extern "C" fn sreadfrom(
    cq: *mut FidCq,
    buffer: *mut c_void,
    count: usize,
    sources: *mut u64,
    _condition: *const c_void,
    timeout: c_int,
) -> isize {
    wait_and_read(fid_ref!(cq, Cq), buffer, count, sources, timeout)
}

unsafe extern "C" fn signal(cq: *mut FidCq) -> c_int {
    let queue = &fid_ref!(cq, Cq).queue;
    queue.signalled.store(true, Ordering::Release);
    if let Some(bell) = &queue.bell {
        bell.ring();
    }
    0
}

pub(crate) unsafe extern "C" fn strerror(
    _queue: *mut Fid,
    error: c_int,
    _data: *const c_void,
    buffer: *mut c_char,
    length: usize,
) -> *const c_char {
    give_text(&fault::text(error), buffer, length);
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(queue: &Queue, most: usize) -> Result<Vec<usize>, isize> {
        let mut contexts = Vec::new();
        let read = queue.read(most, |_, entry| contexts.push(entry.context));
        if read < 0 { Err(read) } else { Ok(contexts) }
    }

    #[test]
    fn failures_come_in_their_place_and_are_read_by_themselves() {
        let queue = Queue::default();
        assert_eq!(ends(&queue, 1), Err(-(EAGAIN as isize)));
        let failure = Some(Failure { error: libc::ECANCELED, excess: 0 });
        for (context, failure) in [(1, None), (2, failure), (3, None)] {
            queue.push(Entry { context, failure, ..Entry::default() });
        }
        assert_eq!((ends(&queue, 0), ends(&queue, 9)), (Ok(vec![]), Ok(vec![1])));
        assert_eq!(ends(&queue, 9), Err(-(FI_EAVAIL as isize)));
        assert_eq!(queue.take_failure().unwrap().0.context, 2);
        assert!(queue.take_failure().is_none());
        assert_eq!(ends(&queue, 9), Ok(vec![3]));
    }
}

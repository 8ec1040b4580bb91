//! A guest that truncates its memory must not take the NIC with it.
//!
//! Guest memory is a file of the guest, which may shorten it. An access to
//! a mapped page that the file no longer has raises SIGBUS, which ends the process: every port and
//! every other guest. So mappings are registered here, and a handler answers a SIGBUS inside one
//! by putting zero pages in place of all that follows the fault, and noting that the mapping is
//! *poisoned*. The access goes on, reads zeros, and the owner, who looks at the note once a round,
//! closes that guest's port.
//!
//! Any other SIGBUS goes to the handler that was there before, or ends the process as usual.
//!
//! The handler uses a table of atomics, and one system call that is safe in a signal handler. A
//! range is only ever accessed by the thread that owns the mapping, so none is freed while the
//! handler works on it.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Mappings that can be watched at a time: 64 guests with every region that they may have.
const RANGES: usize = 512;

struct Range {
    taken: AtomicBool,
    /// First address; 0 while the range is not watched.
    start: AtomicUsize,
    /// The address after the last.
    end: AtomicUsize,
    poisoned: AtomicBool,
}

impl Range {
    const fn free() -> Self {
        Self {
            taken: AtomicBool::new(false),
            start: AtomicUsize::new(0),
            end: AtomicUsize::new(0),
            poisoned: AtomicBool::new(false),
        }
    }
}

static WATCHED: [Range; RANGES] = [const { Range::free() }; RANGES];

/// What was installed before, if that is known already.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Installing is done once; whether it worked.
static INSTALLED: OnceLock<bool> = OnceLock::new();

/// A mapping that is watched until this is dropped, which must be before it is unmapped.
#[derive(Debug)]
pub(super) struct Watched {
    slot: usize,
}

impl Watched {
    /// Watches `length` bytes from `start`, whole pages of one mapping.
    pub(super) fn new(start: usize, length: usize) -> io::Result<Self> {
        if !*INSTALLED.get_or_init(install) {
            return Err(io::Error::other("the signal handler for SIGBUS cannot be installed"));
        }
        let free = |range: &Range| !range.taken.swap(true, Ordering::AcqRel);
        let slot = WATCHED.iter().position(free);
        let slot = slot.ok_or_else(|| io::Error::other("more than 512 regions of guest memory"))?;
        let range = &WATCHED[slot];
        range.poisoned.store(false, Ordering::Relaxed);
        range.end.store(start + length, Ordering::Relaxed);
        range.start.store(start, Ordering::Release);
        Ok(Self { slot })
    }

    pub(super) fn is_poisoned(&self) -> bool {
        WATCHED[self.slot].poisoned.load(Ordering::Relaxed)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let range = &WATCHED[self.slot];
        range.start.store(0, Ordering::Release);
        range.taken.store(false, Ordering::Release);
    }
}

fn install() -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_sigbus;
    // SAFETY: all fields are integers or pointers, for which zeros are valid.
    let new = unsafe { action.assume_init_mut() };
    new.sa_sigaction = handler as usize;
    // On the alternate stack that Rust gives each thread, as its own handler for SIGBUS.
    new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: both pointers are valid, and the handler does only what a handler may. No safe call
    // installs a handler that can recover from a fault: it has to run inside the faulting access.
    if unsafe { libc::sigaction(libc::SIGBUS, action.as_ptr(), before.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call has succeeded, so it has written the action before.
    BEFORE.set(unsafe { before.assume_init() }).is_ok()
}

extern "C" fn on_sigbus(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo.
    let info_ref = unsafe { &*info };
    // SAFETY: it is that of a SIGBUS, which has an address.
    let address = unsafe { info_ref.si_addr() } as usize;
    // A SIGBUS that a process sent (code 0 or less) has no address and belongs to no mapping.
    if info_ref.si_code <= 0 || !recover(address) {
        chain(signal, info, context);
    }
}

/// Puts zero pages from the page of `address` to the end of its range; false if it has none.
fn recover(address: usize) -> bool {
    let holds = |range: &&Range| {
        let start = range.start.load(Ordering::Acquire);
        start != 0 && (start..range.end.load(Ordering::Relaxed)).contains(&address)
    };
    let Some(range) = WATCHED.iter().find(holds) else { return false };
    range.poisoned.store(true, Ordering::Relaxed);
    // The whole range rather than one page: it may consist of huge pages, which cannot be replaced
    // one small page at a time.
    let start = range.start.load(Ordering::Relaxed);
    let length = range.end.load(Ordering::Relaxed) - start;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: errno is this thread's own. A handler must leave it as it was.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the pointer is valid for this thread.
    let kept = unsafe { *errno };
    // SAFETY: the range is a mapping of guest memory that this process made and has not unmapped,
    // since it is still watched; nothing holds references into it, only raw pointers. It replaces
    // pages in place, which no safe call does.
    let mapped =
        unsafe { libc::mmap(ptr::without_provenance_mut(start), length, protection, flags, -1, 0) };
    // SAFETY: the pointer is valid for this thread.
    unsafe { *errno = kept };
    mapped != libc::MAP_FAILED
}

/// Does what would have been done without this handler.
fn chain(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE.get().filter(|before| {
        before.sa_sigaction != libc::SIG_DFL && before.sa_sigaction != libc::SIG_IGN
    });
    let Some(before) = before else {
        // The access faults again when this handler returns, and then ends the process; a signal
        // that was sent is sent again.
        // SAFETY: no handler is installed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        // SAFETY: siginfo is valid, as in `on_sigbus`.
        if unsafe { (*info).si_code } <= 0 {
            // SAFETY: always sound; the signal is pending until the handler returns.
            unsafe { libc::raise(signal) };
        }
        return;
    };
    if before.sa_flags & libc::SA_SIGINFO == 0 {
        // SAFETY: neither SIG_DFL nor SIG_IGN, and without SA_SIGINFO: a function of this type.
        let handler: extern "C" fn(libc::c_int) =
            unsafe { std::mem::transmute(before.sa_sigaction) };
        return handler(signal);
    }
    // SAFETY: with SA_SIGINFO it is a function of this type.
    let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
        unsafe { std::mem::transmute(before.sa_sigaction) };
    handler(signal, info, context);
}

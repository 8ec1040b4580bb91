//! Calls: how a receiver hears of a sender whose ring it looks into no longer, since nothing has
//! come from there for a while. So peers that are silent cost one that polls nothing, however many
//! they are.
//!
//! ```text
//!   0      called           set by a sender, after its bit; taken back by the receiver
//!   8      asleep           set by the receiver, taken back by the sender that wakes it
//!   64     a bit for each sender
//! ```
//!
//! The memory is the receiver's, and all its senders map it. One that is hostile can call for
//! others, which costs a look, or take their calls away, so that what they send is late.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use sys::memory::{CACHE_LINE, SharedMemory, Words};

pub(super) const MOST: usize = 1024;
/// Words before the bits.
const BEFORE: usize = CACHE_LINE / size_of::<u64>();
const WORDS: usize = BEFORE + MOST / u64::BITS as usize;

pub(super) struct Calls {
    words: Words<AtomicU64>,
    memory: Arc<SharedMemory>,
}

impl Calls {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self::of(SharedMemory::new(WORDS * size_of::<u64>())?))
    }

    pub(super) fn adopt(file: OwnedFd) -> io::Result<Self> {
        let bytes = (WORDS * size_of::<u64>()).next_multiple_of(sys::page::size());
        Ok(Self::of(SharedMemory::adopt(file, bytes)?))
    }

    fn of(memory: Arc<SharedMemory>) -> Self {
        Self { words: Words::new(&memory, 0, WORDS), memory }
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.memory.file()
    }

    fn called(&self) -> &AtomicU64 {
        &self.words[0]
    }

    fn asleep(&self) -> &AtomicU64 {
        &self.words[1]
    }

    /// Calls as sender `number`; whether the receiver sleeps, and has to be woken.
    pub(super) fn call(&self, number: u16) -> bool {
        let bits = usize::from(number) % MOST;
        self.words[BEFORE + bits / 64].fetch_or(1 << (bits % 64), Ordering::Release);
        self.called().store(1, Ordering::Release);
        // The receiver does it the other way round.
        fence(Ordering::SeqCst);
        let asleep = self.asleep();
        asleep.load(Ordering::Relaxed) != 0 && asleep.swap(0, Ordering::Relaxed) != 0
    }

    pub(super) fn take(&self, mut each: impl FnMut(u16)) {
        if self.called().load(Ordering::Relaxed) == 0
            || self.called().swap(0, Ordering::AcqRel) == 0
        {
            return;
        }
        for (place, word) in self.words[BEFORE..].iter().enumerate() {
            let mut bits = word.swap(0, Ordering::Acquire);
            while bits != 0 {
                each((place * 64) as u16 + bits.trailing_zeros() as u16);
                bits &= bits - 1;
            }
        }
    }

    /// Asks to be woken; `true` if a sender has called already.
    pub(super) fn arm(&self) -> bool {
        self.asleep().store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.called().load(Ordering::Relaxed) != 0
    }
}

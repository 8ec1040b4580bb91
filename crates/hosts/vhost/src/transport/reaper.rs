//! Letting go of what frontends have handed over, where waiting harms no other port.
//!
//! The last `close()` of a file may take as long as its maker likes: a TCP socket lingers, a
//! file of FUSE asks its server, a large file of memory is freed page by page. A frontend can pass
//! any descriptor, close its own, and so leave the last `close()` to the NIC. Each device therefore
//! has a thread that does nothing else; a frontend that makes it wait holds up its own port alone.

use std::io;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};

/// A thread that drops what it is given.
#[derive(Clone, Debug)]
pub struct Reaper {
    queue: Sender<Box<dyn Send>>,
    pending: Arc<AtomicUsize>,
}

impl Reaper {
    /// Starts the thread; it ends with the last clone of this.
    pub fn start() -> io::Result<Self> {
        let (queue, things) = channel::<Box<dyn Send>>();
        let pending = Arc::new(AtomicUsize::new(0));
        let left = Arc::clone(&pending);
        std::thread::Builder::new().name("earmark-reaper".into()).spawn(move || {
            for thing in things {
                drop(thing);
                left.fetch_sub(1, Ordering::Relaxed);
            }
        })?;
        Ok(Self { queue, pending })
    }

    /// What has still to be dropped.
    pub fn pending(&self) -> usize {
        self.pending.load(Ordering::Relaxed)
    }

    /// Drops `thing` after all that waits already.
    pub(super) fn drop_later(&self, thing: Box<dyn Send>) {
        self.pending.fetch_add(1, Ordering::Relaxed);
        // The thread lives as long as there is a sender.
        let _ = self.queue.send(thing);
    }
}

/// Something of a frontend's, which the reaper drops.
#[derive(Debug)]
pub struct Foreign<T: Send + 'static> {
    /// There until this is dropped.
    inside: Option<T>,
    reaper: Reaper,
}

/// A descriptor of a frontend's.
pub type ForeignFd = Foreign<OwnedFd>;

impl<T: Send + 'static> Foreign<T> {
    /// Leaves the end of `inside` to `reaper`.
    pub fn new(inside: T, reaper: &Reaper) -> Self {
        Self { inside: Some(inside), reaper: reaper.clone() }
    }

    /// Something else of the same frontend's.
    pub fn beside<U: Send + 'static>(&self, inside: U) -> Foreign<U> {
        Foreign::new(inside, &self.reaper)
    }
}

impl<T: Send + 'static> Drop for Foreign<T> {
    fn drop(&mut self) {
        if let Some(inside) = self.inside.take() {
            self.reaper.drop_later(Box::new(inside));
        }
    }
}

impl<T: Send + 'static> Deref for Foreign<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inside.as_ref().expect("it is there until this is dropped")
    }
}

impl<T: Send + 'static> DerefMut for Foreign<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inside.as_mut().expect("it is there until this is dropped")
    }
}

impl<T: AsFd + Send + 'static> AsFd for Foreign<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.deref().as_fd()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, sync_channel};

    /// A descriptor as one of a frontend's.
    pub(in super::super) fn foreign(fd: impl Into<OwnedFd>) -> ForeignFd {
        Foreign::new(fd.into(), &Reaper::start().unwrap())
    }

    /// Blocks the thread that drops it until a message arrives.
    pub(in super::super) struct Stubborn(pub(in super::super) Receiver<()>);

    impl Drop for Stubborn {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    #[test]
    fn dropping_does_not_wait() {
        let reaper = Reaper::start().unwrap();
        let (release, wait) = sync_channel(0);
        drop(Foreign::new(Stubborn(wait), &reaper));
        drop(Foreign::new((), &reaper));
        assert_eq!(reaper.pending(), 2);
        release.send(()).unwrap();
        while reaper.pending() > 0 {
            std::thread::yield_now();
        }
    }
}

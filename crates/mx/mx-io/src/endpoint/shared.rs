//! What the threads of an endpoint share: the lock, and what they sleep on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use super::core::Core;
use super::sources::Sources;

/// What a thread does until its request has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitMode {
    /// It sleeps until the NIC interrupts.
    #[default]
    Sleep,
    /// It looks again and again.
    Spin,
    /// It looks for so long, and then sleeps.
    Hybrid(Duration),
}

pub(super) struct Shared<S, R> {
    pub(super) core: Mutex<Core<S, R>>,
    pub(super) sources: Arc<Sources>,
    pub(super) waiting: WaitMode,
}

impl<S, R> Shared<S, R> {
    pub(super) fn lock(&self) -> MutexGuard<'_, Core<S, R>> {
        // A thread that panicked in there left counters and queues in order: the engine panics on
        // nothing that comes from outside.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, Core<S, R>>> {
        match self.core.try_lock() {
            Ok(core) => Some(core),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

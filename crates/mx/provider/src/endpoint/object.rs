//! The endpoint object of libfabric, and what is behind it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use super::live::Live;
use crate::abi::constants::FI_COMPLETION;
use crate::abi::transfers::FidEp;
use crate::av::Addresses;
use crate::cntr::Counter;
use crate::cq::{Entry, Queue};
use crate::regions::Regions;

#[repr(C)]
pub(crate) struct Ep {
    pub(super) fid: FidEp,
    pub(super) setup: Mutex<Setup>,
    pub(super) live: OnceLock<Arc<Live>>,
}

/// Where operations of one direction are completed.
#[derive(Default)]
pub(crate) struct CompletionSide {
    pub(crate) queue: Option<Arc<Queue>>,
    pub(crate) counter: Option<Arc<Counter>>,
    /// Only operations that ask for it have a completion (`FI_SELECTIVE_COMPLETION`).
    pub(crate) selective: bool,
    /// Flags of calls that have none of their own.
    pub(crate) op_flags: AtomicU64,
}

impl CompletionSide {
    pub(crate) const fn wants_completion(&self, flags: u64) -> bool {
        !self.selective || flags & FI_COMPLETION != 0
    }

    pub(crate) fn flags(&self) -> u64 {
        self.op_flags.load(Ordering::Relaxed)
    }

    pub(super) fn complete(&self, entry: Entry) {
        if let Some(queue) = &self.queue {
            queue.push(entry);
        }
    }

    pub(super) fn count(&self, well: bool) {
        if let Some(counter) = &self.counter {
            counter.count(well);
        }
    }
}

/// What an endpoint is made of before it is enabled.
#[derive(Default)]
pub(super) struct Setup {
    pub(super) addresses: Option<Arc<Addresses>>,
    pub(super) tx: CompletionSide,
    pub(super) rx: CompletionSide,
    pub(super) writes: Option<Arc<Counter>>,
    pub(super) reads: Option<Arc<Counter>>,
    pub(super) regions: Arc<Regions>,
    pub(super) directed: bool,
    pub(super) reports_sources: bool,
    /// Peers may use memory of this process.
    pub(super) remote: bool,
    pub(super) least_left: usize,
}

/// The endpoint that a call is for, or a return from it if it is not enabled.
macro_rules! enabled {
    ($ep:expr) => {
        match fid_ref!($ep, Ep).live.get() {
            Some(live) => live,
            None => return -(FI_EOPBADSTATE as isize),
        }
    };
}

pub(super) use enabled;

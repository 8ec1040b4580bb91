//! The endpoints that are bound to a queue or a counter.

use std::sync::{Arc, PoisonError, RwLock};

pub(crate) trait Driven: Send + Sync {
    fn progress(&self);

    /// Has it ring when the next request ends; false if one has ended, or if it is broken.
    fn ring_next(&self) -> bool;
}

/// The endpoints whose ends a queue or a counter tells.
#[derive(Default)]
pub(crate) struct Bound(RwLock<Vec<Arc<dyn Driven>>>);

impl Bound {
    pub(crate) fn progress(&self) {
        for endpoint in &*self.0.read().unwrap_or_else(PoisonError::into_inner) {
            endpoint.progress();
        }
    }

    /// Has all of them ring when the next request ends; false if one has ended.
    pub(crate) fn ring_next(&self) -> bool {
        let list = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let quiet: Vec<_> = list.iter().map(|endpoint| endpoint.ring_next()).collect();
        quiet.into_iter().all(|quiet| quiet)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    pub(crate) fn add(&self, endpoint: &Arc<dyn Driven>) {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if !list.iter().any(|known| Arc::ptr_eq(known, endpoint)) {
            list.push(Arc::clone(endpoint));
        }
    }

    pub(crate) fn remove(&self, endpoint: &Arc<dyn Driven>) {
        let mut list = self.0.write().unwrap_or_else(PoisonError::into_inner);
        list.retain(|known| !Arc::ptr_eq(known, endpoint));
    }
}

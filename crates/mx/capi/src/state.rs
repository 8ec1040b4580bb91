//! Whether the library is initialized.

use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) static INITIALIZED: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_initialized() -> bool {
    INITIALIZED.load(Ordering::Acquire)
}

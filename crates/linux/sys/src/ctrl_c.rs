//! Ctrl-C and its kin: noticed, not obeyed at once, so that what was changed is undone first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use std::io;

use crate::signals::{ENDING, register};
use signal_hook::flag;

/// A signal has asked this process to end.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("interrupted; what was changed is undone")]
pub struct Interrupted;

static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on signals that ask to end are noticed. A second one ends the process at once; the
/// guard does the rest then.
pub fn watch() -> io::Result<()> {
    let interrupted = FLAG.get_or_init(Arc::default);
    register(ENDING, |signals| {
        signals.into_iter().try_for_each(|signal| {
            flag::register_conditional_default(signal, Arc::clone(interrupted))?;
            flag::register(signal, Arc::clone(interrupted)).map(drop)
        })
    })
}

/// Whether one has come.
pub fn is() -> bool {
    FLAG.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// Goes on, unless one has come.
pub fn check() -> Result<(), Interrupted> {
    if is() { Err(Interrupted) } else { Ok(()) }
}

//! Ctrl-C and its kin: noticed, not obeyed at once, so that what was changed is undone first.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use std::io;

use crate::signals::{ENDING, register};
use signal_hook::flag;

/// A signal has asked this process to end.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("interrupted; what was changed is undone")]
pub struct Interrupted;

/// The number of the signal that has come; 0: none.
static CAME: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// From now on signals that ask to end are noticed. A second one ends the process at once; the
/// guard does the rest then.
pub fn watch() -> io::Result<()> {
    if CAME.get().is_some() {
        return Ok(());
    }
    let came = CAME.get_or_init(Arc::default);
    let is_second = Arc::new(AtomicBool::new(false));
    register(ENDING, |signals| {
        signals.into_iter().try_for_each(|signal| {
            flag::register_conditional_default(signal, Arc::clone(&is_second))?;
            flag::register(signal, Arc::clone(&is_second))?;
            flag::register_usize(signal, Arc::clone(came), signal as usize).map(drop)
        })
    })
}

/// Whether one has come.
pub fn is() -> bool {
    status().is_some()
}

/// The exit status of a command that ends because one has come, as shells have it.
pub fn status() -> Option<u8> {
    let signal = CAME.get().map_or(0, |came| came.load(Ordering::Relaxed));
    (signal != 0).then_some(128 + signal as u8)
}

/// Goes on, unless one has come.
pub fn check() -> Result<(), Interrupted> {
    if is() { Err(Interrupted) } else { Ok(()) }
}

//! How tests wait.

use std::thread;
use std::time::{Duration, Instant};

/// No run of these tests takes this long; one that does hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);

/// Waits until `condition` holds; long enough for a machine that does something else, too.
#[track_caller]
pub(crate) fn soon(what: &str, mut condition: impl FnMut() -> bool) {
    soon_some(what, || condition().then_some(()));
}

/// Waits until there is something to `find`.
#[track_caller]
pub(crate) fn soon_some<T>(what: &str, mut find: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "not within {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

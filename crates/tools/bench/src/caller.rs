//! The program that a run is part of: a command on a terminal, or a page in a browser.

use anyhow::Result;

/// What a run shows its program, and asks it. `()` shows nothing, has no clock and lets it end.
pub trait Caller: Sync {
    /// So many more turns will be played.
    fn start(&self, _turns: u64) {}

    /// One of them begins.
    fn step(&self, _what: &str) {}

    /// All have been played.
    fn finish(&self) {}

    /// Lets the run go on.
    ///
    /// # Errors
    /// If the user has asked to end it.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Seconds of real time since some moment.
    fn seconds(&self) -> f64 {
        0.0
    }
}

impl Caller for () {}

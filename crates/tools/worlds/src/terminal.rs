//! A run that is a command's: its progress on the terminal, and Ctrl-C.

use anyhow::Result;
use bench::caller::Caller;
use report::progress::Progress;
use sys::{clock, ctrl_c};

/// Shows a run's progress, and ends it at a Ctrl-C that is watched.
pub struct Terminal<'a>(pub &'a Progress);

impl Caller for Terminal<'_> {
    fn start(&self, turns: u64) {
        self.0.start(turns);
    }

    fn step(&self, what: &str) {
        self.0.step(what);
    }

    fn finish(&self) {
        self.0.finish();
    }

    fn check(&self) -> Result<()> {
        Ok(ctrl_c::check()?)
    }

    fn seconds(&self) -> f64 {
        clock::now().as_nanos() as f64 / 1e9
    }
}

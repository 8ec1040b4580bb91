//! Progress on the terminal; nothing where standard error is none.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error; none if that is no terminal.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar without steps; hidden if `quiet`.
    pub fn new(quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(0) };
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}")
            .expect("the template is valid");
        bar.set_style(style);
        Self { bar }
    }

    /// Adds so many steps.
    pub fn start(&self, steps: u64) {
        self.bar.inc_length(steps);
    }

    /// Begins one of them.
    pub fn step(&self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.inc(1);
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

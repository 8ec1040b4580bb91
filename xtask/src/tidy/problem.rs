//! What a rule finds.

use std::fmt;

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Path from the root of the repository.
    pub file: String,
    /// Counted from 1.
    pub line: usize,
    /// What is wrong and what to do.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}

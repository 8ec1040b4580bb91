//! Files, and what they import from each other.

use std::collections::BTreeMap;

/// The files of one target, and their imports.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    /// Paths from the directory that the target's root file is in.
    pub files: Vec<String>,
    /// From which file to which, and the names that are imported.
    pub edges: BTreeMap<(usize, usize), Names>,
}

/// Names, and the line of the first import of each, counted from 1.
pub(crate) type Names = BTreeMap<String, usize>;

impl Imports {
    /// Adds an import; what a file has in itself is none.
    pub(super) fn add(&mut self, from: usize, to: usize, name: String, line: usize) {
        if from != to {
            let names = self.edges.entry((from, to)).or_default();
            let first = names.entry(name).or_insert(line);
            *first = line.min(*first);
        }
    }
}

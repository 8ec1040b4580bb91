//! Files of a tree, and those that could not be read.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// No directory has more files, and no file more bytes.
const MOST_FILES: usize = 4_096;
const LARGEST: u64 = 1 << 20;

/// The files of a machine: `/`, an image of it, or what a report of it has.
pub trait FileTree {
    /// The text of a regular file of `most` bytes at most; `None` if there is nothing.
    ///
    /// # Errors
    /// If it is something else, a link that leads out of the tree, larger, or cannot be read.
    fn read_text(&self, path: &str, most: u64) -> io::Result<Option<String>>;

    /// The names in a directory, in their order; none if there is no such directory.
    ///
    /// # Errors
    /// If there are more than `most`, or it cannot be read.
    fn names(&self, path: &str, most: usize) -> io::Result<Vec<String>>;

    /// Where a path is, for messages.
    fn shown(&self, path: &str) -> PathBuf;
}

/// A file or directory that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("read {}; move it away: {why}", .path.display())]
pub struct Unread {
    /// Where it is, below the root of the tree.
    pub path: PathBuf,
    /// The error of the read, in words.
    pub why: String,
    /// Whether more rights would help.
    pub is_denied: bool,
}

pub(super) struct Files<'a> {
    pub(super) tree: &'a dyn FileTree,
    pub(super) unread: Vec<Unread>,
}

impl<'a> Files<'a> {
    pub(super) fn new(tree: &'a dyn FileTree) -> Self {
        Self { tree, unread: Vec::new() }
    }

    /// The text of a file; empty if there is none, or if it cannot be read, which is noted.
    pub(super) fn text(&mut self, path: &str) -> String {
        text(self.tree, path).unwrap_or_else(|unread| self.note(unread)).unwrap_or_default()
    }

    /// The names in a directory; none if it cannot be read, which is noted.
    pub(super) fn names(&mut self, directory: &str) -> Vec<String> {
        names(self.tree, directory).unwrap_or_else(|unread| self.note(unread))
    }

    pub(super) fn by_name(&mut self, directories: &[&str], end: &str) -> Vec<String> {
        let found = by_name(self.tree, directories, "", end);
        found.unwrap_or_else(|unread| self.note(unread)).into_values().collect()
    }

    pub(super) fn note<T: Default>(&mut self, unread: Unread) -> T {
        self.unread.push(unread);
        T::default()
    }
}

pub(super) fn text(tree: &dyn FileTree, path: &str) -> Result<Option<String>, Unread> {
    tree.read_text(path, LARGEST).map_err(|cause| unread(tree, path, &cause))
}

fn names(tree: &dyn FileTree, directory: &str) -> Result<Vec<String>, Unread> {
    tree.names(directory, MOST_FILES).map_err(|cause| unread(tree, directory, &cause))
}

fn unread(tree: &dyn FileTree, path: &str, cause: &io::Error) -> Unread {
    let is_denied = cause.kind() == io::ErrorKind::PermissionDenied;
    Unread { path: tree.shown(path), why: cause.to_string(), is_denied }
}

/// Files with that ending in a directory below each of several, by name: one of the first hides
/// one of the same name in a later one.
pub(super) fn by_name(
    tree: &dyn FileTree,
    directories: &[&str],
    below: &str,
    end: &str,
) -> Result<BTreeMap<String, String>, Unread> {
    let mut found = BTreeMap::new();
    for directory in directories {
        let directory = format!("{directory}{below}");
        for name in names(tree, &directory)?.into_iter().filter(|name| name.ends_with(end)) {
            let path = format!("{directory}/{name}");
            found.entry(name).or_insert(path);
        }
    }
    Ok(found)
}

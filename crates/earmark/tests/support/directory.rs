//! Directories of tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A name that no other test of any run uses.
pub(crate) fn unique(prefix: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// An empty directory that goes away with this value.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(unique("earmark-test"));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it, as text.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file; its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.file(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Copies a program into it; its path.
    ///
    /// By a process of its own: a child that another thread has just forked keeps what this process
    /// writes open until it begins its program, and "Text file busy" would be the answer.
    pub(crate) fn program(&self, name: &str, from: Stdio) -> String {
        let path = self.file(name);
        let mut copy = Command::new("install");
        let ended = copy.args(["-m", "755", "/dev/stdin", &path]).stdin(from).status();
        assert!(ended.unwrap().success(), "install {path}");
        path
    }

    /// Writes a script that can be executed; its path.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        let source = self.write(&format!("{name}.source"), text);
        self.program(name, fs::File::open(source).unwrap().into())
    }

    /// The names of its files.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Whether a journal of a changed device is in it.
    pub(crate) fn has_journal(&self) -> bool {
        self.names().iter().any(|name| name.ends_with(".journal"))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

//! Recorded trees, unpacked.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use netdev::Root;

/// A recorded tree in a directory of its own, which goes with it.
pub(crate) struct Tree {
    directory: PathBuf,
}

impl Tree {
    /// Unpacks `tests/samples/NAME.tree`: `== PATH` and text, or `== PATH -> TARGET`.
    pub(crate) fn unpack(name: &str) -> Self {
        // Tests of other crates read the same recordings.
        let samples =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../linux/netdev/tests/samples");
        let text = fs::read(samples.join(format!("{name}.tree"))).unwrap();
        let text = String::from_utf8(text).unwrap();
        let directory = format!("earmark-{name}-{}-{:?}", std::process::id(), thread());
        let tree = Self { directory: std::env::temp_dir().join(directory) };
        for part in text.split("== ").skip(1) {
            let (path, content) = part.split_once('\n').unwrap();
            match path.split_once(" -> ") {
                Some((path, target)) => symlink(target, tree.place(path)).unwrap(),
                None => fs::write(tree.place(path), content).unwrap(),
            }
        }
        tree
    }

    fn place(&self, path: &str) -> PathBuf {
        let place = self.directory.join(path);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        place
    }

    /// Writes a file that is no text.
    #[allow(dead_code, reason = "not every crate's tests do")]
    pub(crate) fn add(&self, path: &str, bytes: &[u8]) {
        fs::write(self.place(path), bytes).unwrap();
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(&self.directory)
    }
}

fn thread() -> std::thread::ThreadId {
    std::thread::current().id()
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

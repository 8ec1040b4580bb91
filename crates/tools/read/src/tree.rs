//! Files of another machine, as a report or a paste has them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use device::kernel::KernelFiles;
use device::setters::FileTree;

/// Bytes of all files of a machine. A report has less (`archive::MOST_KEPT_BYTES`).
const MOST_BYTES: usize = 512 << 20;

/// Files by their paths without a slash at the beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, Vec<u8>>,
    /// Bytes in them, and in their paths.
    size: usize,
    /// Files for which there was no room.
    pub(crate) left_out: usize,
}

impl Tree {
    pub(crate) fn add(&mut self, path: &str, bytes: Vec<u8>) {
        let path = path.trim_start_matches('/');
        let before = self.files.get(path).map_or(0, |bytes| path.len() + bytes.len());
        let size = self.size - before + path.len() + bytes.len();
        if size > MOST_BYTES {
            self.left_out += 1;
            return;
        }
        self.size = size;
        self.files.insert(path.to_owned(), bytes);
    }

    /// Files below a directory, by path.
    fn below<'a>(&'a self, directory: &str) -> impl Iterator<Item = &'a str> + use<'a> {
        let start = format!("{}/", directory.trim_matches('/'));
        let length = start.len();
        let files = self.files.range(start.clone()..).map(|(path, _)| path);
        let files = files.take_while(move |path| path.starts_with(&start));
        files.map(move |path| &path[length..])
    }

    /// Names in a directory, in their order.
    fn names_in(&self, directory: &str) -> BTreeSet<String> {
        let first = |path: &str| path.split('/').next().map(str::to_owned);
        self.below(directory).filter_map(first).collect()
    }

    /// The devices that have files of their own.
    pub(crate) fn devices(&self) -> BTreeSet<String> {
        let mut devices = self.names_in("sys/class/net");
        devices.retain(|name| {
            self.below(&format!("sys/class/net/{name}")).next().is_some() && name != "lo"
        });
        devices
    }

    /// A file by its path.
    fn get(&self, path: &str) -> Option<&Vec<u8>> {
        self.files.get(path.trim_start_matches('/'))
    }
}

impl KernelFiles for Tree {
    fn bytes(&self, path: &str, most: u64) -> io::Result<Vec<u8>> {
        let bytes = self.get(path).ok_or(ErrorKind::NotFound)?;
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(bytes.len());
        Ok(bytes[..most].to_vec())
    }

    fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let names = self.names_in(path);
        if names.is_empty() {
            return Err(ErrorKind::NotFound.into());
        }
        Ok(names.into_iter().collect())
    }

    fn has(&self, path: &str) -> bool {
        self.get(path).is_some() || self.below(path).next().is_some()
    }

    /// Reports copy what links lead to.
    fn link_name(&self, _path: &str) -> Option<String> {
        None
    }
}

impl FileTree for Tree {
    fn read_text(&self, path: &str, most: u64) -> io::Result<Option<String>> {
        match self.bytes(path, most) {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(_) => Ok(None),
        }
    }

    fn names(&self, path: &str, most: usize) -> io::Result<Vec<String>> {
        let names = self.names_in(path);
        if names.len() > most {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it has too many files"));
        }
        Ok(names.into_iter().collect())
    }

    fn shown(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/{}", path.trim_start_matches('/')))
    }
}

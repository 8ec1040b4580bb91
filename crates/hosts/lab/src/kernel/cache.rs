//! Where built kernels are kept, and how two builds keep out of each other's way.

use std::fmt::Arguments;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use sys::files::Directory;

use super::recipe;
use super::sources::{Suite, numbers};

pub(super) struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// The cache of this user; its directory need not exist yet. Kernels of a suite have one of
    /// their own, so guests run them only where they are named.
    pub(super) fn open(suite: Option<&Suite>) -> Result<Self> {
        // Relative ones do not count (XDG Base Directory Specification).
        let absolute = |value: &std::ffi::OsString| Path::new(value).is_absolute();
        let variable = |name| std::env::var_os(name).filter(absolute);
        let base = match (variable("XDG_CACHE_HOME"), variable("HOME")) {
            (Some(cache), _) => PathBuf::from(cache),
            (None, Some(home)) => Path::new(&home).join(".cache"),
            (None, None) => anyhow::bail!(
                "find the cache directory: neither XDG_CACHE_HOME nor HOME is set; set one"
            ),
        };
        let own = base.join("earmark/kernel");
        Self::at(suite.map_or(own.clone(), |suite| own.join(suite.to_string())))
    }

    /// The cache in a directory, which belongs to this user or root if it is there: guests run the
    /// kernels in it with this user's rights.
    fn at(directory: PathBuf) -> Result<Self> {
        let cache = Self { directory };
        match Directory::open(&cache.directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => drop(cache.own(opened)?),
        }
        Ok(cache)
    }

    fn own(&self, opened: io::Result<Directory>) -> Result<Directory> {
        let own = opened.and_then(|directory| directory.check_own().map(|()| directory));
        own.with_context(|| {
            format!(
                "open the kernels in {}; set XDG_CACHE_HOME to a directory of your own",
                self.directory.display()
            )
        })
    }

    /// The newest kernel that was built by the present recipe.
    pub(super) fn newest(&self) -> Option<PathBuf> {
        let entries = fs::read_dir(&self.directory).ok()?;
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let current = names.filter(|name| is_current(name));
        current.max_by_key(|name| numbers(name)).map(|name| self.directory.join(name))
    }

    /// Where the kernel of this version is, or will be.
    pub(super) fn kernel(&self, version: &str) -> PathBuf {
        self.directory.join(format!("linux-{version}-{}", recipe::hash(version)))
    }

    /// Waits until no other process builds, and keeps others from it as long as the file is open.
    pub(super) fn lock(&self, report: fn(Arguments<'_>)) -> Result<File> {
        let path = self.directory.join("lock");
        let lock = self.own(Directory::open_or_make(&self.directory))?.lock_file("lock");
        let lock = lock.with_context(|| format!("create {}", path.display()))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            report(format_args!("earmark: another `earmark kernel` is at work; waiting for it"));
            flock(&lock, FlockOperation::LockExclusive)
                .with_context(|| format!("lock {}", path.display()))?;
        }
        Ok(lock)
    }

    /// An empty directory to build in. One that was left by a build that was killed is removed; the
    /// lock says that no process uses it.
    pub(super) fn workshop(&self, _lock: &File) -> Result<Workshop> {
        let path = self.directory.join("build");
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("remove {}", path.display()))?;
        }
        fs::create_dir(&path).with_context(|| format!("create {}", path.display()))?;
        Ok(Workshop { path })
    }
}

/// The newest kernel that was built by the present recipe of the sources of another suite.
pub fn newest_of_suites() -> Option<PathBuf> {
    let own = Cache::open(None).ok()?.directory;
    let directories = fs::read_dir(own).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let kernels = directories
        .filter(|path| path.is_dir())
        .filter_map(|directory| Cache::at(directory).ok()?.newest());
    kernels.max_by_key(|path| numbers(&path.file_name().unwrap_or_default().to_string_lossy()))
}

/// A directory that goes away with this value.
pub(super) struct Workshop {
    path: PathBuf,
}

impl Workshop {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        // The next build removes what is left.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Whether a file of this name is a kernel of the present recipe.
fn is_current(name: &str) -> bool {
    let parts = name.strip_prefix("linux-").and_then(|rest| rest.rsplit_once('-'));
    parts.is_some_and(|(version, hash)| recipe::hash(version) == hash)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_cache_that_others_could_have_filled_is_refused() {
        let directory = std::env::temp_dir().join(format!("earmark-cache-{}", std::process::id()));
        let cache = Cache::at(directory.clone()).unwrap();
        drop(cache.lock(|_| {}).unwrap());
        // A lock must not lead to another file.
        let victim = directory.join("victim");
        fs::write(&victim, "precious").unwrap();
        fs::remove_file(directory.join("lock")).unwrap();
        symlink(&victim, directory.join("lock")).unwrap();
        assert!(cache.lock(|_| {}).is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
        let refusal = format!("{:#}", Cache::at(directory.clone()).err().unwrap());
        assert!(refusal.contains("set XDG_CACHE_HOME") && refusal.contains("chmod go-w"));
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn kernels_of_another_recipe_are_not_current() {
        let cache = Cache { directory: "cache".into() };
        let path = cache.kernel("6.12.117-1~deb12u1");
        assert!(is_current(path.file_name().unwrap().to_str().unwrap()));
        assert!(!is_current("linux-6.12.117-1~deb12u1-0123456789abcdef"));
        assert!(!is_current("build"));
    }
}

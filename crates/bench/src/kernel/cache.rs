//! Where built kernels are kept, and how two builds keep out of each other's way.

use std::fmt::Arguments;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

use super::recipe;
use super::sources::Suite;
use super::versions::numbers;

/// The directory of built kernels.
pub(super) struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// The cache of this user; its directory need not exist yet. Kernels of a suite have one of
    /// their own, so guests run them only where they are named.
    pub(super) fn open(suite: Option<&Suite>) -> Result<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let base = match (variable("XDG_CACHE_HOME"), variable("HOME")) {
            (Some(cache), _) => PathBuf::from(cache),
            (None, Some(home)) => Path::new(&home).join(".cache"),
            (None, None) => anyhow::bail!(
                "find the cache directory: neither XDG_CACHE_HOME nor HOME is set; set one"
            ),
        };
        let own = base.join("earmark/kernel");
        Ok(Self { directory: suite.map_or(own.clone(), |suite| own.join(suite.to_string())) })
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

    /// Waits until nobody else builds, and keeps others from it as long as the file is open.
    pub(super) fn lock(&self, report: fn(Arguments<'_>)) -> Result<File> {
        let directory = self.directory.display();
        fs::create_dir_all(&self.directory).with_context(|| format!("create {directory}"))?;
        let path = self.directory.join("lock");
        let lock = File::create(&path).with_context(|| format!("create {}", path.display()))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            report(format_args!("earmark: another `earmark kernel` is at work; waiting for it"));
            flock(&lock, FlockOperation::LockExclusive)
                .with_context(|| format!("lock {}", path.display()))?;
        }
        Ok(lock)
    }

    /// An empty directory to build in. One that was left by a build that was killed is removed; the
    /// lock says that nobody uses it.
    pub(super) fn workshop(&self, _lock: &File) -> Result<Workshop> {
        let path = self.directory.join("build");
        if path.exists() {
            fs::remove_dir_all(&path).with_context(|| format!("remove {}", path.display()))?;
        }
        fs::create_dir(&path).with_context(|| format!("create {}", path.display()))?;
        Ok(Workshop { path })
    }
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
    use super::*;

    #[test]
    fn kernels_of_another_recipe_are_not_current() {
        let cache = Cache { directory: "cache".into() };
        let path = cache.kernel("6.12.117-1~deb12u1");
        assert!(is_current(path.file_name().unwrap().to_str().unwrap()));
        assert!(!is_current("linux-6.12.117-1~deb12u1-0123456789abcdef"));
        assert!(!is_current("build"));
    }
}

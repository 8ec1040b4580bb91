//! The kernel of guests: User-Mode Linux, found or built.
//!
//! Guests run a Linux kernel that is an ordinary program. Distributions package one, but without
//! virtual time (`CONFIG_UML_TIME_TRAVEL_SUPPORT`), so Earmark builds its own from the sources that
//! apt knows, once, and keeps it in the user's cache directory:
//!
//! ```text
//! ~/.cache/earmark/kernel/linux-6.12.117-1~deb12u1-0123456789abcdef
//! ```
//!
//! The name ends in a hash of the version, the [`recipe`] and the configuration, so a kernel that
//! was built otherwise is not mistaken for this one. Kernels of [other suites](Suite) are in
//! directories of their own; guests run them where `EARMARK_KERNEL` names them.

mod build;
mod cache;
mod process;
pub mod recipe;
mod sources;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

pub use build::find_or_build;
pub use cache::newest_of_suites;
pub use sources::Suite;

/// Names a kernel to use, whatever the cache has.
pub const VARIABLE: &str = "EARMARK_KERNEL";

/// No kernel has more bytes.
const LARGEST: u64 = 1 << 28;

/// Where Debian's package `user-mode-linux` puts its kernel.
pub const PACKAGED: &str = "/usr/bin/linux.uml";

/// What a world wants of its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Real time will do: any User-Mode Linux with virtio.
    RealTime,
    /// Virtual time: only a kernel that was built for it.
    VirtualTime,
}

/// The kernel to use: the one that `EARMARK_KERNEL` names, one that was built, or the packaged one.
pub fn find(needs: Needs) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        if !path.is_file() {
            bail!("use the kernel {}: there is no such file; set {VARIABLE} right", path.display());
        }
        if needs == Needs::VirtualTime {
            require_edits(&path)?;
        }
        return Ok(path);
    }
    if let Some(path) = cache::Cache::open(None)?.newest() {
        return Ok(path);
    }
    match needs {
        Needs::RealTime if PathBuf::from(PACKAGED).is_file() => Ok(PACKAGED.into()),
        Needs::RealTime => bail!(
            "find a kernel for guests: there is none; `earmark kernel` builds one, from 150 MB of \
             sources, in about four minutes, or install a packaged one with: \
             apt-get install user-mode-linux"
        ),
        Needs::VirtualTime => bail!(
            "find a kernel with virtual time: there is none; `earmark kernel` builds one, from 150 MB \
             of sources, in about four minutes"
        ),
    }
}

/// Refuses a kernel for virtual time that lacks the edits of the [`recipe`]: it would panic.
fn require_edits(path: &Path) -> Result<()> {
    let bytes = sys::files::read(path, LARGEST)
        .with_context(|| format!("read the kernel {}", path.display()))?;
    let is_ours = bytes.windows(recipe::BUILDER.len()).any(|window| window == recipe::BUILDER);
    ensure!(
        is_ours,
        "use the kernel {} in virtual time: it lacks the changes that `earmark kernel` makes; let \
         that build one, and unset {VARIABLE}",
        path.display()
    );
    Ok(())
}

//! What the first process of a container finds mounted.

use std::ffi::CStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, mount, mount_bind};

use super::stage::write;

/// The devices that every container has.
const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Mounts what a container has below `root`, in the namespaces of this process.
pub(super) fn mount_all(root: &Path) -> Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let new = |kind: &str, place: &str, options: Option<&CStr>| {
        let flags = if kind == "tmpfs" { MountFlags::NOSUID } else { flags };
        let place = root.join(place);
        mount(kind, &place, kind, flags, options)
            .with_context(|| format!("mount {kind} at {}", place.display()))
    };
    new("proc", "proc", None)?;
    new("sysfs", "sys", None)?;
    new("cgroup2", "sys/fs/cgroup", None)?;
    new("tmpfs", "run", Some(c"mode=755"))?;
    new("tmpfs", "dev", Some(c"mode=755"))?;
    let dev = root.join("dev");
    for node in NODES {
        write(&dev.join(node), "")?;
        mount_bind(Path::new("/dev").join(node), dev.join(node))
            .with_context(|| format!("bind /dev/{node}"))?;
    }
    for made in ["pts", "shm"] {
        fs::create_dir(dev.join(made))?;
    }
    mount(
        "devpts",
        dev.join("pts"),
        "devpts",
        MountFlags::NOSUID,
        Some(c"newinstance,ptmxmode=666"),
    )
    .context("mount devpts")?;
    symlink("pts/ptmx", dev.join("ptmx")).context("link /dev/ptmx")
}

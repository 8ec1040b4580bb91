//! The static command where nothing else is, not even `/proc`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::stage::{Build, VERSION, fresh};
use super::tarball;
use super::within::{self, Kernel};

/// Unpacks the tarball, and runs its command as the only file of a machine.
pub(super) fn check(build: &Build, tarball: &Path) -> Result<()> {
    let directory = build.out.join("empty");
    let (unpacked, root) = (directory.join("unpacked"), directory.join("root"));
    fresh(&directory)?;
    tarball::unpack(tarball, &unpacked)?;
    fresh(&root)?;
    fs::copy(unpacked.join("bin/earmark"), root.join("earmark")).context("copy the command")?;
    let version = format!("earmark {VERSION} (");
    within::prints(
        &root,
        Kernel::Missing,
        "/earmark",
        &[
            (&["--version"], &version),
            (&["show"], "/sys/class/net"),
            (&["show", "lo"], "lo: what delays"),
            (&["mx", "info", "--port", "udp:127.0.0.1:0"], "mount /proc"),
            (&["lab", "run", "--on", "a", "/earmark --version"], "sudo mkdir /run"),
        ],
    )?;
    fs::remove_dir_all(&directory).with_context(|| format!("remove {}", directory.display()))
}

//! The static command where nothing else is, not even `/proc`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

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
    bare(&root)?;
    fs::remove_dir_all(&directory).with_context(|| format!("remove {}", directory.display()))
}

/// Not even /proc.
fn bare(root: &Path) -> Result<()> {
    let run =
        |words: &[&str]| within::said(root, Kernel::Missing, &[&["/earmark"], words].concat());
    let version = run(&["--version"])?;
    ensure!(version.starts_with(&format!("earmark {VERSION} (")), "--version says {version}");
    for (words, says) in [
        (&["show"][..], "/sys/class/net"),
        (&["show", "lo"], "lo: what delays"),
        (&["mx", "info", "--port", "udp:127.0.0.1:0"], "mount /proc"),
        (&["lab", "run", "--on", "a", "/earmark --version"], "sudo mkdir /run"),
    ] {
        let said = run(words)?;
        let words = words.join(" ");
        ensure!(said.contains(says), "{words}, in an empty root, says nothing of {says}:\n{said}");
    }
    Ok(())
}

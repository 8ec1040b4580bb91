//! The static command where nothing else is, as in a container made of it alone.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::stage::{Build, VERSION, fresh};
use super::within::{self, Kernel};
use crate::shell;

/// Unpacks the tarball, and runs its command as the only file of a machine.
pub(super) fn check(build: &Build, tarball: &Path) -> Result<()> {
    let directory = build.out.join("empty");
    let (unpacked, root) = (directory.join("unpacked"), directory.join("root"));
    fresh(&directory)?;
    for made in [&unpacked, &root] {
        fresh(made)?;
    }
    let mut tar = shell::command("tar");
    tar.args(["--extract", "--strip-components=1", "--file"]).arg(tarball);
    shell::run(tar.arg("--directory").arg(&unpacked))?;
    fs::copy(unpacked.join("bin/earmark"), root.join("earmark")).context("copy the command")?;
    bare(&root)?;
    with_kernel(&root)?;
    fs::remove_dir_all(&directory).with_context(|| format!("remove {}", directory.display()))
}

/// Not even /proc.
fn bare(root: &Path) -> Result<()> {
    let run = |words: &[&str]| output(root, Kernel::Missing, words);
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

/// What container runtimes bring along: the kernel's files, and names of hosts.
fn with_kernel(root: &Path) -> Result<()> {
    for made in ["proc", "sys", "dev", "run", "tmp", "etc"] {
        fs::create_dir_all(root.join(made))?;
    }
    fs::write(root.join("etc/hosts"), "127.0.0.1 localhost\n")?;
    let run = |words: &[&str]| output(root, Kernel::Mounted, words);
    let demo = ["demo", "--duration", "0.3", "--rounds", "1", "--report", "/tmp/report.html"];
    run(&demo)?;
    ensure!(root.join("tmp/report.html").exists(), "the demo wrote no report");
    let said = run(&["mx", "info", "--port", "udp:127.0.0.1:0"])?;
    ensure!(said.contains("can be opened: yes"), "{said}");
    let said = run(&["lab", "run", "--on", "a", "/earmark --version"])?;
    ensure!(said.contains("start /bin/sh in host a"), "{said}");
    Ok(())
}

/// All that the command says, whatever its exit status.
fn output(root: &Path, kernel: Kernel, words: &[&str]) -> Result<String> {
    let words = [&["/earmark"], words].concat();
    let mut command = within::command(root, kernel, &words);
    let line = shell::line(&command);
    let output = command.output().with_context(|| format!("start `{line}`"))?;
    let said = [output.stdout, output.stderr].concat();
    Ok(String::from_utf8_lossy(&said).into_owned())
}

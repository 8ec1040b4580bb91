//! Packages on a machine that has nothing but the base system, in a directory of their own.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::stage::{Build, VERSION, fresh, write};
use super::within::{self, Kernel};
use super::{booted, deb};
use crate::install::copy;
use crate::{repo, shell};

/// Services that must be there, and off.
const UNITS: [&str; 4] = [
    "earmark-echo.service",
    "earmark-serve.service",
    "earmark-exporter.service",
    "earmark-exporter.socket",
];

/// Installs the packages, uses them, and removes them; how long each step takes.
pub(super) fn check(build: &Build, packages: &[PathBuf]) -> Result<[(&'static str, Duration); 5]> {
    let root = build.out.join("bare-root");
    fresh(&root)?;
    let mut tar = shell::command("tar");
    tar.arg("--extract").arg("--file").arg(base_system()?);
    shell::run(tar.args(["--numeric-owner", "--directory"]).arg(&root))?;
    for package in packages {
        let name = package.file_name().unwrap_or_default();
        copy(package, &root.join("packages").join(name))?;
    }
    // An installer makes this, and debootstrap does not.
    write(&root.join("etc/hosts"), "127.0.0.1 localhost\n")?;
    let before = files(&root)?;
    let install = timed(&root, "dpkg --install /packages/*.deb")?;
    check_installed(&root)?;
    let first_answer = timed(&root, "earmark show lo")?;
    // Without hosts the demo would be the model alone, whose table has no such column.
    let demo = "earmark demo --duration 0.3 --rounds 1 --report /tmp/report.html >/tmp/demo && \
                grep -q pkts/int /tmp/demo && rm /tmp/report.html /tmp/demo";
    let demo = timed(&root, demo)?;
    check_library(build, &root)?;
    let names = deb::PACKAGES.map(|(package, _)| package).join(" ");
    let purge = timed(&root, &format!("dpkg --purge {names}"))?;
    let left: Vec<_> = files(&root)?.difference(&before).cloned().collect();
    ensure!(left.is_empty(), "purge leaves:\n{}", left.join("\n"));
    let services = booted::check(&root)?;
    fs::remove_dir_all(&root).with_context(|| format!("remove {}", root.display()))?;
    Ok([
        ("install on a bare machine", install),
        ("first answer: show", first_answer),
        ("demo", demo),
        ("purge", purge),
        ("services under systemd", services),
    ])
}

/// What the packages say must be true of the files that they bring.
fn check_installed(root: &Path) -> Result<()> {
    let version = shell::output(&mut script(root, "earmark --version"))?;
    ensure!(version.starts_with(&format!("earmark {VERSION} (")), "--version prints {version}");
    let units = files(root)?;
    for unit in UNITS {
        let named: Vec<_> = units.iter().filter(|path| path.ends_with(unit)).collect();
        ensure!(!named.is_empty(), "no {unit} in the packages");
        let on = named.iter().find(|path| path.starts_with("/etc/"));
        ensure!(on.is_none(), "{unit} is on after the installation: {on:?}");
    }
    // Options that this systemd does not know are errors, too.
    let verify = format!("systemd-analyze verify --man=no {} 2>&1", UNITS.join(" "));
    let warnings = shell::output(&mut script(root, &verify))?;
    ensure!(!warnings.contains("earmark"), "systemd does not accept the units:\n{warnings}");
    for page in ["/usr/share/man/man1/earmark-show.1.gz", "/usr/share/man/man3/earmark_mx.3.gz"] {
        ensure!(units.contains(page), "no {page} in the packages");
    }
    Ok(())
}

/// Compiles a program in C with the files of the packages, and runs it there.
fn check_library(build: &Build, root: &Path) -> Result<()> {
    let flags = shell::output(
        shell::command("pkg-config")
            .args(["--cflags", "--libs", "earmark"])
            .env("PKG_CONFIG_SYSROOT_DIR", root)
            .env("PKG_CONFIG_LIBDIR", root.join("usr/lib/x86_64-linux-gnu/pkgconfig")),
    )?;
    let program = build.source.join("crates/mx/capi/examples/pingpong.c");
    let mut cc = shell::command("cc");
    cc.arg(&program).arg("-o").arg(root.join("pingpong")).args(flags.split_whitespace());
    shell::run(&mut cc)?;
    shell::run(&mut script(root, "/pingpong udp:127.0.0.1"))?;
    fs::remove_file(root.join("pingpong")).context("remove the program")
}

fn timed(root: &Path, text: &str) -> Result<Duration> {
    let started = Instant::now();
    shell::run(&mut script(root, text))?;
    Ok(started.elapsed())
}

/// A script that runs as if `root` were the machine.
fn script(root: &Path, script: &str) -> Command {
    let mut command = within::command(root, Kernel::Mounted, &["sh", "-ec", script]);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// The base system of this distribution, which debootstrap downloads once.
fn base_system() -> Result<PathBuf> {
    let directory = repo::target_directory()?.join("dist/base");
    let release = fs::read_to_string("/etc/os-release").context("read /etc/os-release")?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let suite = suite.context("/etc/os-release names no VERSION_CODENAME; use Debian or Ubuntu")?;
    let archive = directory.join(format!("{suite}.tar"));
    if archive.exists() {
        return Ok(archive);
    }
    let root = directory.join("root");
    fresh(&root)?;
    let mut debootstrap = shell::command("debootstrap");
    debootstrap.args(["--variant=minbase", "--include=systemd", suite]).arg(&root);
    shell::run(&mut debootstrap)?;
    let partial = archive.with_extension("partial");
    let mut tar = shell::command("tar");
    tar.args(["--create", "--numeric-owner", "--file"]).arg(&partial).arg("--directory");
    // Archives and lists of packages are no part of a machine.
    tar.arg(&root).args(["--exclude=./var/cache/apt/archives/*.deb", "."]);
    shell::run(&mut tar)?;
    fs::rename(&partial, &archive).with_context(|| format!("name {}", archive.display()))?;
    fs::remove_dir_all(&root).with_context(|| format!("remove {}", root.display()))?;
    Ok(archive)
}

/// Where dpkg and systemd keep their own records, and change them whatever comes and goes.
const RECORDS: [&str; 5] =
    ["/run/systemd/", "/var/cache/ldconfig/", "/var/lib/dpkg/", "/var/lib/systemd/", "/var/log/"];

/// All files, by their paths from the root; without what dpkg writes for itself.
pub(super) fn files(root: &Path) -> Result<BTreeSet<String>> {
    let list =
        shell::output(shell::command("find").arg(root).args(["-xdev", "-printf", "/%P\\n"]))?;
    let is_ours = |path: &&str| !RECORDS.iter().any(|record| path.starts_with(record));
    Ok(list.lines().filter(is_ours).map(str::to_owned).collect())
}

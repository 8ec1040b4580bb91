//! Packages for one command alone: the system stays as it is.
//!
//! apt-get downloads them, with all that they depend on and that is not installed, into the target
//! directory. They are unpacked there, not installed: no script of theirs runs, no service starts.
//! Then this process starts anew in a mount namespace of its own, in which the unpacked files lie
//! over `/usr` and `/etc` (overlayfs, Linux `Documentation/filesystems/overlayfs.rst`). So programs
//! find their libraries and data where they were built to look for them.

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::list::HostProgram;
use crate::{repo, shell};

/// Names the directory, for the process that sees the unpacked files.
const ENTERED: &str = "EARMARK_PEERS_UNPACKED";

/// Where files of packages go that belong into `/usr` and name it by its links at the root.
const LINKS: [&str; 4] = ["bin", "sbin", "lib", "lib64"];

/// Links that packages leave to the alternatives system, whose scripts do not run: their directory,
/// their name, and where they point.
const ALTERNATIVES: [(&str, &str, &str); 8] = [
    ("usr/bin", "mpirun", "orterun"),
    ("usr/bin", "mpicc", "opal_wrapper"),
    ("usr/bin", "c++", "g++"),
    ("usr/bin", "cc", "gcc"),
    ("usr/sbin", "slurmctld", "slurmctld-wlm"),
    ("usr/sbin", "slurmd", "slurmd-wlm"),
    ("usr/sbin", "slurmstepd", "slurmstepd-wlm"),
    // libfabric is linked with it; only x86 has it.
    ("usr/lib", "libpsm_infinipath.so.1", "libpsm1/libpsm_infinipath.so.1.16"),
];

/// Starts this process anew where the packages of `missing` are found; they are kept in `directory`
/// of the target directory.
pub(super) fn enter(missing: &[HostProgram], directory: &str) -> Result<()> {
    let names: Vec<_> = missing.iter().map(|it| it.name.as_str()).collect();
    ensure!(
        std::env::var_os(ENTERED).is_none_or(|entered| entered != directory),
        "no {} among the files of their packages",
        names.join(", ")
    );
    let kept = repo::target_directory()?.join(directory);
    unpack(&kept, missing)?;
    println!("uses {} from {}", names.join(", "), kept.display());
    let overlay = "cd \"$0\" && for over in usr etc; do \
                   mount -t overlay earmark-peers -o lowerdir=$over:/$over /$over || exit; done; \
                   cd \"$OLDPWD\" && exec \"$@\"";
    let mut again = Command::new("unshare");
    again.args(["--mount", "sh", "-c", overlay]).arg(kept.join("root"));
    again.arg(std::env::current_exe()?).args(std::env::args_os().skip(1)).env(ENTERED, directory);
    Err(again.exec()).context("start unshare, of util-linux")
}

/// Downloads and unpacks the packages, unless that was done before.
fn unpack(directory: &Path, missing: &[HostProgram]) -> Result<()> {
    let mut packages: Vec<_> = missing.iter().map(|it| it.packages[0].as_str()).collect();
    packages.sort_unstable();
    packages.dedup();
    let (done, wanted) = (directory.join("packages"), packages.join(" "));
    if fs::read_to_string(&done).is_ok_and(|packages| packages == wanted) {
        return Ok(());
    }
    let root = directory.join("root");
    for old in [&root, &directory.join("archives")] {
        if old.exists() {
            fs::remove_dir_all(old).with_context(|| format!("remove {}", old.display()))?;
        }
    }
    download(directory, &packages)?;
    for part in ["usr", "etc"] {
        fs::create_dir_all(root.join(part))?;
    }
    for link in LINKS {
        symlink(Path::new("usr").join(link), root.join(link))?;
        fs::create_dir_all(root.join("usr").join(link))?;
    }
    let mut extract = Command::new("sh");
    extract.arg("-ec").arg(
        "for package in \"$0\"/*.deb; do dpkg-deb --fsys-tarfile \"$package\" | \
         tar -x --keep-directory-symlink -C \"$1\"; done",
    );
    shell::run(extract.arg(directory.join("archives")).arg(&root))?;
    for (place, link, target) in ALTERNATIVES {
        let place = root.join(place);
        if place.join(target).exists() && !place.join(link).exists() {
            symlink(target, place.join(link))?;
        }
    }
    fs::write(&done, wanted).with_context(|| format!("write {}", done.display()))
}

/// Downloads packages and what they depend on, by lists of packages of our own: the system's are
/// old, or not there at all.
fn download(directory: &Path, packages: &[&str]) -> Result<()> {
    let [lists, archives] = ["lists", "archives"].map(|name| directory.join(name));
    for directory in [&lists, &archives] {
        fs::create_dir_all(directory.join("partial"))
            .with_context(|| format!("make {}", directory.display()))?;
    }
    let (Some(lists), Some(archives)) = (lists.to_str(), archives.to_str()) else {
        bail!("{} is no UTF-8; set CARGO_TARGET_DIR to another directory", directory.display());
    };
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("DEBIAN_FRONTEND", "noninteractive").args(["-q", "-y"]);
        for option in [
            &format!("Dir::State::lists={lists}"),
            &format!("Dir::Cache::archives={archives}"),
            "Dir::Cache::pkgcache=",
            "Dir::Cache::srcpkgcache=",
            // Nothing of the system is changed.
            "Debug::NoLocking=1",
            "APT::Sandbox::User=root",
        ] {
            command.args(["-o", option]);
        }
        command.args(arguments);
        command
    };
    shell::run(&mut apt_get(&["update"]))?;
    let mut download = apt_get(&["install", "--download-only", "--no-install-recommends"]);
    shell::run(download.args(packages))
}

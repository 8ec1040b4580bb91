//! The static command with its manual and completions, for any Linux of this architecture.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::licences;
use super::stage::{Build, COMMAND, Flavour, VERSION, fresh};
use crate::install::copy;
use crate::shell;

/// Makes the tarball, of a tree that can be unpacked below any prefix.
pub(super) fn make(build: &Build) -> Result<PathBuf> {
    let name = format!("earmark-{VERSION}-x86_64-linux-musl");
    let directory = build.out.join("tarball");
    let tree = directory.join(&name);
    fresh(&directory)?;
    build.place_command(Flavour::Musl, &tree, "share/zsh/site-functions/_earmark")?;
    shell::run(shell::command("strip").arg(tree.join("bin/earmark")))?;
    let documents = tree.join("share/doc/earmark");
    for file in ["LICENSE-APACHE", "LICENSE-MIT"] {
        copy(&build.source.join(file), &documents.join(file))?;
    }
    copy(&build.source.join("packaging/Containerfile"), &documents.join("Containerfile"))?;
    licences::write_texts(build, COMMAND, Flavour::Musl, &documents)?;
    let archive = build.out.join(format!("{name}.tar.gz"));
    let mut tar = shell::command("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    // Modes and names alone: no access times, no process number of tar.
    tar.args(["--mode=u+rwX,go+rX,go-w", "--format=gnu"]).arg(format!("--mtime=@{}", build.epoch));
    tar.arg("--use-compress-program=gzip --no-name -9").arg("--file").arg(&archive);
    shell::run(tar.arg("--directory").arg(&directory).arg(&name))?;
    Ok(archive)
}

/// Unpacks what is in the directory of the tarball into another one.
pub(super) fn unpack(tarball: &Path, into: &Path) -> Result<()> {
    fresh(into)?;
    let mut tar = shell::command("tar");
    tar.args(["--extract", "--strip-components=1", "--file"]).arg(tarball);
    shell::run(tar.arg("--directory").arg(into))
}

//! The objects of programs for the kernel, which are kept with their sources: who builds Earmark
//! needs no clang.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{repo, shell};

/// The objects, their sources and the script that makes them, below the root.
const DIRECTORY: &str = "crates/linux/flows/bpf";
const OBJECTS: [&str; 2] = ["flows.bpf.o", "polls.bpf.o"];

/// What `cargo xtask bpf` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Writes nothing, and fails if an object is stale
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if options.check {
        return check();
    }
    for object in OBJECTS {
        make(object, &kept(object))?;
        println!("wrote {DIRECTORY}/{object}");
    }
    Ok(())
}

/// Fails if an object is not, byte for byte, what its source makes.
pub(crate) fn check() -> Result<()> {
    for object in OBJECTS {
        let fresh = repo::root().join("target").join(object);
        make(object, &fresh)?;
        let read = |path: &Path| fs::read(path).with_context(|| format!("read {}", path.display()));
        if read(&kept(object))? != read(&fresh)? {
            bail!("{DIRECTORY}/{object} is stale; make it anew: cargo xtask bpf");
        }
        println!("{DIRECTORY}/{object} is what its source makes");
    }
    Ok(())
}

fn kept(object: &str) -> PathBuf {
    repo::root().join(DIRECTORY).join(object)
}

fn make(object: &str, to: &Path) -> Result<()> {
    let mut script = shell::command(repo::root().join(DIRECTORY).join("build.sh"));
    shell::run(script.arg(Path::new(object).with_extension("c")).arg(to))
        .context("make it with clang 14 (Debian's clang-14, llvm-14, libbpf-dev)")
}

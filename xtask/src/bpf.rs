//! The object of the programs that follow requests in the kernel, which is kept with its source:
//! who builds Earmark needs no clang.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{repo, shell};

/// The object, below the root; its source and the script that makes it are beside it.
const OBJECT: &str = "crates/linux/flows/bpf/flows.bpf.o";
const SCRIPT: &str = "crates/linux/flows/bpf/build.sh";

/// What `cargo xtask bpf` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Writes nothing, and fails if the object is stale
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if options.check {
        return check();
    }
    make(&repo::root().join(OBJECT))?;
    println!("wrote {OBJECT}");
    Ok(())
}

/// Fails if the object is not, byte for byte, what its source makes.
pub(crate) fn check() -> Result<()> {
    let fresh = repo::root().join("target/flows.bpf.o");
    make(&fresh)?;
    let read = |path: &Path| fs::read(path).with_context(|| format!("read {}", path.display()));
    if read(&repo::root().join(OBJECT))? != read(&fresh)? {
        bail!("{OBJECT} is stale; make it anew: cargo xtask bpf");
    }
    println!("{OBJECT} is what its source makes");
    Ok(())
}

fn make(to: &Path) -> Result<()> {
    let mut script = shell::command(repo::root().join(SCRIPT));
    shell::run(script.arg(to))
        .context("make it with clang 14 (Debian's clang-14, llvm-14, libbpf-dev)")
}

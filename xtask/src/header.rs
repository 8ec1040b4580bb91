//! The header of the C API, which is written from the crate's Rust and kept with the sources.

use std::fs;

use anyhow::{Context, Result, bail};
use cbindgen::{Builder, Config};

use crate::repo;

/// Where the header is, below the root.
pub(crate) const PATH: &str = "crates/mx/capi/include/earmark_mx.h";

/// What `cargo xtask header` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Writes nothing, and fails if the header is stale
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    if options.check {
        return check();
    }
    let path = repo::root().join(PATH);
    fs::write(&path, text()?).with_context(|| format!("writing {}", path.display()))?;
    println!("wrote {PATH}");
    Ok(())
}

/// Fails if the header is not what the crate says.
pub(crate) fn check() -> Result<()> {
    if fs::read_to_string(repo::root().join(PATH)).unwrap_or_default() != text()? {
        bail!("{PATH} is stale; write it anew: cargo xtask header");
    }
    println!("{PATH} is up to date");
    Ok(())
}

fn text() -> Result<String> {
    let crate_directory = repo::root().join("crates/mx/capi");
    let config = Config::from_file(crate_directory.join("cbindgen.toml"))
        .map_err(|error| anyhow::anyhow!("reading crates/mx/capi/cbindgen.toml: {error}"))?;
    let bindings = Builder::new().with_crate(crate_directory).with_config(config).generate();
    let mut text = Vec::new();
    bindings.context("reading the crate earmark-capi")?.write(&mut text);
    let text = String::from_utf8(text).context("reading the header that was written")?;
    // What is a heading in Rust's documentation is none in C.
    Ok(text.replace(" * # Safety\n", " * Up to the caller:\n"))
}

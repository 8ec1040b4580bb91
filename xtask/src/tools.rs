//! Tools of cargo, each of one version, compiled where it is missing; and targets of Rust.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{peers, shell};

/// A crate with a program of its name, and its version.
#[derive(Clone, Copy)]
pub(crate) struct Tool(&'static str, &'static str);

/// Licences, sources and versions of dependencies.
pub(crate) const DENY: Tool = Tool("cargo-deny", "0.20.2");
/// Bills of materials.
pub(crate) const CYCLONEDX: Tool = Tool("cargo-cyclonedx", "0.5.9");

impl Tool {
    /// A command that runs the tool: the one on `$PATH`, if it has the version, or else one of our
    /// own in the user's cache.
    pub(crate) fn command(self) -> Result<Command> {
        let Self(name, version) = self;
        let subcommand = name.trim_start_matches("cargo-");
        let found = shell::output(Command::new(name).args([subcommand, "--version"]));
        if found.is_ok_and(|words| words.split_whitespace().last() == Some(version)) {
            return Ok(shell::command(name));
        }
        let root = cache()?.join(format!("{name}-{version}"));
        let program = root.join("bin").join(name);
        if !program.exists() {
            println!("compiles {name} {version} into {}, once", root.display());
            // It runs for seconds: optimising it would take longer than it saves.
            let mut install = shell::cargo(["install", "--quiet", "--locked", "--debug", name]);
            shell::run(install.args(["--version", version, "--root"]).arg(&root))?;
        }
        Ok(shell::command(program))
    }
}

/// Where what is made once is kept for all clones, as the kernel of guests is.
fn cache() -> Result<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let cache = of("XDG_CACHE_HOME").or_else(|| Some(of("HOME")?.join(".cache")));
    Ok(cache.context("neither XDG_CACHE_HOME nor HOME is set")?.join("earmark/tools"))
}

/// Checks licences, sources and versions of all dependencies by `deny.toml`.
pub(crate) fn check_dependencies() -> Result<()> {
    let mut deny = DENY.command()?;
    deny.args(["--locked", "--all-features", "check", "--hide-inclusion-graph"]);
    shell::run(deny.args(["--allow", "duplicate", "licenses", "bans", "sources"]))
}

/// Whether there is a standard library for the target; asks rustup for it if there is none.
pub(crate) fn ensure_target(target: &str) -> bool {
    if !is_installed(target) && peers::find_rustup() {
        println!("rustup target add {target}");
        // A failure shows in what is looked at below.
        let _ = shell::succeeds(Command::new("rustup").args(["target", "add", target]));
    }
    is_installed(target)
}

fn is_installed(target: &str) -> bool {
    let mut rustc = shell::command("rustc");
    let directory = shell::output(rustc.args(["--print", "target-libdir", "--target", target]));
    directory.is_ok_and(|directory| Path::new(directory.trim()).is_dir())
}

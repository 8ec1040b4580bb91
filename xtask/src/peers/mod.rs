//! The programs that the tests talk to or measure with.
//!
//! What is missing is installed only in CI, or where `--install` says so: packages bring services
//! that start, and replace others. Those that would set up the network of the machine never are.
//! Elsewhere root gets the packages unpacked into the target
//! directory, in sight of this command and what it starts alone ([`unpacked`]). Everyone else gets
//! the command to type.

mod list;
mod unpacked;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::shell;
use list::{KERNEL_TOOLS, NEVER_INSTALLED, PACKAGING_TOOLS, PEERS, Peer};

/// What `cargo xtask peers` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Install the packages that are missing into the system, as CI does
    #[arg(long)]
    install: bool,
    /// A command to run where all of them are found, such as `cargo test --workspace`
    #[arg(last = true)]
    command: Vec<String>,
}

/// Finds every program, or gets it, and runs the command that was given.
pub(crate) fn run(options: &Options) -> Result<()> {
    get(all, "peers", options.install || in_ci())?;
    match options.command.split_first() {
        Some((program, arguments)) => shell::run(shell::command(program).args(arguments)),
        None => Ok(()),
    }
}

/// Finds every program and tool, or gets it, or says how to.
///
/// Where packages are unpacked this process is replaced by another one that sees them, which begins
/// anew.
pub(crate) fn ensure() -> Result<()> {
    get(all, "peers", in_ci())
}

/// The same for what makes and tries packages alone.
pub(crate) fn ensure_packaging() -> Result<()> {
    get(packaging, "peers-packaging", in_ci())
}

fn get(wanted: fn() -> Vec<&'static Peer>, directory: &str, install: bool) -> Result<()> {
    toolchain_component("fmt", "rustfmt")?;
    toolchain_component("clippy", "clippy")?;
    let missing = missing(&wanted());
    if missing.is_empty() {
        println!("all {} programs found", wanted().len());
        return Ok(());
    }
    if !is_root() || find("apt-get").is_none() {
        bail!("{}", advice(&missing, installer()));
    }
    if !install {
        return unpacked::enter(&missing, directory).with_context(|| advice(&missing, installer()));
    }
    let is_never = |peer: &&&Peer| NEVER_INSTALLED.iter().any(|it| it.program == peer.program);
    let to_install: Vec<&Peer> = missing.iter().filter(|peer| !is_never(peer)).copied().collect();
    if !to_install.is_empty() {
        apt_install(&to_install)?;
    }
    let missing = self::missing(&wanted());
    let still: Vec<_> =
        missing.iter().filter(|peer| !is_never(peer)).map(|peer| peer.program).collect();
    if !still.is_empty() {
        bail!("apt-get succeeded, but no {} can be found; look at $PATH", still.join(", "));
    }
    if missing.is_empty() { Ok(()) } else { unpacked::enter(&missing, directory) }
}

/// Whether this machine is there for tests alone, as CI services say with `CI=true`.
fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false")
}

/// Where the program is: on `$PATH`, or where distributions put those that only root needs.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    directories.map(|directory| directory.join(program)).find(|path| path.is_file())
}

fn missing(wanted: &[&'static Peer]) -> Vec<&'static Peer> {
    wanted.iter().copied().filter(|peer| find(peer.program).is_none()).collect()
}

fn all() -> Vec<&'static Peer> {
    PEERS.iter().chain(&NEVER_INSTALLED).chain(&KERNEL_TOOLS).collect()
}

fn packaging() -> Vec<&'static Peer> {
    PACKAGING_TOOLS.iter().collect()
}

/// Whether packages can be installed without a question.
pub(crate) fn may_install() -> bool {
    in_ci() && is_root() && find("apt-get").is_some()
}

/// Whether this process may change namespaces and mounts.
pub(crate) fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    // Our own entry in /proc belongs to our effective user.
    std::fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

fn apt_install(missing: &[&Peer]) -> Result<()> {
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    // One source that fails need not be the one that has these packages: the installation tells.
    if let Err(error) = shell::run(&mut apt_get(&["update", "-q"])) {
        println!("{error:#}");
    }
    let mut install = apt_get(&["install", "-q", "-y", "--no-install-recommends"]);
    shell::run(install.args(missing.iter().map(|peer| peer.apt)))
}

/// The package manager of this machine.
fn installer() -> &'static str {
    let known = ["apt-get", "dnf", "pacman"];
    known.into_iter().find(|program| find(program).is_some()).unwrap_or("apt-get")
}

fn advice(missing: &[&Peer], installer: &str) -> String {
    let names: Vec<_> = missing.iter().map(|peer| peer.program).collect();
    let (command, package): (_, fn(&Peer) -> &'static str) = match installer {
        "dnf" => ("sudo dnf install", |peer| peer.dnf),
        "pacman" => ("sudo pacman -S", |peer| peer.pacman),
        _ => ("sudo apt-get install --no-install-recommends", |peer| peer.apt),
    };
    let packages: Vec<_> = missing.iter().map(|peer| package(peer)).collect();
    format!(
        "the tests need {}; install with:\n  {command} {}",
        names.join(", "),
        packages.join(" ")
    )
}

fn toolchain_component(subcommand: &str, component: &str) -> Result<()> {
    let present = || shell::succeeds(&mut shell::cargo([subcommand, "--version"]));
    if present() {
        return Ok(());
    }
    if !find_rustup() {
        bail!(
            "`cargo {subcommand}` is missing; install your distribution's package of {component}"
        );
    }
    shell::run(Command::new("rustup").args(["component", "add", component]))?;
    if !present() {
        bail!("`cargo {subcommand}` still fails after `rustup component add {component}`");
    }
    Ok(())
}

/// Whether there is a rustup to ask for components and targets.
pub(crate) fn find_rustup() -> bool {
    find("rustup").as_deref().is_some_and(Path::exists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_a_command_for_each_package_manager() {
        let missing: Vec<_> =
            PEERS.iter().filter(|peer| ["chronyd", "tshark"].contains(&peer.program)).collect();
        let last =
            |installer| advice(&missing, installer).lines().last().unwrap().trim().to_owned();
        assert_eq!(last("apt-get"), "sudo apt-get install --no-install-recommends chrony tshark");
        assert_eq!(last("dnf"), "sudo dnf install chrony wireshark-cli");
        assert_eq!(last("pacman"), "sudo pacman -S chrony wireshark-cli");
    }

    #[test]
    fn program_that_does_not_exist_is_not_found() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-anywhere").is_none());
    }
}

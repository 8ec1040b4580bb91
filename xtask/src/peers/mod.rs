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
use list::HostProgram;

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

/// Groups of programs.
const TESTS: [&str; 3] = ["tests", "unpacked", "kernel"];
const CI: [&str; 7] = ["tests", "unpacked", "kernel", "packaging", "bpf", "page", "browser"];

/// Finds every program, or gets it, and runs the command that was given.
pub(crate) fn run(options: &Options) -> Result<()> {
    get(&TESTS, "peers", options.install || in_ci())?;
    match options.command.split_first() {
        Some((program, arguments)) => shell::run(shell::command(program).args(arguments)),
        None => Ok(()),
    }
}

/// Finds every program of the tests, or gets it, or says how to.
///
/// Where packages are unpacked this process is replaced by another one that sees them, which begins
/// anew.
pub(crate) fn ensure() -> Result<()> {
    get(&TESTS, "peers", in_ci())
}

/// The same for CI, which makes packages, too.
pub(crate) fn ensure_ci() -> Result<()> {
    get(&CI, "peers-ci", in_ci())
}

/// The same for what makes the page.
pub(crate) fn ensure_page(has_tests: bool) -> Result<()> {
    let groups: &[&str] = if has_tests { &["page", "browser"] } else { &["page"] };
    get(groups, "peers-page", in_ci())
}

/// The same for kernels of distributions.
pub(crate) fn ensure_kernels() -> Result<()> {
    get(&["kernels"], "peers-kernels", in_ci())
}

/// The same for what makes and tries packages, and an image.
pub(crate) fn ensure_packaging(has_image: bool) -> Result<()> {
    let groups: &[&str] =
        if has_image { &["packaging", "image", "page"] } else { &["packaging", "page"] };
    get(groups, "peers-packaging", in_ci())
}

fn get(groups: &[&str], directory: &str, install: bool) -> Result<()> {
    let wanted = list::programs(groups)?;
    let missing = missing(&wanted);
    if missing.is_empty() {
        println!("all {} programs found", wanted.len());
        return Ok(());
    }
    if !is_root() || find("apt-get").is_none() {
        bail!("{}", advice(&missing, installer()));
    }
    if !install {
        return unpacked::enter(&missing, directory).with_context(|| advice(&missing, installer()));
    }
    let to_install: Vec<_> = missing.iter().filter(|it| !it.is_only_unpacked).collect();
    if !to_install.is_empty() {
        apt_install(&to_install)?;
    }
    let missing = self::missing(&wanted);
    let still = missing.iter().filter(|it| !it.is_only_unpacked);
    let still: Vec<_> = still.map(|it| it.name.as_str()).collect();
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

fn missing(wanted: &[HostProgram]) -> Vec<HostProgram> {
    wanted.iter().filter(|it| find(&it.name).is_none()).cloned().collect()
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

fn apt_install(missing: &[&HostProgram]) -> Result<()> {
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    // One source that fails need not be the one that has these packages.
    if let Err(error) = shell::run(&mut apt_get(&["update", "-q"])) {
        println!("{error:#}");
    }
    let mut install = apt_get(&["install", "-q", "-y", "--no-install-recommends"]);
    shell::run(install.args(missing.iter().map(|it| &it.packages[0])))
}

/// The package manager of this machine.
fn installer() -> &'static str {
    let known = ["apt-get", "dnf", "pacman"];
    known.into_iter().find(|program| find(program).is_some()).unwrap_or("apt-get")
}

fn advice(missing: &[HostProgram], installer: &str) -> String {
    let (command, at) = match installer {
        "dnf" => ("sudo dnf install", 1),
        "pacman" => ("sudo pacman -S", 2),
        _ => ("sudo apt-get install --no-install-recommends", 0),
    };
    let names: Vec<_> = missing.iter().map(|it| it.name.as_str()).collect();
    let packages: Vec<_> = missing.iter().map(|it| it.packages[at].as_str()).collect();
    let (names, packages) = (names.join(", "), packages.join(" "));
    format!("the tests need {names}; install with:\n  {command} {packages}")
}

/// Whether there is a rustup to ask for components and targets.
pub(crate) fn find_rustup() -> bool {
    find("rustup").as_deref().is_some_and(Path::exists)
}

//! Runs a command where a directory is the root of everything, as container runtimes do.
//!
//! A chroot is not enough: a process that joins a mount namespace, as programs on hosts of the
//! lab do, is at the root of that namespace again. So the directory becomes that root
//! (`pivot_root(2)`).

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind_recursive, unmount};
use rustix::process::{chdir, pivot_root};

use crate::shell;

/// Where programs are.
pub(super) const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// What `cargo xtask within` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Without mounting /proc, /sys and /dev
    #[arg(long)]
    empty: bool,
    /// The directory that becomes the root
    root: PathBuf,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Whether there are the file systems of the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kernel {
    Mounted,
    Missing,
}

/// A command that begins with its program and will run in `root`.
pub(super) fn command(root: &Path, kernel: Kernel, words: &[&str]) -> Command {
    // Cargo may have put another program into the place of this one meanwhile.
    let own = format!("/proc/{}/exe", std::process::id());
    let mut command = shell::command("unshare");
    command.arg("--mount").arg(own).arg("within");
    if kernel == Kernel::Missing {
        command.arg("--empty");
    }
    command.arg(root).args(words);
    command.env_clear().env("PATH", PATH).env("LC_ALL", "C.UTF-8");
    command
}

/// Runs a program in `root` with each of these arguments, and fails unless it prints the text
/// beside them, whatever its exit status.
pub(super) fn prints(
    root: &Path,
    kernel: Kernel,
    program: &str,
    expected: &[(&[&str], &str)],
) -> Result<()> {
    for (arguments, text) in expected {
        let mut command = command(root, kernel, &[&[program], *arguments].concat());
        let line = shell::line(&command);
        let output = command.output().with_context(|| format!("start `{line}`"))?;
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        ensure!(printed.contains(text), "`{line}` prints no `{text}`:\n{printed}");
    }
    Ok(())
}

/// Makes the directory the root of this process's mount namespace, and becomes the command.
pub(crate) fn run(options: &Options) -> Result<()> {
    let root = &options.root;
    let enter = || -> Result<()> {
        mount_bind_recursive(root, root)?;
        if !options.empty {
            mount("proc", root.join("proc"), "proc", MountFlags::empty(), None)?;
            for place in ["sys", "dev"] {
                mount_bind_recursive(Path::new("/").join(place), root.join(place))?;
            }
        }
        chdir(root)?;
        // The old root comes to lie over the new one, and is taken away.
        pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        chdir("/")?;
        Ok(())
    };
    enter().with_context(|| format!("make {} the root", root.display()))?;
    let (program, arguments) = options.command.split_first().context("no command")?;
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("start {} in {}", program.display(), root.display()))
}

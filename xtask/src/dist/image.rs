//! The container image, built by its recipe without a daemon, and run as a container would be.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::stage::{Build, VERSION, fresh, write};
use super::tarball;
use super::within::{self, Kernel};
use crate::shell;

/// Signatures that are needed: none, as the image is made of nothing.
const POLICY: &str = r#"{"default": [{"type": "insecureAcceptAnything"}]}"#;

/// Builds the image from the tarball as docs/install.md says, and runs its command in its root;
/// how long the build took.
pub(super) fn check(build: &Build, tarball: &Path) -> Result<Duration> {
    let directory = build.out.join("image");
    fresh(&directory)?;
    let context = directory.join("context");
    tarball::unpack(tarball, &context)?;
    let policy = directory.join("policy.json");
    write(&policy, POLICY)?;
    let started = Instant::now();
    let recipe = context.join("share/doc/earmark/Containerfile");
    let mut bud = buildah(&directory, "bud");
    bud.arg("--isolation=chroot").arg("--signature-policy").arg(&policy);
    shell::run(bud.arg("--tag=earmark").arg("--file").arg(recipe).arg(&context))?;
    let built = started.elapsed();
    let root = root(&directory, &policy)?;
    let command = command(&directory)?;
    run(&root, &command)?;
    fs::remove_dir_all(&directory).with_context(|| format!("remove {}", directory.display()))?;
    Ok(built)
}

/// buildah with a store of its own, which needs no overlay mounts.
fn buildah(directory: &Path, action: &str) -> Command {
    let mut buildah = shell::command("buildah");
    buildah.args(["--storage-driver=vfs", "--root"]).arg(directory.join("store"));
    buildah.arg("--runroot").arg(directory.join("run")).arg(action);
    buildah
}

/// The files of a container of the image.
fn root(directory: &Path, policy: &Path) -> Result<PathBuf> {
    let mut from = buildah(directory, "from");
    from.arg("--signature-policy").arg(policy).arg("localhost/earmark");
    let container = shell::output(&mut from)?;
    let root = shell::output(buildah(directory, "mount").arg(container.trim()))?;
    Ok(PathBuf::from(root.trim()))
}

/// What a container of the image runs before the words of the user.
fn command(directory: &Path) -> Result<String> {
    let mut inspect = buildah(directory, "inspect");
    inspect.args(["--type=image", "--format={{index .OCIv1.Config.Entrypoint 0}}"]);
    let command = shell::output(inspect.arg("localhost/earmark"))?.trim().to_owned();
    ensure!(command.starts_with('/'), "the image starts `{command}`");
    Ok(command)
}

/// What docs/install.md runs in a container.
fn run(root: &Path, command: &str) -> Result<()> {
    // Runtimes bring these along.
    for made in ["proc", "sys", "dev", "etc"] {
        fs::create_dir_all(root.join(made))?;
    }
    write(&root.join("etc/hosts"), "127.0.0.1 localhost\n")?;
    let version = format!("earmark {VERSION} (");
    let report = ["demo", "--duration", "0.3", "--rounds", "1", "--report", "/tmp/report.html"];
    within::prints(
        root,
        Kernel::Mounted,
        command,
        &[
            (&["--version"], &version),
            (&report, "pkts/int"),
            (&["show", "lo"], "lo: what delays"),
            (&["mx", "info", "--port", "udp:127.0.0.1:0"], "can be opened: yes"),
            (&["lab", "run", "--on", "a", "earmark --version"], "start /bin/sh in host a"),
        ],
    )?;
    ensure!(root.join("tmp/report.html").exists(), "the demo wrote no report");
    Ok(())
}

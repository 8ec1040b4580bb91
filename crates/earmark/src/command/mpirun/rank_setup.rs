//! What a host needs for ranks of an MPI: a provider, a remote shell, and an environment.
//!
//! All of it is in the host's own `/run`, so that it ends with the host.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use lab::host::Host;
use lab::station::Station;

use super::launcher::{Launcher, REMOTE_SHELL};
use super::variables::{Net, in_lab};
use report::shell::quoted;

/// Where everything is.
const RUNTIME_DIR: &str = "/run/earmark";
/// Where the remote shell asks.
const SOCKET: &str = "/run/earmark/shell.socket";
/// The directory that libfabric searches.
const PROVIDERS: &str = "/run/earmark/libfabric";

/// The provider as libfabric wants it to be called, and as cargo calls it.
const LIBRARIES: [&str; 2] = ["libearmark-fi.so", "libearmark_fi.so"];

/// The program that gives a rank the environment of `net`, and then is the rank.
pub(super) fn rank(net: Net) -> String {
    format!("{RUNTIME_DIR}/rank-{}", net.name())
}

/// What launchers and their helpers find in their environment, on every host.
pub(super) fn prepare(command: &mut Command) {
    // Hosts are this user's alone, and some of them are made as root.
    for name in ["OMPI_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT"] {
        command.env(name, "1").env(format!("{name}_CONFIRM"), "1");
    }
    // What launchers write down for themselves is different on each host, and ends with it.
    command.env("TMPDIR", "/run");
}

/// Furnishes `host`; the socket at which its remote shell asks.
pub(super) fn furnish(
    host: &Host,
    station: &Station,
    launcher: &Launcher,
    library: Option<&Path>,
) -> Result<UnixListener> {
    let earmark = std::env::current_exe().context("find the earmark program itself")?;
    let earmark = quoted(&earmark.to_string_lossy());
    let shell = format!("exec {earmark} remote-shell {SOCKET} \"$@\"\n");
    let ranks = [Net::Earmark, Net::Tcp].map(|net| {
        let interface = station.interface();
        let variables = in_lab(launcher.kind, net, launcher.has_ofi, &interface, PROVIDERS);
        let exports =
            variables.iter().map(|(name, value)| format!("export {name}={}\n", quoted(value)));
        (rank(net), exports.collect::<String>() + "exec \"$@\"\n")
    });
    let furnish = || -> std::io::Result<UnixListener> {
        fs::create_dir_all(PROVIDERS)?;
        if let Some(library) = library {
            symlink(library, Path::new(PROVIDERS).join(LIBRARIES[0]))?;
        }
        for (path, text) in ranks.iter().chain([&(REMOTE_SHELL.to_owned(), shell)]) {
            fs::write(path, format!("#!/bin/sh\n{text}"))?;
            fs::set_permissions(path, Permissions::from_mode(0o755))?;
        }
        UnixListener::bind(SOCKET)
    };
    let furnished = host.enter(furnish)?;
    furnished.with_context(|| format!("furnish host {} for MPI in {RUNTIME_DIR}", host.name()))
}

/// Where a package has the provider, from where it has this program.
const INSTALLED: &str = "../lib/earmark";

/// Finds the provider: in `directory`, or else beside this program, or else where packages have it.
pub(super) fn library(directory: Option<&Path>) -> Result<PathBuf> {
    let own = std::env::current_exe().context("find the earmark program itself")?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let at = directory.unwrap_or(beside);
    let installed = directory.is_none().then(|| beside.join(INSTALLED).join(LIBRARIES[0]));
    let mut candidates = LIBRARIES.map(|name| at.join(name)).into_iter().chain(installed);
    let Some(found) = candidates.find(|path| path.is_file()) else {
        let release = if cfg!(debug_assertions) { "" } else { "--release " };
        bail!(
            "there is no provider {} in {}; install the package earmark-mpi, build it with: cargo \
             build {release}-p earmark-provider, or say where it is with --provider DIR",
            LIBRARIES[1],
            at.display()
        );
    };
    found.canonicalize().with_context(|| format!("find {}", found.display()))
}

/// A directory in which `library` has the name that libfabric wants, for programs that outlive
/// this one.
pub(super) fn directory(library: &Path) -> Result<PathBuf> {
    let beside = library.parent().unwrap_or(Path::new("/"));
    if library.ends_with(LIBRARIES[0]) {
        return Ok(beside.to_owned());
    }
    let directory = beside.join("libfabric");
    let link = directory.join(LIBRARIES[0]);
    let make = || -> std::io::Result<()> {
        fs::create_dir_all(&directory)?;
        if fs::read_link(&link).is_ok_and(|target| target == library) {
            return Ok(());
        }
        if link.symlink_metadata().is_ok() {
            fs::remove_file(&link)?;
        }
        symlink(library, &link)
    };
    make().with_context(|| {
        format!(
            "link {} to {}; copy it to a directory of yours under that name, and give that with \
             --provider DIR",
            link.display(),
            library.display()
        )
    })?;
    Ok(directory)
}

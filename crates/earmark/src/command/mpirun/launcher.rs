//! The launchers of MPIs: which one there is, and how each gets the list of our hosts.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// What the launcher takes for `ssh`.
pub(super) const REMOTE_SHELL: &str = "/run/earmark/shell";

/// Where to get one.
const REMEDY: &str =
    "install one, such as Debian's openmpi-bin, or name yours with --launcher PATH";

/// The MPIs that users name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Mpi {
    /// Open MPI 4 or 5
    Openmpi,
    /// MPICH with ch4:ofi
    Mpich,
    /// The first that is found
    #[default]
    Auto,
}

impl Mpi {
    /// What their launchers are called; those that only they have come first.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Openmpi => &["mpirun.openmpi", "mpirun", "mpiexec"],
            Self::Mpich => &["mpiexec.hydra", "mpiexec.mpich", "mpiexec", "mpirun"],
            Self::Auto => &["mpirun", "mpiexec", "mpiexec.hydra"],
        }
    }
}

/// The kinds of launchers, by the options that they take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LauncherKind {
    /// Open MPI 4, with its own runtime.
    OpenMpi4,
    /// Open MPI 5 and later, over PRRTE.
    OpenMpi5,
    /// Hydra, the launcher of MPICH.
    Hydra,
}

impl LauncherKind {
    fn is(self, wanted: Mpi) -> bool {
        match wanted {
            Mpi::Auto => true,
            Mpi::Openmpi => self != Self::Hydra,
            Mpi::Mpich => self == Self::Hydra,
        }
    }
}

/// A launcher that was found.
#[derive(Clone, Debug)]
pub(super) struct Launcher {
    pub(super) kind: LauncherKind,
    /// Whether its MPI can speak through libfabric.
    pub(super) has_ofi: bool,
    /// As it names itself.
    version: String,
    program: PathBuf,
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.version)
    }
}

impl Launcher {
    /// Finds the launcher of `wanted`, or asks the one at `path` what it is.
    pub(super) fn find(wanted: Mpi, path: Option<&Path>) -> Result<Self> {
        if let Some(path) = path {
            let whole = path.canonicalize().with_context(|| {
                format!("find the launcher {}; look for it with: which mpirun", path.display())
            })?;
            // A link may well be what tells a launcher which one it is to be.
            let program = if path.is_absolute() { path.to_owned() } else { whole };
            let launcher = Self::ask(&program)?.with_context(|| {
                format!(
                    "{} is no launcher that is known: mpirun of Open MPI 4 or 5, or mpiexec of MPICH",
                    path.display()
                )
            })?;
            if !launcher.kind.is(wanted) {
                bail!("--launcher {} is of {launcher}; drop --mpi", path.display());
            }
            return Ok(launcher);
        }
        let mut found = None;
        for name in wanted.programs().iter().copied().filter(|name| on_path(name).is_some()) {
            let launcher = Self::ask(Path::new(name))?.filter(|it| it.kind.is(wanted));
            match launcher {
                Some(launcher) if launcher.has_ofi => return Ok(launcher),
                launcher => found = found.or(launcher),
            }
        }
        found.with_context(|| match wanted {
            Mpi::Auto => format!("there is no MPI on $PATH; {REMEDY}"),
            Mpi::Openmpi => format!("there is no Open MPI on $PATH; {REMEDY}"),
            Mpi::Mpich => {
                "there is no MPICH on $PATH; get one with ch4:ofi, such as that of PyPI (pip \
                 install mpich), and name its mpiexec with --launcher PATH"
                    .into()
            }
        })
    }

    /// Asks a program which launcher it is.
    fn ask(program: &Path) -> Result<Option<Self>> {
        let mut command = Command::new(program);
        let output = command.arg("--version").env("LC_ALL", "C").stdin(Stdio::null()).output();
        let output = output.with_context(|| format!("run {} --version", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let Some((kind, version)) = recognise(&text) else { return Ok(None) };
        let has_ofi = match kind {
            LauncherKind::Hydra => has_ofi(&text),
            LauncherKind::OpenMpi4 | LauncherKind::OpenMpi5 => open_mpi_has_ofi(program),
        };
        Ok(Some(Self { kind, has_ofi, version, program: program.to_owned() }))
    }

    /// Requires that its MPI can speak through libfabric.
    pub(super) fn require_ofi(&self) -> Result<()> {
        if self.has_ofi {
            return Ok(());
        }
        let remedy = match self.kind {
            LauncherKind::Hydra => {
                "Debian's and Ubuntu's are not. Take one that is, such as that of PyPI (pip install \
                 mpich), and name its mpiexec with --launcher PATH"
            }
            LauncherKind::OpenMpi4 | LauncherKind::OpenMpi5 => {
                "take one that is, such as Debian's openmpi-bin, and name its mpirun with --launcher \
                 PATH"
            }
        };
        bail!(
            "{self} is not built with libfabric (ofi), which Earmark needs; {remedy}; or --net tcp"
        )
    }

    /// A command that starts so many ranks on each of the hosts that are named, with our remote
    /// shell; the program follows.
    pub(super) fn command(&self, hosts: &[(String, usize)], network: &str) -> Command {
        let all = hosts.iter().map(|(_, ranks)| ranks).sum::<usize>().to_string();
        let each = hosts.iter().map(|(name, ranks)| format!("{name}:{ranks}"));
        let places = each.collect::<Vec<_>>().join(",");
        let mut command = Command::new(&self.program);
        match self.kind {
            LauncherKind::OpenMpi4 => {
                command.args(["--host", &places, "-np", &all, "--bind-to", "none"]);
                command.args(["--mca", "plm_rsh_agent", REMOTE_SHELL]);
                command.args(["--mca", "oob_tcp_if_include", network]);
            }
            LauncherKind::OpenMpi5 => {
                command.args(["--host", &places, "-np", &all, "--bind-to", "none"]);
                command.args(["--prtemca", "plm_ssh_agent", REMOTE_SHELL]);
                // It does not find our interfaces by their network, and needs no help.
            }
            LauncherKind::Hydra => {
                command.args(["-launcher", "ssh", "-launcher-exec", REMOTE_SHELL]);
                command.args(["-hosts", &places, "-n", &all, "-bind-to", "none"]);
            }
        }
        command
    }
}

/// What a launcher is that says this of its version.
fn recognise(text: &str) -> Option<(LauncherKind, String)> {
    if let Some((_, rest)) = text.split_once("(Open MPI) ") {
        let number = rest.split_whitespace().next()?;
        let major: u32 = number.split('.').next()?.parse().ok()?;
        let kind = match major {
            4 => LauncherKind::OpenMpi4,
            5.. => LauncherKind::OpenMpi5,
            _ => return None,
        };
        return Some((kind, format!("Open MPI {number}")));
    }
    let (_, rest) = text.contains("HYDRA").then(|| text.split_once("Version:")).flatten()?;
    Some((LauncherKind::Hydra, format!("MPICH {}", rest.split_whitespace().next()?)))
}

/// Whether an MPICH whose hydra says this of itself has ofi. One that says nothing may have it.
fn has_ofi(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("--with-device=ch4:") else { return true };
    let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != ',').unwrap_or(rest.len());
    rest[..end].split(',').any(|netmod| netmod == "ofi")
}

/// Whether the Open MPI of a launcher has ofi. One that cannot be asked may have it.
fn open_mpi_has_ofi(launcher: &Path) -> bool {
    let mut info = Command::new(launcher.with_file_name("ompi_info"));
    let output = info.args(["--parsable", "--param", "mtl", "all"]).stdin(Stdio::null()).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else { return true };
    String::from_utf8_lossy(&output.stdout).contains("mtl:ofi:")
}

/// Where a program is on `$PATH`.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|it| is_program(it))
}

fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

/// Requires the program that is to run; launchers have little to say of one that is not there.
pub(super) fn require_program(word: &OsString) -> Result<()> {
    let path = Path::new(word);
    let is_named_by_place = path.components().count() > 1;
    let found = if is_named_by_place { is_program(path) } else { program_without_place(path) };
    if found {
        return Ok(());
    }
    let name = path.display();
    if !path.is_file() {
        bail!("there is no program {name}; compile it first, or give its path, such as ./{name}");
    }
    if !is_named_by_place {
        bail!("there is no program {name} on $PATH, but one here: ./{name}");
    }
    bail!("{name} cannot be executed; make it so: chmod +x {name}")
}

fn program_without_place(path: &Path) -> bool {
    path.to_str().is_some_and(|name| on_path(name).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_what_they_say() {
        for (text, kind, version) in [
            ("mpirun (Open MPI) 4.1.4\n\nReport bugs", LauncherKind::OpenMpi4, "Open MPI 4.1.4"),
            ("mpirun (Open MPI) 5.0.11\n", LauncherKind::OpenMpi5, "Open MPI 5.0.11"),
            ("HYDRA build details:\n    Version:      4.0.2\n", LauncherKind::Hydra, "MPICH 4.0.2"),
        ] {
            assert_eq!(recognise(text), Some((kind, version.to_owned())));
        }
        for text in ["", "mpirun (Open MPI) 1.10", "slurm 22.05.8", "Intel(R) MPI Library"] {
            assert_eq!(recognise(text), None, "{text}");
        }
    }

    #[test]
    fn hydra_tells_whether_there_is_ofi() {
        assert!(has_ofi("Configure options: --with-device=ch4:ucx,ofi --with-pm=hydra"));
        assert!(has_ofi("'--with-device=ch4:ofi' '--x'"));
        assert!(!has_ofi("'--with-device=ch4:ucx' '--with-libfabric=/ofi'"));
        assert!(has_ofi("nothing"));
    }
}

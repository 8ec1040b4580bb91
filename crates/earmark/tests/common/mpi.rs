//! Programs of MPI.

use std::path::Path;
use std::process::Command;

use super::output;

/// What is compiled into each of them; it says why.
const FINALIZE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../mx/provider/tests/programs/finalize.c");

/// Compiles a program with an MPI's compiler.
#[track_caller]
pub(crate) fn compile(mpicc: &str, source: &Path, program: &Path) {
    let mut mpicc = Command::new(mpicc);
    mpicc.args(["-O1", "-pthread", "-o"]).arg(program).arg(source).arg(FINALIZE);
    output(&mut mpicc).output();
}

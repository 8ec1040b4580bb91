//! `earmark kernel`: the kernel that guests run.

use anyhow::Result;

use bench::kernel;
use report::{outln, output};

/// Finds the kernel or builds it, and prints where it is.
///
/// # Errors
/// If it cannot be built.
pub fn run() -> Result<()> {
    let path = kernel::find_or_build(output::error_line)?;
    outln!("{}", path.display());
    Ok(())
}

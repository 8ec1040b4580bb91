//! `earmark kernel`: the kernel that guests run.

use anyhow::Result;

use lab::kernel::{self, Suite};
use report::{outln, output};

/// Finds the kernel, or that of `suite`, or builds it, and prints where it is.
///
/// # Errors
/// If it cannot be built.
pub fn run(suite: Option<&Suite>) -> Result<()> {
    let path = kernel::find_or_build(suite, output::error_line)?;
    outln!("{}", path.display());
    Ok(())
}

//! The kernel that guests run, which tests of guests need.

use std::process::Command;

use anyhow::Result;

use crate::{peers, repo, shell};

/// Runs `earmark kernel`, which knows whether there is anything to do.
pub(crate) fn ensure() -> Result<()> {
    // Images of distributions come without the lists of packages, and the sources are one.
    let search = ["search", "--names-only", "^linux-source-"];
    let found = shell::output(Command::new("apt-cache").args(search)).unwrap_or_default();
    if found.trim().is_empty() && peers::may_install() {
        shell::run(Command::new("apt-get").args(["update", "-q"]))?;
    }
    shell::run(&mut shell::build())?;
    // What it prints while it compiles is in the error, if there is one.
    let earmark = repo::target_directory()?.join("debug/earmark");
    print!("{}", shell::output(Command::new(earmark).arg("kernel"))?);
    Ok(())
}

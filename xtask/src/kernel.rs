//! The kernel that guests run, which tests of guests need.

use std::process::Command;

use anyhow::Result;

use crate::{peers, repo, shell};

/// Runs `earmark kernel`, which knows whether there is anything to do.
pub(crate) fn ensure() -> Result<()> {
    refresh_lists()?;
    shell::run(&mut shell::build())?;
    // What it prints while it compiles is in the error, if there is one.
    let earmark = repo::target_directory()?.join("debug/earmark");
    print!("{}", shell::output(Command::new(earmark).arg("kernel"))?);
    Ok(())
}

/// Images of distributions come without the lists of packages, and the sources are one.
fn refresh_lists() -> Result<()> {
    let mut search = Command::new("apt-cache");
    search.args(["search", "--names-only", "^linux-source-"]);
    let knows_sources = shell::output(&mut search).is_ok_and(|found| !found.trim().is_empty());
    if knows_sources || !peers::may_install() {
        return Ok(());
    }
    shell::run(Command::new("apt-get").args(["update", "-q"]))
}

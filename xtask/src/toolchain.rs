//! Targets that Rust compiles for.

use std::path::Path;
use std::process::Command;

use crate::{peers, shell};

/// Whether there is a standard library for the target; asks rustup for it if there is none.
pub(crate) fn ensure_target(target: &str) -> bool {
    if !is_installed(target) && peers::find_rustup() {
        println!("rustup target add {target}");
        // A failure shows in what is looked at below.
        let _ = shell::succeeds(Command::new("rustup").args(["target", "add", target]));
    }
    is_installed(target)
}

fn is_installed(target: &str) -> bool {
    let mut rustc = shell::command("rustc");
    let directory = shell::output(rustc.args(["--print", "target-libdir", "--target", target]));
    directory.is_ok_and(|directory| Path::new(directory.trim()).is_dir())
}

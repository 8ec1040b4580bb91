//! The `earmark` command.

use std::io::{Write, stderr};
use std::process::ExitCode;

fn main() -> ExitCode {
    let command = earmark::command_line::read().command;
    match earmark::say::while_read(|| earmark::run(command)) {
        Ok(code) => code,
        Err(error) => {
            // Nobody may be reading this, either.
            let _ = writeln!(stderr(), "earmark: {}", earmark::message(&error));
            ExitCode::FAILURE
        }
    }
}

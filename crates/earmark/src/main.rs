//! The `earmark` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    let command = earmark::command_line::read().command;
    match earmark::say::while_read(|| earmark::run(command)) {
        Ok(code) => code,
        Err(error) => {
            earmark::say::remark(format_args!("earmark: {}", earmark::message(&error)));
            ExitCode::FAILURE
        }
    }
}

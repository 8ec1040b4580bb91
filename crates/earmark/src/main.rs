//! The `earmark` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    let command = earmark::command_line::read().command;
    match report::say::while_read(|| earmark::run(command)) {
        Ok(code) => code,
        Err(error) => {
            report::say::remark(format_args!("earmark: {}", report::say::message(&error)));
            ExitCode::FAILURE
        }
    }
}

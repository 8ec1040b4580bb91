//! The `earmark` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    match report::output::while_read(|| earmark::run(earmark::command_line::read().command)) {
        Ok(code) => code,
        Err(error) => {
            report::output::error_line(format_args!(
                "earmark: {}",
                report::output::message(&error)
            ));
            ExitCode::FAILURE
        }
    }
}

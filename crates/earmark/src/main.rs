//! The `earmark` command.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match earmark::run(earmark::cli::Cli::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("earmark: {}", earmark::message(&error));
            ExitCode::FAILURE
        }
    }
}

//! The two ends of a program in a guest: process 1 of the guest, and the program's proxy outside.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use lab::guest::{exec, init};

use report::errln;

/// Is process 1 of a guest; it returns only to say what went wrong.
#[must_use]
pub(crate) fn init() -> ExitCode {
    let error = init::run();
    errln!("earmark guest-init: {error}");
    init::power_off();
    ExitCode::FAILURE
}

/// Runs a program in a guest; its exit status.
#[must_use]
pub(crate) fn exec(socket: &Path, words: Vec<OsString>) -> ExitCode {
    match exec::run(socket, words) {
        Ok(code) => ExitCode::from(code as u8),
        Err(error) => {
            errln!("earmark: {error}");
            ExitCode::from(error.code as u8)
        }
    }
}

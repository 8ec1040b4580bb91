//! Errors: their numbers in libfabric, and their texts.

use std::ffi::c_int;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use libc::{ECANCELED, ECONNREFUSED, ECONNRESET, EHOSTUNREACH, EINVAL, EIO, EPROTO, ETIMEDOUT};
use mx::status::{Refusal, RequestError};
use mx_io::endpoint::MxError;

use crate::abi::constants::{FI_ENOKEY, FI_ETRUNC};

pub(crate) const fn of_failed(error: RequestError) -> c_int {
    match error {
        RequestError::Truncated => FI_ETRUNC,
        RequestError::Cancelled | RequestError::Aborted => ECANCELED,
        RequestError::Unreachable | RequestError::NoEndpoint => EHOSTUNREACH,
        RequestError::Restarted | RequestError::Closed => ECONNRESET,
        RequestError::BadKey | RequestError::BadVersion | RequestError::Busy => ECONNREFUSED,
        RequestError::Timeout => ETIMEDOUT,
        RequestError::Protocol => EPROTO,
    }
}

/// The number of libfabric for a request that was not taken. What is not an everyday matter is
/// reported to people, too.
pub(crate) fn of_error(error: &MxError) -> c_int {
    match error {
        MxError::Refused(Refusal::NoPeer(error)) => of_failed(*error),
        MxError::Refused(Refusal::Closing) => ECANCELED,
        MxError::Refused(_) => EINVAL,
        _ => {
            static WARNED: AtomicBool = AtomicBool::new(false);
            warn_once(&WARNED, &error.to_string());
            EIO
        }
    }
}

pub(crate) fn warn_of_memory() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    warn_once(
        &WARNED,
        "a message has bytes at NULL, or more than there are addresses: a mistake of the program, \
         or of its MPI (Open MPI 4 does so with datatypes that are relative to MPI_BOTTOM)",
    );
}

fn warn_once(warned: &AtomicBool, text: &str) {
    if !warned.swap(true, Ordering::Relaxed) {
        warn(text);
    }
}

/// What a number of libfabric means. Those beyond errno.h are its own.
pub(crate) fn text(error: c_int) -> String {
    match error {
        FI_ETRUNC => "the message is longer than the memory for it".to_owned(),
        FI_ENOKEY => "no memory is registered with this key".to_owned(),
        error => std::io::Error::from_raw_os_error(error).to_string(),
    }
}

/// Tells people something on standard error: libfabric's own log would have to be linked.
pub(crate) fn warn(text: &str) {
    let line = format!("earmark[{}]: {text}\n", std::process::id());
    // One write, so that lines of ranks that share a pipe stay whole. If no process reads it, that
    // is no reason to end a program.
    let _ = std::io::stderr().write_all(line.as_bytes());
}

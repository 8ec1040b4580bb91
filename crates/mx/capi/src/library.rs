//! Initialization, version and errors of the library.

use std::ffi::c_char;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::EARMARK_MX_API;
use crate::codes::{Return, earmark_mx_return_t};
use crate::guard::{self, Failure, guard};
use crate::handles;

static INITIALIZED: AtomicBool = AtomicBool::new(false);

pub(crate) fn check() -> Result<(), Failure> {
    if INITIALIZED.load(Ordering::Acquire) {
        return Ok(());
    }
    let text = "the library is not initialized; call earmark_mx_init(EARMARK_MX_API) first";
    Err(Failure::new(Return::EARMARK_MX_NOT_INITIALIZED, text))
}

/// Begins to use the library. Pass EARMARK_MX_API, the version of the header.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_init(api: u32) -> earmark_mx_return_t {
    guard(|| {
        if api >> 16 != EARMARK_MX_API >> 16 || api > EARMARK_MX_API {
            let text = format!(
                "program for version {api:#x} of the interface, library of {EARMARK_MX_API:#x}; \
                 compile the program with the header of this library"
            );
            return Err(Failure::new(Return::EARMARK_MX_BAD_API, text));
        }
        if INITIALIZED.swap(true, Ordering::AcqRel) {
            let text = "the library is initialized already; this call changes nothing";
            return Err(Failure::new(Return::EARMARK_MX_ALREADY_INITIALIZED, text));
        }
        Ok(())
    })
}

/// Ends the use of the library. All endpoints have to be closed.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_finalize() -> earmark_mx_return_t {
    guard(|| {
        check()?;
        match handles::count() {
            0 => INITIALIZED.store(false, Ordering::Release),
            open => {
                let text = format!("{open} endpoints are open; close them first");
                return Err(Failure::new(Return::EARMARK_MX_BUSY, text));
            }
        }
        Ok(())
    })
}

/// The version of the interface that this library has, as EARMARK_MX_API.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_api() -> u32 {
    EARMARK_MX_API
}

/// What went wrong in the latest call of this thread that failed: operation, object, what to do.
/// The text is valid until another call of this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn earmark_mx_last_error() -> *const c_char {
    guard::last()
}

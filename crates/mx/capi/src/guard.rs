//! Errors on their way to C, and panics that must not get there.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};

use mx::status::{Refusal, RequestError};
use mx_io::endpoint::MxError;
use mx_io::port::PortError;

use crate::codes::earmark_mx_return_t as Return;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Why a call did not do what it was asked for.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Return,
    text: String,
}

impl Failure {
    pub(crate) fn new(code: Return, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }
}

impl From<MxError> for Failure {
    fn from(error: MxError) -> Self {
        let code = match &error {
            MxError::Config(_) => Return::EARMARK_MX_BAD_SETTING,
            MxError::Port(port) => of_port(port),
            MxError::Broken(_) => Return::EARMARK_MX_PORT_FAILED,
            MxError::Refused(refusal) => of_refusal(*refusal),
            MxError::Connect { error, .. } => of_failed(*error),
            MxError::Resolve { .. } => Return::EARMARK_MX_HOST_NOT_FOUND,
            MxError::System(_) => Return::EARMARK_MX_NO_RESOURCES,
            MxError::Unfinished(_) => Return::EARMARK_MX_UNFINISHED,
        };
        Self::new(code, error.to_string())
    }
}

const fn of_port(error: &PortError) -> Return {
    match error {
        PortError::NotAllowed { .. } => Return::EARMARK_MX_NOT_ALLOWED,
        PortError::Taken { .. } => Return::EARMARK_MX_TAKEN,
        PortError::Setting { .. } | PortError::NotEthernet { .. } | PortError::NoAddress { .. } => {
            Return::EARMARK_MX_BAD_PORT
        }
        _ => Return::EARMARK_MX_PORT_FAILED,
    }
}

const fn of_refusal(refusal: Refusal) -> Return {
    match refusal {
        Refusal::NoPeer(_) => Return::EARMARK_MX_PEER_LOST,
        Refusal::BadMask => Return::EARMARK_MX_BAD_MATCH_MASK,
        Refusal::ContextNotCovered => Return::EARMARK_MX_BAD_CONTEXT_MASK,
        Refusal::Closing => Return::EARMARK_MX_CLOSING,
        Refusal::NoRequest | Refusal::NoMessage => Return::EARMARK_MX_BAD_REQUEST,
    }
}

const fn of_failed(error: RequestError) -> Return {
    match error {
        RequestError::BadKey => Return::EARMARK_MX_BAD_KEY,
        RequestError::NoEndpoint => Return::EARMARK_MX_NO_ENDPOINT,
        RequestError::BadVersion => Return::EARMARK_MX_BAD_VERSION,
        RequestError::Busy => Return::EARMARK_MX_BUSY,
        RequestError::Timeout => Return::EARMARK_MX_TIMEOUT,
        RequestError::Aborted => Return::EARMARK_MX_CLOSING,
        _ => Return::EARMARK_MX_PEER_LOST,
    }
}

pub(crate) fn guard(call: impl FnOnce() -> Result<(), Failure>) -> Return {
    // What a panic leaves behind is locks, which are taken all the same: see `handles.rs`.
    let failure = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return Return::EARMARK_MX_SUCCESS,
        Ok(Err(failure)) => failure,
        Err(_) => {
            let text = "this is a fault of libearmark, printed on standard error; please report it";
            Failure::new(Return::EARMARK_MX_INTERNAL, text)
        }
    };
    // A text has no zeros, but if one had, the code would have to do.
    let text = CString::new(failure.text).unwrap_or_default();
    // In a thread that is ending there is no place for the text.
    let _ = LAST.try_with(|last| last.replace(text));
    failure.code
}

/// The text of the latest failure of this thread, until its next one.
pub(crate) fn last() -> *const c_char {
    // The text is on the heap, and stays where it is.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

pub(crate) fn place<'a, T>(
    out: Option<&'a mut MaybeUninit<T>>,
    name: &str,
) -> Result<&'a mut MaybeUninit<T>, Failure> {
    out.ok_or_else(|| {
        let text = format!("{name} is NULL; pass the address of a variable for the answer");
        Failure::new(Return::EARMARK_MX_BAD_ARGUMENT, text)
    })
}

/// Puts an answer where it is wanted, if it is.
pub(crate) fn give<T>(out: Option<&mut MaybeUninit<T>>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_stay_inside_and_failures_are_remembered() {
        assert_eq!(guard(|| Ok(())), Return::EARMARK_MX_SUCCESS);
        assert_eq!(guard(|| panic!("a fault, on purpose")), Return::EARMARK_MX_INTERNAL);
        let failing = || Err(Failure::new(Return::EARMARK_MX_BAD_PORT, "a text"));
        assert_eq!(guard(failing), Return::EARMARK_MX_BAD_PORT);
        let text = LAST.with(|last| last.borrow().clone());
        assert_eq!(text.to_str(), Ok("a text"));
    }
}

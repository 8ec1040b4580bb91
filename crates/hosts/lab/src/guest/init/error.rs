//! Why a guest could not begin.

use std::io;

/// What process 1 could not do.
#[derive(Debug, thiserror::Error)]
#[error("{what}{}", cause.as_ref().map(|cause| format!(": {cause}")).unwrap_or_default())]
pub struct InitError {
    pub(super) what: String,
    #[source]
    pub(super) cause: Option<io::Error>,
}

pub(super) fn doing<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> InitError {
    let what = what.into();
    |cause| InitError { what, cause: Some(cause.into()) }
}

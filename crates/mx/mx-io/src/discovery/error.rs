//! Why a name has no address.

use super::peers::Target;
use crate::port::PortError;

/// Why a name has no address.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Nobody answers to it.
    #[error(
        "find MX endpoint {target}: it is in no peers file, and no host of that name has answered; \
         see who has: earmark mx peers"
    )]
    Nobody {
        /// Who was looked for.
        target: Target,
    },
    /// The port does not work.
    #[error(transparent)]
    Port(#[from] PortError),
}

pub(crate) fn nobody(target: &Target) -> ResolveError {
    ResolveError::Nobody { target: target.clone() }
}

//! Errors of endpoints.

use mx::address::Address;
use mx::config::ConfigError;
use mx::status::{Refusal, RequestError};

use crate::discovery::Target;
use crate::port::PortError;

/// Why an endpoint could not do something.
#[derive(Debug, thiserror::Error)]
pub enum MxError {
    /// The settings cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The port refused, or broke.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The port broke earlier.
    #[error("the port of this MX endpoint has failed: {0}; close the endpoint and open another")]
    Broken(String),
    /// The request was not taken.
    #[error("MX request: {0}")]
    Refused(#[from] Refusal),
    /// There is no connection.
    #[error("connect to MX endpoint {address}: {error}")]
    Connect {
        /// Where it should be.
        address: Address,
        /// Why there is none.
        error: RequestError,
    },
    /// No host answers to this name.
    #[error(
        "find MX endpoint {target}: it is in no peers file, and no host of that name has answered; \
         see who has: earmark mx peers --port packet:IFACE"
    )]
    Resolve {
        /// What was looked for.
        target: Target,
    },
    /// The system gave no thread or no descriptor.
    #[error("open an MX endpoint: {0}")]
    System(#[source] std::io::Error),
    /// There was no time for all messages to be delivered.
    #[error("close MX endpoint {0}: its peers have not fetched all messages; they are lost")]
    Unfinished(Address),
}

//! An endpoint that has answered.

use mx::address::Address;

/// An endpoint that has answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveredEndpoint {
    /// The name of its host.
    pub host: String,
    /// Where it is.
    pub address: Address,
    /// The version of the protocol that it speaks; ours is [`mx::wire::VERSION`].
    pub version: u16,
}

//! The two hosts.

use std::net::Ipv4Addr;

use lab::station::ipv4;

/// Where hosts a and b are.
pub(super) const NEAR: Ipv4Addr = ipv4(1);
pub(super) const FAR: Ipv4Addr = ipv4(2);

//! Addresses of NICs and endpoints.

use core::fmt;

/// The address of a network interface, six bytes that a port understands: a MAC address on
/// Ethernet, an IPv4 address and a port where frames travel in UDP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NicId(pub [u8; 6]);

impl fmt::Display for NicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// An endpoint: its interface, and its number there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The address of its interface.
    pub nic: NicId,
    /// The number of the endpoint, 0 to 255. A NIC may choose a queue by it.
    pub endpoint: u8,
}

impl fmt::Display for Address {
    /// NIC and endpoint number, as in `02:00:00:00:00:01/3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.nic, self.endpoint)
    }
}

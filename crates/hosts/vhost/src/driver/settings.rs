//! What a driver asks of its device.

/// What a driver asks of its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverSettings {
    /// Pairs of a receive and a transmit queue, at most as many as the port has.
    pub pairs: u16,
    /// Buffers of each ring: a power of two, 2 to 16,384.
    pub ring_size: u16,
    /// The largest packet that is sent or received, without the Ethernet header, in bytes. The
    /// port may allow less; `None` is as much as it allows.
    pub mtu: Option<u16>,
}

impl Default for DriverSettings {
    /// One pair of rings of 256, and the MTU of the port.
    fn default() -> Self {
        Self { pairs: 1, ring_size: 256, mtu: None }
    }
}

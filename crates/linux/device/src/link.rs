//! What a link has carried.

/// What a link has carried, as seen by the host it belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets that were received.
    pub rx_packets: u64,
    /// Bytes that were received.
    pub rx_bytes: u64,
    /// Packets received and dropped.
    pub rx_dropped: u64,
    /// Packets that the device dropped since the host had no room for them.
    pub rx_missed: u64,
    /// Packets that were sent.
    pub tx_packets: u64,
    /// Bytes that were sent.
    pub tx_bytes: u64,
    /// Packets dropped instead of sent.
    pub tx_dropped: u64,
}

impl LinkStats {
    /// Of `struct rtnl_link_stats64`.
    pub fn read(words: &[u8]) -> Self {
        let at = |place: usize| {
            let word = words.get(place * 8..place * 8 + 8).and_then(|word| word.try_into().ok());
            word.map_or(0, u64::from_ne_bytes)
        };
        Self {
            rx_packets: at(0),
            tx_packets: at(1),
            rx_bytes: at(2),
            tx_bytes: at(3),
            rx_dropped: at(6),
            tx_dropped: at(7),
            rx_missed: at(15),
        }
    }
}

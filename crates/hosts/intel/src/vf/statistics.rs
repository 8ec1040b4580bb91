//! What the function counts, as `struct iavf_eth_stats` has it.

use crate::address::{Cast, address};

/// Packets of one direction. Bytes are those of frames, without their checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Direction {
    bytes: u64,
    unicast: u64,
    multicast: u64,
    broadcast: u64,
}

impl Direction {
    fn count(&mut self, frame: &[u8]) {
        self.bytes += frame.len() as u64;
        match address(frame) {
            Cast::Unicast => self.unicast += 1,
            Cast::Multicast => self.multicast += 1,
            Cast::Broadcast => self.broadcast += 1,
        }
    }

    fn fields(&self) -> [u64; 4] {
        [self.bytes, self.unicast, self.multicast, self.broadcast]
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Statistics {
    received: Direction,
    sent: Direction,
    /// Frames that found no buffer, or were longer than the driver takes.
    pub receive_discards: u64,
    /// Packets of the driver that no port takes.
    pub transmit_errors: u64,
}

impl Statistics {
    pub(super) fn received(&mut self, frame: &[u8]) {
        self.received.count(frame);
    }

    pub(super) fn sent(&mut self, frame: &[u8]) {
        self.sent.count(frame);
    }

    /// Encodes `struct iavf_eth_stats`.
    pub(super) fn encode(&self) -> Vec<u8> {
        let received = self.received.fields().into_iter().chain([self.receive_discards, 0]);
        let sent = self.sent.fields().into_iter().chain([0, self.transmit_errors]);
        received.chain(sent).flat_map(u64::to_le_bytes).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_where_the_driver_looks() {
        let mut statistics = Statistics { receive_discards: 7, ..Statistics::default() };
        statistics.received(&[2; 60]);
        statistics.received(&[0xFF; 64]);
        statistics.sent(&[1; 100]);
        let bytes = statistics.encode();
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|word| word.try_into().map(u64::from_le_bytes).unwrap())
            .collect();
        assert_eq!(words, [124, 1, 0, 1, 7, 0, 100, 0, 1, 0, 0, 0]);
    }
}

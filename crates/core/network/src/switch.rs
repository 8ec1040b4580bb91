//! What joins more than two ports: a switch that learns which address is behind which port.
//!
//! With two ports it is a cable: whatever leaves one arrives at the other.

use alloc::vec::Vec;

/// Addresses that a switch remembers; a new one beyond that is not learnt, and frames to it go to
/// every port.
pub const MAX_ADDRESSES: usize = 4_096;

/// An Ethernet address.
type Address = [u8; 6];

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Destination {
    /// To this port.
    Port(usize),
    /// To all but the one that it came from.
    Others,
    /// Nowhere: its receiver is behind the port that it came from, or it is no Ethernet frame.
    Nowhere,
}

/// A learning switch (IEEE 802.1D, without ageing: hosts do not move without sending).
#[derive(Clone, Debug)]
pub struct Switch {
    ports: usize,
    /// Sorted by address.
    table: Vec<(Address, usize)>,
}

impl Switch {
    /// A switch with an empty table.
    #[must_use]
    pub const fn new(ports: usize) -> Self {
        Self { ports, table: Vec::new() }
    }

    /// Where a frame that came in at port `from` goes. Its sender is behind that port from now on.
    pub fn forward(&mut self, from: usize, frame: &[u8]) -> Destination {
        if self.ports == 2 {
            return Destination::Port(1 - from);
        }
        let [to @ .., _, _, _, _, _, _] = frame.get(..12).unwrap_or_default() else {
            return Destination::Nowhere;
        };
        let sender = frame[6..12].first_chunk().copied().unwrap_or_default();
        self.learn(sender, from);
        match self.table.binary_search_by(|(address, _)| address[..].cmp(to)) {
            _ if is_group(to) => Destination::Others,
            Ok(at) if self.table[at].1 == from => Destination::Nowhere,
            Ok(at) => Destination::Port(self.table[at].1),
            Err(_) => Destination::Others,
        }
    }

    fn learn(&mut self, address: Address, port: usize) {
        if is_group(&address) {
            return;
        }
        match self.table.binary_search_by_key(&address, |entry| entry.0) {
            Ok(at) => self.table[at].1 = port,
            Err(at) if self.table.len() < MAX_ADDRESSES => self.table.insert(at, (address, port)),
            Err(_) => {}
        }
    }
}

/// Broadcast or multicast: the lowest bit of the first byte.
fn is_group(address: &[u8]) -> bool {
    address.first().is_some_and(|first| first & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Address = [2, 0, 0, 0, 0, 1];
    const B: Address = [2, 0, 0, 0, 0, 2];
    const BROADCAST: Address = [255; 6];

    fn frame(to: Address, from: Address) -> [u8; 14] {
        let mut frame = [0; 14];
        frame[..6].copy_from_slice(&to);
        frame[6..12].copy_from_slice(&from);
        frame
    }

    #[test]
    fn two_ports_are_a_cable() {
        let mut cable = Switch::new(2);
        assert_eq!(cable.forward(0, &[]), Destination::Port(1));
        assert_eq!(cable.forward(1, &frame(A, A)), Destination::Port(0));
    }

    #[test]
    fn frames_go_where_their_receiver_was_heard() {
        let mut switch = Switch::new(3);
        assert_eq!(switch.forward(0, &frame(B, A)), Destination::Others);
        assert_eq!(switch.forward(2, &frame(A, B)), Destination::Port(0));
        assert_eq!(switch.forward(0, &frame(B, A)), Destination::Port(2));
        assert_eq!(switch.forward(0, &frame(BROADCAST, A)), Destination::Others);
        assert_eq!(switch.forward(2, &frame(B, A)), Destination::Nowhere);
        assert_eq!(switch.forward(1, &frame(A, B)), Destination::Port(2));
        assert_eq!(switch.forward(1, &[0; 11]), Destination::Nowhere);
    }

    #[test]
    fn a_full_table_forgets_no_address() {
        let mut switch = Switch::new(3);
        for number in 0..2 * MAX_ADDRESSES as u32 {
            let mut sender = A;
            sender[1..5].copy_from_slice(&number.to_be_bytes());
            switch.forward(1, &frame(BROADCAST, sender));
        }
        let first = [2, 0, 0, 0, 0, 1];
        assert_eq!(switch.forward(0, &frame(first, B)), Destination::Port(1));
        assert_eq!(switch.table.len(), MAX_ADDRESSES);
    }
}

//! What a card counts: registers that are cleared when they are read (82574 datasheet, 10.2.8).

use crate::address::{Cast, address};

/// Where the registers are.
pub(super) const FIRST: u32 = 0x4000;
pub(super) const LAST: u32 = 0x4124;

/// Packets that found no descriptor.
const MPC: u32 = 0x4010;
/// By length, from 64 bytes on; six registers.
const PRC64: u32 = 0x405C;
const PTC64: u32 = 0x40D8;
const GPRC: u32 = 0x4074;
const BPRC: u32 = 0x4078;
const MPRC: u32 = 0x407C;
const GPTC: u32 = 0x4080;
/// Octets are pairs of registers, the low one first.
const GORC: u32 = 0x4088;
const GOTC: u32 = 0x4090;
const RNBC: u32 = 0x40A0;
const ROC: u32 = 0x40AC;
const TOR: u32 = 0x40C0;
const TOT: u32 = 0x40C8;
const TPR: u32 = 0x40D0;
const TPT: u32 = 0x40D4;
const MPTC: u32 = 0x40F0;
const BPTC: u32 = 0x40F4;
const TSCTC: u32 = 0x40F8;

/// The checksum of a frame, which is counted with its octets.
const CHECKSUM: u64 = 4;

/// The last length of each of the registers by length, checksum included.
const LENGTHS: [u64; 5] = [64, 127, 255, 511, 1_023];

/// The statistics registers, from `FIRST` to `LAST`.
#[derive(Debug)]
pub(super) struct Statistics([u32; ((LAST - FIRST) / 4 + 1) as usize]);

impl Statistics {
    pub(super) fn new() -> Self {
        Self([0; ((LAST - FIRST) / 4 + 1) as usize])
    }

    /// Reads a register and clears it.
    pub(super) fn read(&mut self, register: u32) -> u32 {
        let at = register.checked_sub(FIRST).map(|offset| offset as usize / 4);
        at.and_then(|at| self.0.get_mut(at)).map_or(0, std::mem::take)
    }

    /// Counters do not wrap: they stay at their largest value (10.2.8).
    fn add(&mut self, register: u32, count: u32) {
        let counter = &mut self.0[((register - FIRST) / 4) as usize];
        *counter = counter.saturating_add(count);
    }

    fn add_octets(&mut self, register: u32, octets: u64) {
        let at = ((register - FIRST) / 4) as usize;
        let old = u64::from(self.0[at + 1]) << 32 | u64::from(self.0[at]);
        let new = old.saturating_add(octets);
        (self.0[at], self.0[at + 1]) = (new as u32, (new >> 32) as u32);
    }

    /// A frame came off the wire and was taken.
    pub(super) fn received(&mut self, frame: &[u8]) {
        let octets = frame.len() as u64 + CHECKSUM;
        self.add(PRC64 + by_length(octets), 1);
        self.add(GPRC, 1);
        self.add(TPR, 1);
        match address(frame) {
            Cast::Unicast => {}
            Cast::Multicast => self.add(MPRC, 1),
            Cast::Broadcast => self.add(BPRC, 1),
        }
        self.add_octets(GORC, octets);
        self.add_octets(TOR, octets);
    }

    pub(super) fn filtered(&mut self, frame: &[u8]) {
        self.add(TPR, 1);
        self.add_octets(TOR, frame.len() as u64 + CHECKSUM);
    }

    pub(super) fn oversize(&mut self, frame: &[u8]) {
        self.add(ROC, 1);
        self.filtered(frame);
    }

    pub(super) fn missed(&mut self, frames: u32) {
        self.add(MPC, frames);
        self.add(RNBC, frames);
    }

    pub(super) fn sent(&mut self, frame: &[u8]) {
        let octets = frame.len() as u64 + CHECKSUM;
        self.add(PTC64 + by_length(octets), 1);
        self.add(GPTC, 1);
        self.add(TPT, 1);
        match address(frame) {
            Cast::Unicast => {}
            Cast::Multicast => self.add(MPTC, 1),
            Cast::Broadcast => self.add(BPTC, 1),
        }
        self.add_octets(GOTC, octets);
        self.add_octets(TOT, octets);
    }

    pub(super) fn segmented(&mut self) {
        self.add(TSCTC, 1);
    }
}

fn by_length(octets: u64) -> u32 {
    let longer = LENGTHS.iter().filter(|last| octets > **last).count();
    4 * longer as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_once() {
        let mut statistics = Statistics::new();
        statistics.received(&[2; 60]);
        statistics.received(&[0xFF; 1_514]);
        statistics.sent(&[3; 60]);
        statistics.missed(2);
        assert_eq!((statistics.read(GPRC), statistics.read(GPRC)), (2, 0));
        assert_eq!((statistics.read(PRC64), statistics.read(PRC64 + 20)), (1, 1));
        assert_eq!((statistics.read(BPRC), statistics.read(MPTC)), (1, 1));
        assert_eq!((statistics.read(GORC), statistics.read(GORC + 4)), (64 + 1_518, 0));
        assert_eq!(statistics.read(MPC), 2);
        assert_eq!(statistics.read(LAST + 4), 0);
    }
}

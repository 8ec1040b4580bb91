//! The dynamic throttle of e1000e once more, as a table that is read from the top.
//!
//! After Linux `drivers/net/ethernet/intel/e1000e/netdev.c`, `e1000_update_itr` and
//! `e1000_set_itr`.

use std::ops::RangeInclusive;

use nic::moderation::{ItrMode, Moderation, TimerKind};
use nic::time::Duration;

type Range = RangeInclusive<u32>;

const ANY: Range = 0..=u32::MAX;

/// From a class, with this many packets, bytes, and bytes a packet, to a class: the first that
/// fits. Classes are the driver's numbers: 0 lowest latency, 1 low latency, 2 bulk.
const TABLE: [(u8, Range, Range, Range, u8); 11] = [
    (0, ANY, ANY, 8_001..=u32::MAX, 2),
    (0, 0..=4, 513..=u32::MAX, ANY, 1),
    (1, ANY, 10_001..=u32::MAX, 8_001..=u32::MAX, 2),
    (1, 0..=9, 10_001..=u32::MAX, ANY, 2),
    (1, ANY, 10_001..=u32::MAX, 1_201..=u32::MAX, 2),
    (1, 36..=u32::MAX, 10_001..=u32::MAX, ANY, 0),
    (1, ANY, 10_001..=u32::MAX, ANY, 1),
    (1, ANY, ANY, 2_001..=u32::MAX, 2),
    (1, 0..=2, 0..=511, ANY, 0),
    (2, 36..=u32::MAX, 25_001..=u32::MAX, ANY, 1),
    (2, ANY, 0..=5_999, ANY, 1),
];

/// The driver's memory.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    conservative: bool,
    class: u8,
    pub rate: u32,
}

impl Driver {
    /// The driver when the setting comes into force, if it is one of its dynamic modes.
    pub fn of(setting: Moderation) -> Option<Self> {
        let TimerKind::Itr(mode) = setting.timer else { return None };
        Some(Self { conservative: mode == ItrMode::Conservative, class: 0, rate: 20_000 })
    }

    /// A poll ends, with packets of these lengths since the last interrupt.
    pub fn decide(&mut self, taken: &[u32]) {
        let (packets, bytes) = (taken.len() as u32, taken.iter().sum::<u32>());
        if packets > 0 {
            let fits = TABLE.iter().find(|(class, count, sum, each, _)| {
                *class == self.class
                    && count.contains(&packets)
                    && sum.contains(&bytes)
                    && each.contains(&(bytes / packets))
            });
            self.class = fits.map_or(self.class, |row| row.4);
        }
        if self.conservative {
            self.class = self.class.max(1);
        }
        let goal = [70_000, 20_000, 4_000][usize::from(self.class)];
        self.rate = goal.min(self.rate + goal / 4);
    }

    /// What the driver writes into the register, which counts in 256 ns.
    pub fn gap(&self) -> Duration {
        Duration::from_nanos(1_000_000_000 / (u64::from(self.rate) * 256) * 256)
    }
}

//! Intel's dynamic interrupt throttle: a gap that follows what each poll took.
//!
//! Behaviour after Linux `drivers/net/ethernet/intel/e1000e/netdev.c` (`e1000_update_itr`,
//! `e1000_set_itr`, `e1000e_write_itr`) and `param.c` there; none of its code.

use super::{Interrupt, Moderator, Profile, Taken, Throttle, Unseen};
use crate::time::{Duration, Instant};

/// Which of the driver's dynamic modes: the value of its parameter `InterruptThrottleRate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ItrMode {
    /// 1, "dynamic": up to 70,000 interrupts a second.
    Dynamic,
    /// 3, "dynamic conservative", the driver's default: up to 20,000.
    Conservative,
}

impl ItrMode {
    /// The value of `InterruptThrottleRate`, which is the number in a setting.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::Dynamic => 1,
            Self::Conservative => 3,
        }
    }

    /// The mode with this number; none for those that are not dynamic, and for 2 and 4.
    #[must_use]
    pub const fn of(number: u32) -> Option<Self> {
        match number {
            1 => Some(Self::Dynamic),
            3 => Some(Self::Conservative),
            _ => None,
        }
    }
}

/// What the driver takes the traffic for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Lowest,
    Low,
    Bulk,
}

impl Class {
    /// What it becomes by what was taken since the last interrupt.
    fn after(self, taken: Taken) -> Self {
        let Taken { packets, bytes } = taken;
        if packets == 0 {
            return self;
        }
        let each = bytes / packets;
        match self {
            Self::Lowest if each > 8_000 => Self::Bulk,
            Self::Lowest if packets < 5 && bytes > 512 => Self::Low,
            Self::Low if bytes > 10_000 => match packets {
                // Packets of more than 8000 bytes are few, or of more than 1200.
                0..10 => Self::Bulk,
                _ if each > 1_200 => Self::Bulk,
                36.. => Self::Lowest,
                _ => Self::Low,
            },
            Self::Low if each > 2_000 => Self::Bulk,
            Self::Low if packets <= 2 && bytes < 512 => Self::Lowest,
            Self::Bulk if bytes > 25_000 && packets > 35 => Self::Low,
            Self::Bulk if bytes < 6_000 => Self::Low,
            same => same,
        }
    }

    /// Interrupts a second.
    const fn rate(self) -> u32 {
        match self {
            Self::Lowest => 70_000,
            Self::Low => 20_000,
            Self::Bulk => 4_000,
        }
    }
}

/// A [`Throttle`] whose gap is computed anew when a poll ends.
///
/// From the packets and bytes that the host took since the last interrupt follows a class, from
/// that a rate: 70,000 interrupts a second (lowest latency; not in the conservative mode), 20,000
/// (low latency) or 4000 (bulk). The rate falls at once and rises by a quarter of its goal a poll.
/// The gap is its inverse in units of 256 ns, rounded down, as the register has it: 14.080, 49.920
/// or 249.856 us.
///
/// What e1000e does on a link of one gigabit; on slower ones it stays at 4000. Its class is the
/// slower one of reception and transmission; what is sent is not known here.
#[derive(Clone, Debug)]
pub struct Itr {
    timer: Throttle,
    mode: ItrMode,
    class: Class,
    rate: u32,
}

impl Itr {
    /// Starts with 20,000 interrupts a second, as the driver.
    #[must_use]
    pub fn new(mode: ItrMode) -> Self {
        let rate = Class::Low.rate();
        Self { timer: Throttle::new(gap(rate)), mode, class: Class::Lowest, rate }
    }

    /// Interrupts a second, at most.
    #[must_use]
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// The gap in force.
    #[must_use]
    pub fn gap(&self) -> Duration {
        gap(self.rate)
    }

    fn decide(&mut self, taken: Taken) {
        self.class = self.class.after(taken);
        if self.class == Class::Lowest && self.mode == ItrMode::Conservative {
            self.class = Class::Low;
        }
        let goal = self.class.rate();
        self.rate = goal.min(self.rate + goal / 4);
        self.timer.set_gap(self.gap());
    }
}

/// The inverse of a rate, as the register has it.
fn gap(rate: u32) -> Duration {
    const UNIT: u64 = 256;
    Duration::from_nanos(1_000_000_000 / (u64::from(rate) * UNIT) * UNIT)
}

impl Moderator for Itr {
    forward_moderator!(timer: packet_arrived dma_completed transmit_completed timer_expired);
    forward_moderator!(timer: interrupt_raised deadline);

    #[inline(never)] // It needs registers that every other strategy would save, too.
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        if let Some(taken) = unseen.taken {
            self.decide(taken);
        }
        self.timer.host_rearmed(now, unseen)
    }

    /// The gap, rounded down to microseconds; it chooses no frame count.
    fn chosen(&self) -> Option<Profile> {
        Some(Profile { rx_usecs: self.gap().as_micros() as u32, rx_frames: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The driver's table: class, packets, bytes, and the class after them. Each of its conditions
    /// is here at both of its sides.
    const DECISIONS: &[(Class, u32, u32, Class)] = &[
        // lowest_latency: more than 8000 bytes a packet are bulk; fewer than 5 packets with more
        // than 512 bytes are low latency.
        (Class::Lowest, 0, 0, Class::Lowest),
        (Class::Lowest, 1, 8_001, Class::Bulk),
        (Class::Lowest, 1, 8_000, Class::Low),
        (Class::Lowest, 10, 80_009, Class::Lowest),
        (Class::Lowest, 10, 80_010, Class::Bulk),
        (Class::Lowest, 4, 513, Class::Low),
        (Class::Lowest, 4, 512, Class::Lowest),
        (Class::Lowest, 5, 7_500, Class::Lowest),
        // low_latency with more than 10,000 bytes: bulk if a packet has more than 8000, if there
        // are fewer than 10, or if one has more than 1200; lowest if there are more than 35.
        (Class::Low, 0, 0, Class::Low),
        (Class::Low, 2, 18_000, Class::Bulk),
        (Class::Low, 12, 97_000, Class::Bulk),
        (Class::Low, 9, 10_001, Class::Bulk),
        (Class::Low, 10, 10_001, Class::Low),
        (Class::Low, 10, 12_009, Class::Low),
        (Class::Low, 10, 12_010, Class::Bulk),
        (Class::Low, 36, 43_235, Class::Lowest),
        (Class::Low, 36, 43_236, Class::Bulk),
        (Class::Low, 35, 10_001, Class::Low),
        (Class::Low, 36, 10_001, Class::Lowest),
        // low_latency up to that: bulk if a packet has more than 2000 bytes; lowest if there are at
        // most 2 packets of fewer than 512 bytes together.
        (Class::Low, 36, 10_000, Class::Low),
        (Class::Low, 9, 10_000, Class::Low),
        (Class::Low, 1, 2_001, Class::Bulk),
        (Class::Low, 1, 2_000, Class::Low),
        (Class::Low, 2, 511, Class::Lowest),
        (Class::Low, 2, 512, Class::Low),
        (Class::Low, 3, 192, Class::Low),
        // bulk_latency: low latency if more than 25,000 bytes come in more than 35 packets, or if
        // there are fewer than 6000 bytes.
        (Class::Bulk, 0, 0, Class::Bulk),
        (Class::Bulk, 36, 25_001, Class::Low),
        (Class::Bulk, 35, 25_001, Class::Bulk),
        (Class::Bulk, 36, 25_000, Class::Bulk),
        (Class::Bulk, 1, 5_999, Class::Low),
        (Class::Bulk, 1, 6_000, Class::Bulk),
    ];

    #[test]
    fn decisions_are_those_of_the_drivers_table() {
        for &(before, packets, bytes, after) in DECISIONS {
            let taken = Taken { packets, bytes };
            assert_eq!(before.after(taken), after, "{before:?}, {packets} packets, {bytes} bytes");
        }
    }

    /// The rates after polls that each took this.
    fn rates(itr: &mut Itr, packets: u32, bytes: u32, polls: usize) -> [u32; 5] {
        let unseen = Unseen { taken: Some(Taken { packets, bytes }), ..Unseen::default() };
        let mut rates = [0; 5];
        for rate in rates.iter_mut().take(polls) {
            assert_eq!(itr.host_rearmed(Instant::ZERO, &unseen), None);
            *rate = itr.rate();
        }
        rates
    }

    #[test]
    fn rate_rises_by_a_quarter_of_its_goal_and_falls_at_once() {
        let mut itr = Itr::new(ItrMode::Dynamic);
        assert_eq!(itr.rate(), 20_000);
        assert_eq!(rates(&mut itr, 1, 64, 4), [37_500, 55_000, 70_000, 70_000, 0]);
        assert_eq!(rates(&mut itr, 1, 1_000, 1), [20_000, 0, 0, 0, 0]);
        assert_eq!(rates(&mut itr, 20, 30_000, 2), [4_000, 4_000, 0, 0, 0]);
        assert_eq!(rates(&mut itr, 2, 3_000, 5), [9_000, 14_000, 19_000, 20_000, 20_000]);
    }

    #[test]
    fn conservative_mode_has_no_lowest_latency() {
        let mut itr = Itr::new(ItrMode::Conservative);
        assert_eq!(rates(&mut itr, 1, 64, 2), [20_000, 20_000, 0, 0, 0]);
        assert_eq!(rates(&mut itr, 40, 60_000, 1), [4_000, 0, 0, 0, 0]);
        assert_eq!(rates(&mut itr, 1, 64, 5), [9_000, 14_000, 19_000, 20_000, 20_000]);
    }

    /// A poll that found nothing keeps the class, and the rate goes on towards it.
    #[test]
    fn empty_polls_keep_the_class() {
        let mut itr = Itr::new(ItrMode::Dynamic);
        assert_eq!(rates(&mut itr, 0, 0, 3), [37_500, 55_000, 70_000, 0, 0]);
        assert_eq!(rates(&mut itr, 1, 9_000, 1), [4_000, 0, 0, 0, 0]);
        assert_eq!(rates(&mut itr, 0, 0, 2), [4_000, 4_000, 0, 0, 0]);
    }

    #[test]
    fn new_setting_is_no_poll() {
        let mut itr = Itr::new(ItrMode::Dynamic);
        let _ = itr.host_rearmed(Instant::ZERO, &Unseen::default());
        assert_eq!(itr.rate(), 20_000);
    }

    #[test]
    fn gap_is_in_units_of_the_register() {
        let nanos = [70_000, 37_500, 20_000, 4_000].map(|rate| gap(rate).as_nanos());
        assert_eq!(nanos, [55 * 256, 104 * 256, 195 * 256, 976 * 256]);
    }

    /// The gap of the decision holds from the interrupt before it.
    #[test]
    fn poll_stretches_the_gap_that_runs() {
        let at = Instant::from_micros;
        let mut itr = Itr::new(ItrMode::Conservative);
        itr.interrupt_raised(at(100));
        let taken = Some(Taken { packets: 20, bytes: 30_000 });
        let unseen = Unseen { packets: 1, oldest: Some(at(120)), taken, ..Unseen::default() };
        // Conservative begins with lowest latency, too, and 20 full packets do not change that.
        assert_eq!(itr.host_rearmed(at(130), &unseen), None);
        assert_eq!(itr.deadline(), Some(Instant::from_nanos(149_920)));
        assert_eq!(itr.host_rearmed(at(131), &unseen), None);
        assert_eq!(itr.deadline(), Some(Instant::from_nanos(349_856)));
    }
}

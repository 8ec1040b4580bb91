//! Dynamic interrupt moderation: what Linux calls DIM, for one receive queue.
//!
//! Every 64 interrupts the traffic since the last decision is summed up as bytes, packets and
//! interrupts per millisecond, compared with the sum before, and the profile moves one step to the
//! left (shorter) or to the right (longer). "Better" means more bytes; if those are about equal,
//! more packets; if those are, too, fewer interrupts. **Latency is not part of it.** A climb that
//! turns back twice has found the top and parks there until the traffic changes; a climb that went
//! on for too long is tired and rests.
//!
//! Behaviour after Linux `lib/dim/net_dim.c` and `lib/dim/dim.c`, `include/linux/dim.h`; none of
//! its code.

use crate::time::Instant;

/// A delay and a frame count, as `struct dim_cq_moder`: one step of the ladder that DIM climbs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Delay after the first packet, in microseconds.
    pub rx_usecs: u32,
    /// Interrupt at this many frames.
    pub rx_frames: u32,
}

/// `NET_DIM_RX_EQE_PROFILES`: for a timer that starts at the first packet.
pub(super) const PROFILES: [Profile; 5] = [
    Profile { rx_usecs: 1, rx_frames: 256 },
    Profile { rx_usecs: 8, rx_frames: 256 },
    Profile { rx_usecs: 64, rx_frames: 256 },
    Profile { rx_usecs: 128, rx_frames: 256 },
    Profile { rx_usecs: 256, rx_frames: 256 },
];

/// `NET_DIM_DEF_PROFILE_EQE`: what drivers put into force before DIM has decided anything.
///
/// DIM itself knows nothing of it. It starts at the first step of its ladder, since drivers hand it
/// zeroed memory (mlx5, bnxt, virtio_net), so its first step leads to this very profile.
pub(super) const BEFORE_ANY_DECISION: Profile = PROFILES[1];

/// `DIM_NEVENTS`: interrupts between two decisions.
const EVENTS_PER_DECISION: u16 = 64;

/// Steps of one climb, in both directions, before DIM is tired.
const TIRED: u8 = PROFILES.len() as u8 * 2;

/// Running totals at one moment. They wrap, as the kernel's do.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) time: Instant,
    pub(super) bytes: u32,
    pub(super) packets: u32,
    pub(super) interrupts: u16,
}

/// What happened per millisecond between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rates {
    bytes: u64,
    packets: u64,
    interrupts: u64,
}

impl Rates {
    fn between(start: &Sample, end: &Sample) -> Option<Self> {
        let micros = end.time.since(start.time).as_micros();
        if micros == 0 {
            return None;
        }
        let per_ms = |count: u64| (count * 1_000).div_ceil(micros);
        Some(Self {
            bytes: per_ms(end.bytes.wrapping_sub(start.bytes).into()),
            packets: per_ms(end.packets.wrapping_sub(start.packets).into()),
            interrupts: per_ms(EVENTS_PER_DECISION.into()),
        })
    }

    /// The three-way comparison, `net_dim_stats_compare`.
    fn compare(&self, previous: &Self) -> Trend {
        let more = |better| if better { Trend::Better } else { Trend::Worse };
        if differ(self.bytes, previous.bytes) {
            return more(self.bytes > previous.bytes);
        }
        if differ(self.packets, previous.packets) {
            return more(self.packets > previous.packets);
        }
        if previous.interrupts > 0 && differ(self.interrupts, previous.interrupts) {
            return more(self.interrupts < previous.interrupts);
        }
        Trend::Same
    }
}

/// Whether two rates differ by more than a tenth of the previous one; anything differs from
/// nothing.
fn differ(current: u64, previous: u64) -> bool {
    match current.abs_diff(previous).saturating_mul(100).checked_div(previous) {
        Some(percent) => percent > 10,
        None => current > 0,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trend {
    Better,
    Worse,
    Same,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tuning {
    ParkingOnTop,
    ParkingTired,
    GoingRight,
    GoingLeft,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Stepped,
    OnEdge,
    TooTired,
}

/// The state of one queue's DIM: it measures and decides; applying the profile is the caller's.
#[derive(Clone, Debug)]
pub(super) struct Dim {
    measuring_since: Option<Sample>,
    previous: Rates,
    tuning: Tuning,
    profile: usize,
    steps_left: u8,
    steps_right: u8,
    tired: u8,
}

impl Dim {
    pub(super) const fn new() -> Self {
        let previous = Rates { bytes: 0, packets: 0, interrupts: 0 };
        Self {
            measuring_since: None,
            previous,
            tuning: Tuning::ParkingOnTop,
            profile: 0,
            steps_left: 0,
            steps_right: 0,
            tired: 0,
        }
    }

    pub(super) const fn profile(&self) -> Profile {
        PROFILES[self.profile]
    }

    /// Takes a sample at the end of a poll (`net_dim`); the profile to apply, if it changed.
    pub(super) fn sample(&mut self, end: Sample) -> Option<Profile> {
        let Some(start) = self.measuring_since else {
            self.measuring_since = Some(end);
            return None;
        };
        if end.interrupts.wrapping_sub(start.interrupts) < EVENTS_PER_DECISION {
            return None;
        }
        // Without a rate, because no microsecond has passed, it goes on measuring.
        let rates = Rates::between(&start, &end)?;
        let before = self.profile;
        self.decide(rates);
        if self.profile == before {
            self.measuring_since = Some(end);
            return None;
        }
        // A changed profile is measured from the next poll on, when it is in force.
        self.measuring_since = None;
        Some(self.profile())
    }

    /// The state machine of `net_dim_decision`.
    fn decide(&mut self, rates: Rates) {
        let was_parked = self.tuning == Tuning::ParkingOnTop;
        match self.tuning {
            Tuning::ParkingOnTop => {
                if rates.compare(&self.previous) != Trend::Same {
                    self.exit_parking();
                }
            }
            Tuning::ParkingTired => {
                self.tired = self.tired.saturating_sub(1);
                if self.tired == 0 {
                    self.exit_parking();
                }
            }
            Tuning::GoingRight | Tuning::GoingLeft => self.climb(rates),
        }
        // While parked, drift is judged against the rates at which DIM parked.
        if !(was_parked && self.tuning == Tuning::ParkingOnTop) {
            self.previous = rates;
        }
    }

    fn climb(&mut self, rates: Rates) {
        if rates.compare(&self.previous) != Trend::Better {
            self.turn();
        }
        if self.on_top() {
            return self.park_on_top();
        }
        match self.step() {
            Step::Stepped => {}
            Step::OnEdge => self.park_on_top(),
            Step::TooTired => self.park(Tuning::ParkingTired),
        }
    }

    fn step(&mut self) -> Step {
        if self.tired == TIRED {
            return Step::TooTired;
        }
        match self.tuning {
            Tuning::ParkingOnTop | Tuning::ParkingTired => {}
            Tuning::GoingRight if self.profile + 1 == PROFILES.len() => return Step::OnEdge,
            Tuning::GoingRight => {
                self.profile += 1;
                self.steps_right += 1;
            }
            Tuning::GoingLeft if self.profile == 0 => return Step::OnEdge,
            Tuning::GoingLeft => {
                self.profile -= 1;
                self.steps_left += 1;
            }
        }
        self.tired += 1;
        Step::Stepped
    }

    fn turn(&mut self) {
        match self.tuning {
            Tuning::GoingRight => {
                self.tuning = Tuning::GoingLeft;
                self.steps_left = 0;
            }
            Tuning::GoingLeft => {
                self.tuning = Tuning::GoingRight;
                self.steps_right = 0;
            }
            Tuning::ParkingOnTop | Tuning::ParkingTired => {}
        }
    }

    /// More than one step to one side and one step back: the profile in between was the best.
    fn on_top(&self) -> bool {
        match self.tuning {
            Tuning::GoingRight => self.steps_left > 1 && self.steps_right == 1,
            Tuning::GoingLeft => self.steps_right > 1 && self.steps_left == 1,
            Tuning::ParkingOnTop | Tuning::ParkingTired => true,
        }
    }

    fn park_on_top(&mut self) {
        self.tired = 0;
        self.park(Tuning::ParkingOnTop);
    }

    fn park(&mut self, how: Tuning) {
        self.steps_left = 0;
        self.steps_right = 0;
        self.tuning = how;
    }

    fn exit_parking(&mut self) {
        self.tuning = if self.profile == 0 { Tuning::GoingRight } else { Tuning::GoingLeft };
        self.step();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds decisions one by one: each call is one period of 64 interrupts at these rates.
    struct Traffic {
        dim: Dim,
        now: Sample,
    }

    impl Traffic {
        fn new() -> Self {
            let mut dim = Dim::new();
            assert_eq!(dim.sample(Sample::default()), None);
            Self { dim, now: Sample::default() }
        }

        fn period(&mut self, micros: u64, packets: u32, bytes: u32) -> u32 {
            self.now.time += crate::time::Duration::from_micros(micros);
            self.now.packets = self.now.packets.wrapping_add(packets);
            self.now.bytes = self.now.bytes.wrapping_add(bytes);
            self.now.interrupts = self.now.interrupts.wrapping_add(64);
            if self.dim.sample(self.now).is_some() {
                // The kernel's work item applied it; the next poll starts a new measurement.
                self.dim.sample(self.now);
            }
            self.dim.profile().rx_usecs
        }
    }

    #[test]
    fn first_traffic_leaves_the_parking_for_the_profile_that_drivers_begin_with() {
        let mut traffic = Traffic::new();
        assert_eq!(traffic.dim.profile().rx_usecs, 1);
        assert_eq!(traffic.period(1_000, 64, 6_400), BEFORE_ANY_DECISION.rx_usecs);
    }

    #[test]
    fn a_period_without_a_microsecond_goes_on() {
        let mut dim = Dim::new();
        dim.sample(Sample::default());
        let burst = Sample { packets: 64, bytes: 6_400, interrupts: 64, time: Instant::ZERO };
        assert_eq!(dim.sample(burst), None);
        // The 64 interrupts of before still count.
        let later = Sample { time: Instant::from_micros(10), ..burst };
        assert_eq!(dim.sample(later), Some(PROFILES[1]));
    }

    #[test]
    fn growing_traffic_climbs_to_the_right_edge_and_leaves_it() {
        let mut traffic = Traffic::new();
        let profiles: alloc::vec::Vec<u32> =
            (1..8).map(|n| traffic.period(1_000, 64 << n, 6_400 << n)).collect();
        // Up to the edge, which parks; parked, more traffic is a change: down, and on, since it is
        // still more.
        assert_eq!(profiles, [8, 64, 128, 256, 256, 128, 64]);
    }

    #[test]
    fn fewer_interrupts_win_when_bytes_and_packets_are_equal() {
        let slow = Rates { bytes: 1_000, packets: 100, interrupts: 10 };
        let fast = Rates { bytes: 1_050, packets: 95, interrupts: 20 };
        assert_eq!(slow.compare(&fast), Trend::Better);
        assert_eq!(fast.compare(&slow), Trend::Worse);
    }

    #[test]
    fn a_tenth_is_not_significant() {
        let rates = |bytes| Rates { bytes, packets: 100, interrupts: 10 };
        assert_eq!(rates(1_109).compare(&rates(1_000)), Trend::Same);
        assert_eq!(rates(1_110).compare(&rates(1_000)), Trend::Better);
        assert_eq!(rates(889).compare(&rates(1_000)), Trend::Worse);
        assert_eq!(rates(0).compare(&rates(0)), Trend::Same);
    }

    #[test]
    fn steady_traffic_climbs_while_that_saves_interrupts_and_parks() {
        let mut traffic = Traffic::new();
        let mut usecs = 8;
        for _ in 0..100 {
            // A packet each 10 us: a longer delay gathers more packets for the same 64 interrupts.
            let micros = 64 * (u64::from(usecs) + 10);
            let packets = micros as u32 / 10;
            usecs = traffic.period(micros, packets, packets * 100);
        }
        assert_eq!(usecs, 256);
        assert_eq!(traffic.dim.tuning, Tuning::ParkingOnTop);
    }

    #[test]
    fn a_climb_that_changes_nothing_tires_dim_and_it_rests() {
        let mut traffic = Traffic::new();
        let tunings: alloc::vec::Vec<Tuning> = (0..30)
            .map(|_| {
                traffic.period(1_000, 64, 6_400);
                traffic.dim.tuning
            })
            .collect();
        let climb = tunings.iter().position(|&tuning| tuning == Tuning::ParkingTired).unwrap();
        assert_eq!(climb, usize::from(TIRED));
        let rest = tunings[climb..].iter().take_while(|&&t| t == Tuning::ParkingTired).count();
        assert_eq!(rest, usize::from(TIRED));
    }

    #[test]
    fn fewer_than_64_interrupts_decide_nothing() {
        let mut dim = Dim::new();
        dim.sample(Sample::default());
        let time = Instant::from_micros(1_000);
        let sample = Sample { time, bytes: 10_000, packets: 100, interrupts: 63 };
        assert_eq!(dim.sample(sample), None);
        assert!(dim.sample(Sample { interrupts: 64, ..sample }).is_some());
    }

    #[test]
    fn totals_may_wrap() {
        let start =
            Sample { time: Instant::ZERO, bytes: u32::MAX - 99, packets: u32::MAX, interrupts: 0 };
        let end =
            Sample { time: Instant::from_micros(1_000), bytes: 900, packets: 9, interrupts: 64 };
        let rates = Rates::between(&start, &end).unwrap();
        assert_eq!(rates, Rates { bytes: 1_000, packets: 10, interrupts: 64 });
    }
}

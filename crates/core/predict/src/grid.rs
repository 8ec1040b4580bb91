//! A grid of rx-usecs and rx-frames, and what is best in it.

use alloc::string::String;
use alloc::vec::Vec;

use base::time::Duration;
use nic::lanes::LaneError;
use nic::moderation::{Moderation, TimerKind};

use crate::arrival::ArrivedPacket;
use crate::group::{By, Groups};
use crate::run::{RunSettings, SettingRun};

/// Microseconds that are tried, 0 among them.
const USECS: [u32; 14] = [0, 2, 5, 8, 12, 20, 30, 50, 75, 100, 125, 150, 200, 300];
/// Frames that are tried beside each; 0 is no limit.
const FRAMES: [u32; 6] = [0, 4, 8, 16, 32, 64];

/// One setting of a grid.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GridPoint {
    /// The setting as text.
    pub setting: String,
    /// Microseconds of its timer.
    pub rx_usecs: u32,
    /// Its frames; 0 is no limit.
    pub rx_frames: u32,
    /// Interrupts per second.
    pub interrupts_per_s: f64,
    /// Median hold, microseconds.
    pub hold_p50_us: f64,
    /// The hold that 99 of 100 packets do not exceed, microseconds.
    pub hold_p99_us: f64,
    /// Packets that found the ring full.
    pub missed: u64,
    /// No other setting has both fewer interrupts and shorter holds, at the 99th percentile, and
    /// none before it has the same.
    pub on_front: bool,
}

/// All settings of a grid.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Grid {
    /// Arrivals that went through it.
    pub packets: u64,
    /// Its settings, by rx-usecs and then rx-frames.
    pub points: Vec<GridPoint>,
}

impl Grid {
    /// Sends `arrivals` through each setting of a timer that takes microseconds.
    ///
    /// # Errors
    /// If there are no queues for lanes.
    pub fn search(
        timer: TimerKind,
        arrivals: &[ArrivedPacket],
        settings: &RunSettings,
    ) -> Result<Self, LaneError> {
        let mut points = Vec::new();
        for (rx_usecs, rx_frames) in USECS.into_iter().flat_map(|us| FRAMES.map(|it| (us, it))) {
            // Nothing waits at 0 us, whatever the frames.
            if rx_usecs == 0 && rx_frames > 0 {
                continue;
            }
            let usual = Moderation { timer, ..Moderation::DISABLED };
            let moderation = Moderation { rx_usecs, rx_frames, ..usual };
            points.push(point(moderation, arrivals, settings)?);
        }
        let places: Vec<_> =
            points.iter().map(|it| (it.interrupts_per_s, it.hold_p99_us)).collect();
        for (point, on_front) in points.iter_mut().zip(front(&places)) {
            point.on_front = on_front && point.missed == 0;
        }
        Ok(Self { packets: arrivals.len() as u64, points })
    }
}

fn point(
    moderation: Moderation,
    arrivals: &[ArrivedPacket],
    settings: &RunSettings,
) -> Result<GridPoint, LaneError> {
    let outcome = run(moderation, arrivals, settings)?;
    let hold = outcome.hold_us.unwrap_or_default();
    Ok(GridPoint {
        setting: outcome.setting,
        rx_usecs: moderation.rx_usecs,
        rx_frames: moderation.rx_frames,
        interrupts_per_s: outcome.interrupts_per_s,
        hold_p50_us: hold.p50,
        hold_p99_us: hold.p99,
        missed: outcome.missed,
        on_front: false,
    })
}

/// What a setting does to arrivals that are at hand.
pub(crate) fn run(
    moderation: Moderation,
    arrivals: &[ArrivedPacket],
    settings: &RunSettings,
) -> Result<crate::SettingOutcome, LaneError> {
    let mut run = SettingRun::new(moderation, settings)?;
    arrivals.iter().for_each(|arrival| run.arrive(arrival, 0));
    Ok(run.finish(lasted(arrivals), &Groups::new(By::Port, nic::marker::Rules::NONE)))
}

/// From the first arrival to the last.
pub(crate) fn lasted(arrivals: &[ArrivedPacket]) -> Duration {
    let ends = arrivals.first().zip(arrivals.last());
    ends.map_or(Duration::ZERO, |(first, last)| last.at.since(first.at))
}

/// Of places by two costs: whether no other one is as low in both and lower in one, and none
/// before it is the same.
#[must_use]
pub fn front(places: &[(f64, f64)]) -> Vec<bool> {
    let beaten = |at: usize, (x, y): (f64, f64)| {
        let mut others = places.iter().enumerate();
        others.any(|(other, (a, b))| *a <= x && *b <= y && (*a < x || *b < y || other < at))
    };
    places.iter().enumerate().map(|(at, place)| !beaten(at, *place)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_is_what_nothing_beats() {
        let places = [(1.0, 9.0), (2.0, 5.0), (2.0, 6.0), (3.0, 5.0), (9.0, 0.0), (1.0, 9.0)];
        assert_eq!(front(&places), [true, true, false, false, true, false]);
    }
}

//! What to type after a grid: the best of it on a device, tried, and measured.

use std::fmt::Write as _;

use predict::{Grid, GridPoint};

/// Settings that are handed on.
const TRIALS: usize = 3;
/// Below this, microseconds of hold are as good as none beside what else delays.
const NO_HOLD_US: f64 = 5.0;

/// How to have the best of a grid on a device, try it, and measure the best few.
pub(crate) fn lines(device: Option<&str>, grid: &Grid) -> Option<String> {
    let device = device.unwrap_or("DEV");
    let best = best(&grid.points);
    let first = best.first()?;
    let setting = words(first);
    let mut lines = format!(
        "to have {}: ethtool -C {device} adaptive-rx off {setting}\n\
         to try it, which is undone unless you keep it: earmark apply {device} adaptive-rx off {setting}\n\
         to measure the best: earmark tune {device} --peer HOST --goal 'p99 < 200us'",
        first.setting
    );
    for point in best {
        let _ = write!(lines, " --first '{}'", words(point));
    }
    Some(lines)
}

/// A setting as `ethtool -C` takes it.
fn words(point: &GridPoint) -> String {
    let mut words = format!("rx-usecs {}", point.rx_usecs);
    if point.rx_frames > 0 {
        let _ = write!(words, " rx-frames {}", point.rx_frames);
    }
    words
}

/// Those of the front at which both costs are low: each cost is compared with the lowest of it, as
/// a ratio, and the product counts.
fn best(points: &[GridPoint]) -> Vec<&GridPoint> {
    let cost = |it: &&GridPoint| it.interrupts_per_s * (it.hold_p99_us + NO_HOLD_US);
    let mut front: Vec<&GridPoint> = points.iter().filter(|it| it.on_front).collect();
    front.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
    // Settings of the same effect are one trial.
    let effect = |it: &GridPoint| (it.interrupts_per_s, it.hold_p99_us);
    let mut best: Vec<&GridPoint> = Vec::new();
    for point in front {
        if best.len() < TRIALS && best.iter().all(|known| effect(known) != effect(point)) {
            best.push(point);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_three_of_the_front_are_handed_on() {
        let point = |rx_usecs, rx_frames, interrupts_per_s, hold_p99_us, on_front| GridPoint {
            setting: String::new(),
            rx_usecs,
            rx_frames,
            interrupts_per_s,
            hold_p50_us: 0.0,
            hold_p99_us,
            missed: 0,
            on_front,
        };
        let points = [
            point(0, 0, 90_000.0, 0.0, true),
            point(20, 0, 10_000.0, 20.0, true),
            point(20, 64, 10_000.0, 20.0, true),
            point(50, 8, 8_000.0, 50.0, true),
            point(60, 8, 1_000.0, 5.0, false),
        ];
        let named: Vec<_> = best(&points).iter().map(|it| (it.rx_usecs, it.rx_frames)).collect();
        assert_eq!(named, [(20, 0), (50, 8), (0, 0)]);
    }
}

//! What `tune` is to try first: the best of the grid.

use std::fmt::Write as _;

use predict::{GridPoint, Prediction};

/// Settings that are handed on.
const TRIALS: usize = 3;
/// Below this, microseconds of hold are as good as none beside what else delays.
const NO_HOLD_US: f64 = 5.0;

/// The command that tries the best settings on the device, if there are any.
pub(super) fn line(device: &str, prediction: &Prediction) -> Option<String> {
    let grid = prediction.grid.as_ref()?;
    let best = best(&grid.points);
    if best.is_empty() {
        return None;
    }
    let mut line = format!(
        "to measure the best three: earmark tune {device} --peer HOST --goal 'p99 < 200us'"
    );
    for point in best {
        let _ = write!(line, " --first 'rx-usecs {}", point.rx_usecs);
        if point.rx_frames > 0 {
            let _ = write!(line, " rx-frames {}", point.rx_frames);
        }
        line.push('\'');
    }
    Some(line)
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

//! Labels that do not cover each other: each takes the first free place near its point.

/// Between a point and its label, pixels; the first distance is the usual one.
const DISTANCES: [f64; 4] = [14.0, 40.0, 90.0, 160.0];

/// By how much places lie below or above each other, pixels, and how many there are.
const STEP: f64 = 9.0;
const STEPS: i32 = 40;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn around((x, y): (f64, f64), half: f64) -> Self {
        Self { x: x - half, y: y - half, width: 2.0 * half, height: 2.0 * half }
    }

    fn meets(&self, other: &Self) -> bool {
        self.x < other.x + other.width
            && other.x < self.x + self.width
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }

    fn is_within(&self, frame: &Self) -> bool {
        self.x >= frame.x
            && self.y >= frame.y
            && self.x + self.width <= frame.x + frame.width
            && self.y + self.height <= frame.y + frame.height
    }
}

/// A place for a label of this size to the right or to the left of `at`, or above or below it where
/// `frame` is too narrow, that covers none of `taken`, which it then belongs to.
pub(super) fn place(
    at: (f64, f64),
    (width, height): (f64, f64),
    taken: &mut Vec<Area>,
    frame: &Area,
) -> Area {
    let up_and_down = (0..STEPS).map(|step| {
        let side = if step % 2 == 0 { 1.0 } else { -1.0 };
        at.1 + side * STEP * f64::from((step + 1) / 2) - height / 2.0
    });
    let beside = DISTANCES.into_iter().flat_map(|distance| {
        up_and_down.clone().flat_map(move |y| {
            [at.0 + distance, at.0 - distance - width].map(|x| Area { x, y, width, height })
        })
    });
    let within = (at.0 - width / 2.0).min(frame.x + frame.width - width).max(frame.x);
    let across = up_and_down.clone().map(|y| Area { x: within, y, width, height });
    let is_free = |area: &Area| area.is_within(frame) && !taken.iter().any(|it| it.meets(area));
    let none = Area { x: within, y: at.1, width, height };
    let place = beside.chain(across).find(is_free).unwrap_or(none);
    taken.push(place);
    place
}

/// A cautious estimate of a text's width: fonts differ, and a label too wide is only moved away.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_near_points_avoid_each_other_and_the_edge() {
        let frame = Area { x: 0.0, y: 0.0, width: 400.0, height: 400.0 };
        let mut taken = Vec::new();
        let near = [(100.0, 100.0), (104.0, 103.0), (98.0, 104.0), (390.0, 2.0)];
        for (count, at) in near.into_iter().cycle().take(20).enumerate() {
            let area = place(at, (60.0, 30.0), &mut taken, &frame);
            assert!(area.is_within(&frame), "{area:?}");
            assert!(!taken[..count].iter().any(|other| other.meets(&area)), "{taken:?}");
        }
    }

    #[test]
    fn a_label_that_is_too_wide_for_either_side_is_above_or_below_its_point() {
        let frame = Area { x: 0.0, y: 0.0, width: 200.0, height: 200.0 };
        let at = (120.0, 20.0);
        let mut taken = vec![Area::around(at, 11.0)];
        let area = place(at, (150.0, 30.0), &mut taken, &frame);
        assert!(area.is_within(&frame) && area.y > at.1, "{area:?}");
    }
}

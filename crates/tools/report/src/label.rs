//! Labels that do not cover each other: a greedy choice among candidate places.

/// An axis-aligned box, pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width.
    pub width: f64,
    /// Height.
    pub height: f64,
}

impl Area {
    /// A square around a point.
    pub(super) fn around((x, y): (f64, f64), half: f64) -> Self {
        Self { x: x - half, y: y - half, width: 2.0 * half, height: 2.0 * half }
    }

    /// How much of the other box this one covers, square pixels.
    fn overlap(&self, other: &Self) -> f64 {
        let width = (self.x + self.width).min(other.x + other.width) - self.x.max(other.x);
        let height = (self.y + self.height).min(other.y + other.height) - self.y.max(other.y);
        width.max(0.0) * height.max(0.0)
    }

    /// Whether the boxes have a part in common.
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.overlap(other) > 0.0
    }

    /// How much of this box is outside of `frame`, square pixels.
    fn outside(&self, frame: &Self) -> f64 {
        self.width * self.height - self.overlap(frame)
    }
}

/// A place a label could go to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// The box the label would fill.
    pub area: Area,
    /// How unwelcome the place is by itself; as bad as covering a third as many
    /// square pixels of ink.
    pub cost: f64,
}

/// Chooses one candidate for each label, in order, and returns their indices.
///
/// Leaving the frame is worst, then covering an earlier label, then covering other ink. A label
/// without candidates gets index 0, which its caller never looks up.
pub(super) fn place(labels: &[Vec<Candidate>], ink: &[Area], frame: &Area) -> Vec<usize> {
    let mut placed: Vec<Area> = Vec::new();
    let mut chosen = Vec::new();
    for candidates in labels {
        let cost = |candidate: &Candidate| {
            let labels: f64 = placed.iter().map(|area| area.overlap(&candidate.area)).sum();
            let drawn: f64 = ink.iter().map(|area| area.overlap(&candidate.area)).sum();
            candidate.cost + 100.0 * candidate.area.outside(frame) + 30.0 * labels + 3.0 * drawn
        };
        let costs = candidates.iter().map(cost).enumerate();
        let best = costs.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |(index, _)| index);
        placed.extend(candidates.get(best).map(|candidate| candidate.area));
        chosen.push(best);
    }
    chosen
}

/// A cautious estimate of a text's width: fonts differ, and a label too wide is only moved away.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.6
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Area = Area { x: 0.0, y: 0.0, width: 100.0, height: 100.0 };

    fn candidates(places: &[(f64, f64)]) -> Vec<Candidate> {
        let area = |&(x, y)| Area { x, y, width: 20.0, height: 10.0 };
        places.iter().map(area).map(|area| Candidate { area, cost: 0.0 }).collect()
    }

    #[test]
    fn labels_avoid_each_other() {
        let same = candidates(&[(10.0, 10.0), (40.0, 10.0), (70.0, 10.0)]);
        assert_eq!(place(&[same.clone(), same.clone(), same], &[], &FRAME), [0, 1, 2]);
    }

    #[test]
    fn labels_avoid_ink_and_the_edge() {
        let places = candidates(&[(95.0, 10.0), (10.0, 10.0), (50.0, 50.0)]);
        assert_eq!(place(&[places], &[Area::around((15.0, 15.0), 5.0)], &FRAME), [2]);
    }

    #[test]
    fn a_crowd_gets_the_least_bad_place() {
        let one = candidates(&[(10.0, 10.0)]);
        assert_eq!(place(&[one.clone(), one, Vec::new()], &[], &FRAME), [0, 0, 0]);
    }
}

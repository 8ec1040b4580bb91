//! A stated value and a measured one, on one axis, a row for each pair.

use super::label::Area;
use super::scale::{Scale, range, short};
use super::svg::{Anchor, Canvas, nothing, x_axis};

const WIDTH: f64 = 960.0;
/// Names stand to the left of it.
const LEFT: f64 = 340.0;
const RIGHT: f64 = 800.0;
const ROW: f64 = 26.0;
const HEAD: f64 = 14.0;
/// Below them: the axis and its title.
const FOOT: f64 = 56.0;

/// Pairs of values; those of one unit share an axis.
#[derive(Clone, Debug, Default)]
pub struct PairChart {
    /// In the order of their rows.
    pub pairs: Vec<Pair>,
}

/// A number that a document states, and ours.
#[derive(Clone, Debug, Default)]
pub struct Pair {
    /// What it is.
    pub name: String,
    /// The unit of both.
    pub unit: String,
    /// The smallest and the largest stated value; the same twice if one is stated.
    pub stated: (f64, f64),
    /// What was measured.
    pub ours: f64,
    /// Whether ours is within the tolerance.
    pub agrees: bool,
}

impl PairChart {
    /// The picture, for a page with the report's style sheet.
    pub fn svg(&self) -> String {
        let mut units: Vec<&str> = Vec::new();
        for pair in self.pairs.iter().filter(|pair| pair.is_drawable()) {
            if !units.contains(&pair.unit.as_str()) {
                units.push(&pair.unit);
            }
        }
        if units.is_empty() {
            return nothing("No values to compare.");
        }
        let rows = |unit: &str| -> Vec<&Pair> {
            let pairs = self.pairs.iter().filter(|pair| pair.is_drawable());
            pairs.filter(|pair| pair.unit == unit).collect()
        };
        let height = |unit: &&str| HEAD + ROW * rows(unit).len() as f64 + FOOT;
        let mut canvas = Canvas::new(WIDTH, units.iter().map(height).sum());
        let mut y = 0.0;
        for unit in &units {
            let pairs = rows(unit);
            let height = ROW * pairs.len() as f64;
            let area = Area { x: LEFT, y: y + HEAD, width: RIGHT - LEFT, height };
            draw(&mut canvas, &area, &pairs, unit);
            y += HEAD + height + FOOT;
        }
        canvas.finish("chart", &self.summary())
    }

    fn summary(&self) -> String {
        let one = |pair: &Pair| format!("{}: {}", pair.name, pair.values());
        self.pairs.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

impl Pair {
    fn is_drawable(&self) -> bool {
        [self.stated.0, self.stated.1, self.ours].into_iter().all(f64::is_finite)
    }

    fn values(&self) -> String {
        let (low, high) = self.stated;
        let stated =
            if low < high { format!("{}..{}", short(low), short(high)) } else { short(low) };
        format!("stated {stated}, ours {}", short(self.ours))
    }
}

fn draw(canvas: &mut Canvas, area: &Area, pairs: &[&Pair], unit: &str) {
    let values = || pairs.iter().flat_map(|pair| [pair.stated.0, pair.stated.1, pair.ours]);
    let Some((low, high)) = range(values()) else { return };
    let across = (area.x, area.x + area.width);
    // Values that are decades apart need a logarithm; others begin at zero.
    let is_wide = low > 0.0 && high > 20.0 * low;
    let scale = if is_wide {
        Scale::log((low, high * 1.1), across)
    } else {
        Scale::linear((low.min(0.0), high.max(0.0) * 1.05), across)
    };
    let title = format!("{unit}{}", if is_wide { ", logarithmic" } else { "" });
    x_axis(canvas, area, &scale, &title);
    for (index, pair) in pairs.iter().enumerate() {
        let y = area.y + ROW * (index as f64 + 0.5);
        let (low, high, ours) =
            (scale.at(pair.stated.0), scale.at(pair.stated.1), scale.at(pair.ours));
        let class = if pair.agrees { "series s5" } else { "series s0" };
        canvas.text("label-plain", Anchor::End, (area.x - 14.0, y + 4.0), &pair.name);
        canvas.group(class, &format!("{}: {}", pair.name, pair.values()), |canvas| {
            canvas.line("leader", (ours, y), (ours.clamp(low, high), y));
            let bar = Area { x: low - 2.0, y: y - 8.0, width: high - low + 4.0, height: 16.0 };
            canvas.bar("stated", bar, 1.0, "");
            canvas.dot("dot", (ours, y), 6.0);
        });
        canvas.text("label-plain", Anchor::Start, (RIGHT + 12.0, y + 4.0), &pair.values());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(unit: &str, stated: f64, ours: f64) -> Pair {
        Pair {
            name: "a & b".into(),
            unit: unit.into(),
            stated: (stated, stated),
            ours,
            agrees: true,
        }
    }

    #[test]
    fn every_pair_has_a_row_and_every_unit_an_axis() {
        let pairs = vec![pair("us", 125.0, 126.0), pair("/s", 8e3, 7e3), pair("us", 250.0, 250.0)];
        let svg = PairChart { pairs }.svg();
        assert_eq!(svg.matches("class=\"dot\"").count(), 3, "{svg}");
        assert_eq!(svg.matches("class=\"stated\"").count(), 3);
        assert_eq!((svg.matches(">us</text>").count(), svg.matches(">/s</text>").count()), (1, 1));
        assert!(svg.contains("a &amp; b") && svg.contains("stated 8000, ours 7000"));
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let none = PairChart { pairs: vec![pair("us", f64::NAN, 1.0)] }.svg();
        assert!(none.contains("No values to compare"));
        assert!(PairChart::default().svg().contains("No values"));
        let zero = PairChart { pairs: vec![pair("us", 0.0, 0.0), pair("us", -2.0, 3.0)] }.svg();
        assert!(!zero.contains("NaN") && zero.matches("class=\"dot\"").count() == 2);
    }
}

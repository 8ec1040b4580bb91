//! Curves over a common axis of time, one panel above the other: a picture that stands alone.

use super::label::Area;
use super::scale::{Scale, range, short};
use super::svg::{Anchor, Canvas, x_axis};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 940.0;
/// Above a panel: its title, and what its colours mean.
const HEAD: f64 = 34.0;
const HEIGHT: f64 = 150.0;
const GAP: f64 = 22.0;
/// Below the last one: the axis and its title.
const FOOT: f64 = 52.0;

/// Every other curve is broad and pale, so that one which lies on it does not hide it. A page may
/// have other pictures beside it.
const STYLE: &str = "><style>
.panels { font: 13px system-ui, sans-serif; background: #fff; } .panels text { fill: #1b2330; }
.panels .tick, .panels .axis-title { fill: #596475; font-size: 12px; }
.panels .title { font-weight: 650; } .panels .grid { stroke: #e4e2dc; }
.panels .axis, .panels .change { stroke: #a9afb9; } .panels .change { stroke-dasharray: 5 4; }
.panels path { fill: none; stroke: currentColor; stroke-width: 1.5; }
.panels path.c0, .panels path.c2 { stroke-width: 5; opacity: .4; }
.panels tspan { fill: currentColor; } .panels .c0 { color: #a0418f; }
.panels .c1 { color: #05807f; } .panels .c2 { color: #c8371b; } .panels .c3 { color: #1257c9; }
</style>";

/// Classes of curves; there are no more in one panel.
const COLOURS: [&str; 4] = ["c0", "c1", "c2", "c3"];

/// Panels above each other.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// What a screen reader says instead of it.
    pub summary: String,
    /// The title of the common axis.
    pub x_title: String,
    /// Whether that axis is logarithmic.
    pub has_logarithmic_x: bool,
    /// Where on it something was changed, and what.
    pub change: Option<(f64, String)>,
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

/// Curves over one axis.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// What they show, with its unit.
    pub title: String,
    /// At most four.
    pub curves: Vec<Curve>,
}

/// A named line in a picture.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// What the legend says.
    pub name: String,
    /// Places on both axes.
    pub points: Vec<(f64, f64)>,
}

impl Picture {
    /// The picture as an SVG file.
    pub fn svg(&self) -> String {
        let inline = self.inline();
        inline.replacen("<svg ", "<svg xmlns=\"http://www.w3.org/2000/svg\" ", 1) + "\n"
    }

    /// The same as a part of a page.
    pub(crate) fn inline(&self) -> String {
        let points = self.panels.iter().flat_map(|panel| &panel.curves).flat_map(|c| &c.points);
        let span = range(points.map(|(x, _)| *x)).unwrap_or((0.0, 1.0));
        let scale = if self.has_logarithmic_x { Scale::log } else { Scale::linear };
        let x = scale(span, (LEFT, RIGHT));
        let count = self.panels.len() as f64;
        let mut canvas = Canvas::new(WIDTH, count * (HEAD + HEIGHT + GAP) - GAP + FOOT);
        for (number, panel) in self.panels.iter().enumerate() {
            let top = number as f64 * (HEAD + HEIGHT + GAP) + HEAD;
            let area = Area { x: LEFT, y: top, width: RIGHT - LEFT, height: HEIGHT };
            if number + 1 == self.panels.len() {
                x_axis(&mut canvas, &area, &x, &self.x_title);
            }
            panel.draw(&mut canvas, &area, &x);
            self.draw_change(&mut canvas, &area, &x, number == 0);
        }
        canvas.finish("chart panels", &self.summary).replacen('>', STYLE, 1)
    }

    fn draw_change(&self, canvas: &mut Canvas, area: &Area, x: &Scale, named: bool) {
        let Some((at, what)) = &self.change else { return };
        let at = x.at(*at);
        canvas.line("change", (at, area.y), (at, area.y + area.height));
        if named {
            canvas.text("tick", Anchor::Start, (at + 6.0, area.y + 14.0), what);
        }
    }
}

impl Panel {
    fn draw(&self, canvas: &mut Canvas, area: &Area, x: &Scale) {
        let bottom = area.y + area.height;
        let values = self.curves.iter().flat_map(|curve| &curve.points).map(|(_, y)| *y);
        // Zero belongs to the axis: without it a change looks larger than it is.
        let (low, high) = range(values.chain([0.0])).unwrap_or((0.0, 1.0));
        let y = Scale::linear((low, high * 1.05), (bottom, area.y));
        for tick in y.ticks(5) {
            canvas.line("grid", (area.x, y.at(tick)), (area.x + area.width, y.at(tick)));
            canvas.text("tick", Anchor::End, (area.x - 8.0, y.at(tick) + 4.0), &short(tick));
        }
        let coloured = || self.curves.iter().zip(COLOURS);
        for (curve, colour) in coloured() {
            let at = |(at, value): &(f64, f64)| (x.at(*at), y.at(*value));
            canvas.polyline(colour, &curve.points.iter().map(at).collect::<Vec<_>>());
        }
        let names: Vec<_> =
            coloured().map(|(curve, colour)| (colour, format!("\u{2003}{}", curve.name))).collect();
        let mut runs = vec![("", self.title.as_str())];
        runs.extend(names.iter().map(|(colour, name)| (*colour, name.as_str())));
        canvas.rich_text("title", Anchor::Start, (area.x, area.y - 12.0), &runs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_has_its_colour_and_its_name() {
        let curve = |name: &str| Curve { name: name.into(), points: vec![(0.0, 1.0), (1.0, 2.0)] };
        let panel = |title: &str| Panel {
            title: title.into(),
            curves: vec![curve("up & up"), curve("other")],
        };
        let svg = Picture {
            summary: "two panels".into(),
            x_title: "seconds".into(),
            has_logarithmic_x: false,
            change: Some((0.5, "here".into())),
            panels: vec![panel("first"), panel("second")],
        }
        .svg();
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
        assert_eq!(svg.matches("<path class=\"c0\"").count(), 2);
        assert_eq!(svg.matches("up &amp; up</tspan>").count(), 2);
        assert_eq!(
            (svg.matches("class=\"change\"").count(), svg.matches(">here<").count()),
            (2, 1)
        );
    }
}

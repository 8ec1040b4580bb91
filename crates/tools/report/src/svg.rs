//! SVG text: shapes, escaping, and the frame around a plot.

use std::fmt::{Display, Write};

use super::label::{Area, text_width};
use super::scale::{Scale, short};

/// Which side of its position a text extends to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Collects the shapes of one picture. Colours and strokes come from the page's CSS classes.
#[derive(Debug)]
pub(super) struct Canvas {
    width: f64,
    height: f64,
    body: String,
}

impl Canvas {
    /// An empty picture, sizes in CSS pixels at full width.
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// Adds markup; writing to a string cannot fail.
    fn add(&mut self, markup: std::fmt::Arguments<'_>) {
        let _ = self.body.write_fmt(markup);
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let (x1, y1, x2, y2) = (px(x1), px(y1), px(x2), px(y2));
        self.add(format_args!(
            r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#
        ));
    }

    pub(super) fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let (x, y, radius) = (px(x), px(y), px(radius));
        self.add(format_args!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="{radius}"/>"#));
    }

    /// A thin line to a label that had to go away from its point.
    pub(super) fn leader(&mut self, at: (f64, f64), label: &Area) {
        let x = at.0.clamp(label.x, label.x + label.width);
        let y = at.1.clamp(label.y + 4.0, label.y + label.height - 4.0);
        if (x - at.0).hypot(y - at.1) > 22.0 {
            self.line("leader", at, (x, y));
        }
    }

    pub(super) fn path(&mut self, class: &str, data: &str) {
        self.add(format_args!(r#"<path class="{class}" d="{data}"/>"#));
    }

    pub(super) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut data = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(data, "{}{} {}", if index == 0 { "M" } else { "L" }, px(*x), px(*y));
        }
        self.path(class, &data);
    }

    /// Text, escaped here.
    pub(super) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        self.rich_text(class, anchor, (x, y), &[("", text)]);
    }

    /// Text in several styles, each run with its own class.
    pub(super) fn rich_text(
        &mut self,
        class: &str,
        anchor: Anchor,
        (x, y): (f64, f64),
        runs: &[(&str, &str)],
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (x, y) = (px(x), px(y));
        self.add(format_args!(r#"<text class="{class}" text-anchor="{anchor}" x="{x}" y="{y}">"#));
        for (class, run) in runs {
            let run = escape(run);
            if class.is_empty() {
                self.body.push_str(&run);
            } else {
                self.add(format_args!(r#"<tspan class="{class}">{run}</tspan>"#));
            }
        }
        self.body.push_str("</text>");
    }

    /// Text that reads upwards, for the title of a vertical axis.
    pub(super) fn upward_text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let (x, y, text) = (px(x), px(y), escape(text));
        let turn = format!("translate({x} {y}) rotate(-90)");
        self.add(format_args!(
            r#"<text class="{class}" text-anchor="middle" transform="{turn}">{text}</text>"#
        ));
    }

    /// Draws `shapes` as one group with a tooltip.
    pub(super) fn group(&mut self, class: &str, tooltip: &str, shapes: impl FnOnce(&mut Self)) {
        self.add(format_args!(r#"<g class="{class}">"#));
        self.tooltip(tooltip);
        shapes(self);
        self.body.push_str("</g>");
    }

    fn tooltip(&mut self, text: &str) {
        if !text.is_empty() {
            self.add(format_args!("<title>{}</title>", escape(text)));
        }
    }

    /// The whole element; `summary` is what a screen reader says instead of the picture.
    pub(super) fn finish(self, class: &str, summary: &str) -> String {
        let (width, height) = (px(self.width), px(self.height));
        let (size, label) = (format!("0 0 {width} {height}"), escape(summary));
        let body = self.body;
        format!(
            r#"<svg class="{class}" viewBox="{size}" role="img" aria-label="{label}">{body}</svg>"#
        )
    }
}

/// The sentence that stands where a chart has nothing to draw.
pub(super) fn nothing(what: &str) -> String {
    let mut canvas = Canvas::new(960.0, 90.0);
    canvas.text("axis-title", Anchor::Middle, (480.0, 50.0), what);
    canvas.finish("chart", what)
}

/// Letters of a value on an axis, and the least distance of two such, pixels.
const TICK: f64 = 12.0;

/// Vertical grid lines with their values below the plot, and the axis title, which has the unit.
pub(super) fn x_axis(canvas: &mut Canvas, plot: &Area, scale: &Scale, title: &str) {
    let bottom = plot.y + plot.height;
    let mut free = f64::NEG_INFINITY;
    for tick in scale.ticks(10) {
        let (x, text) = (scale.at(tick), short(tick));
        canvas.line("grid", (x, plot.y), (x, bottom));
        let half = text_width(&text, TICK) / 2.0;
        if x - half >= free {
            canvas.text("tick", Anchor::Middle, (x, bottom + 18.0), &text);
            free = x + half + TICK / 2.0;
        }
    }
    canvas.line("axis", (plot.x, bottom), (plot.x + plot.width, bottom));
    let middle = plot.x + plot.width / 2.0;
    canvas.text("axis-title", Anchor::Middle, (middle, bottom + 40.0), title);
}

/// Escapes text for element content and for quoted attributes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML has no place for most control characters, not even escaped.
            control if control.is_control() => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

/// A coordinate with a tenth of a pixel, which is all that a page can show.
fn px(value: f64) -> impl Display {
    let tenths = (value * 10.0).round() / 10.0;
    if tenths.is_finite() { tenths + 0.0 } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let hostile = "<script>\"a\" & 'b'</script>\u{7}";
        let mut canvas = Canvas::new(10.0, 10.0);
        canvas.text("t", Anchor::End, (1.0, 2.0), hostile);
        canvas.upward_text("t", (1.0, 2.0), hostile);
        canvas.group("g", hostile, |canvas| canvas.dot("d", (1.0, 1.0), 2.0));
        let svg = canvas.finish("chart", hostile);
        assert!(!svg.contains("<script") && !svg.contains("'b'") && !svg.contains('\u{7}'));
        assert_eq!(svg.matches("&lt;script&gt;&quot;a&quot; &amp; &#39;b&#39;").count(), 4);
    }

    #[test]
    fn coordinates_are_short_and_finite() {
        let shown = [1.0, 2.26, -0.01, f64::NAN].map(|value| px(value).to_string());
        assert_eq!(shown, ["1", "2.3", "0", "0"]);
    }
}

//! A timeline: what happened in rows, one below the other, around one moment.

use super::label::Area;
use super::scale::Scale;
use super::svg::{Anchor, Canvas, x_axis};

/// What happened in a time.
#[derive(Debug, Clone)]
pub struct TimelineSpan {
    /// When it began and ended, microseconds.
    pub us: (f64, f64),
    /// The class of the style sheet that colours it.
    pub class: &'static str,
    /// Its place in the row, from the top: what overlaps has others.
    pub level: usize,
    /// What it is, as a tooltip.
    pub text: String,
}

/// What happened at a moment.
#[derive(Debug, Clone)]
pub struct TimelineMoment {
    /// Microseconds since what the timeline counts from.
    pub us: f64,
    /// The class of the style sheet that colours it.
    pub class: &'static str,
    /// What it is, as a tooltip.
    pub text: String,
}

/// One row of a timeline.
#[derive(Debug, Clone, Default)]
pub struct TimelineRow {
    /// Its name, at the left.
    pub name: String,
    /// Levels of its spans.
    pub levels: usize,
    /// Parts that have a length.
    pub spans: Vec<TimelineSpan>,
    /// Moments without one.
    pub moments: Vec<TimelineMoment>,
}

/// What goes from one row to another.
#[derive(Debug, Clone)]
pub struct TimelineFlight {
    /// The rows that it leaves and reaches, by number.
    pub rows: (usize, usize),
    /// Its beginning and its end, in microseconds.
    pub us: (f64, f64),
    /// The class of the style sheet that colours it.
    pub class: &'static str,
    /// What it is, as a tooltip.
    pub text: String,
}

/// Rows of what happened in a time, and what went between them.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// What a screen reader says instead of it.
    pub summary: String,
    /// Width of the picture, in pixels.
    pub width: f64,
    /// From when until when, microseconds.
    pub us: (f64, f64),
    /// The moment that is looked at; the axis counts from there.
    pub cursor_us: f64,
    /// The rows, from the top.
    pub rows: Vec<TimelineRow>,
    /// Connections of two rows.
    pub flights: Vec<TimelineFlight>,
}

/// Pixels of a level, of the space between two rows, and of the names at the left.
const LEVEL: f64 = 9.0;
const BETWEEN: f64 = 26.0;
const NAMES: f64 = 92.0;

impl Timeline {
    /// Whether something of that time is to be seen. What is not is left out by who makes rows and
    /// flights: a run has thousands of them, and texts for all would take longer than the picture.
    pub fn shows(&self, (from, to): (f64, f64)) -> bool {
        to >= self.us.0 && from <= self.us.1
    }

    /// The picture, for a page that has the style sheet.
    pub fn inline(&self) -> String {
        let mut tops = Vec::new();
        let mut bottom = 22.0;
        for row in &self.rows {
            tops.push(bottom);
            bottom += row.levels.max(1) as f64 * LEVEL + BETWEEN;
        }
        let width = self.width.clamp(280.0, 4_000.0);
        let plot = Area { x: NAMES, y: 6.0, width: width - NAMES - 8.0, height: bottom - 16.0 };
        let mut canvas = Canvas::new(width, plot.y + plot.height + 52.0);
        let (from, to) = (self.us.0 - self.cursor_us, self.us.1 - self.cursor_us);
        let scale = Scale::linear((from, to), (plot.x, plot.x + plot.width));
        x_axis(&mut canvas, &plot, &scale, "us from the line");
        let x = |us: f64| scale.at((us - self.cursor_us).clamp(from, to));
        for it in &self.flights {
            let (leaves, reaches) = it.rows;
            let ends = [(leaves, it.us.0), (reaches, it.us.1)];
            let [a, b] = ends.map(|(row, us)| (x(us), tops[row] + LEVEL / 2.0));
            canvas.group(&format!("flight {}", it.class), &it.text, |canvas| {
                canvas.line("", a, b);
                canvas.dot("", b, 3.0);
            });
        }
        for (row, top) in self.rows.iter().zip(tops) {
            draw(&mut canvas, row, top, x);
        }
        let at = x(self.cursor_us);
        canvas.line("cursor", (at, plot.y), (at, plot.y + plot.height));
        canvas.finish("chart timeline", &self.summary)
    }
}

/// Draws a row below `top`.
fn draw(canvas: &mut Canvas, row: &TimelineRow, top: f64, x: impl Fn(f64) -> f64) {
    canvas.text("tick", Anchor::End, (NAMES - 8.0, top + LEVEL), &row.name);
    for span in &row.spans {
        let y = top + (span.level as f64 + 0.5) * LEVEL;
        let from = x(span.us.0);
        let to = x(span.us.1).max(from + 0.6);
        canvas.group(&format!("span {}", span.class), &span.text, |canvas| {
            canvas.line("", (from, y), (to, y));
        });
    }
    for moment in &row.moments {
        let (at, bottom) = (x(moment.us), top + row.levels.max(1) as f64 * LEVEL);
        canvas.group(&format!("moment {}", moment.class), &moment.text, |canvas| {
            canvas.line("", (at, top - 5.0), (at, bottom + 3.0));
            canvas.dot("", (at, top - 6.0), 3.5);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_into_the_time_is_shown_and_texts_are_escaped() {
        let mut timeline =
            Timeline { width: 600.0, us: (10.0, 20.0), cursor_us: 12.0, ..Timeline::default() };
        let shown = [(5.0, 15.0), (10.5, 10.5), (20.0, 40.0), (0.0, 5.0), (21.0, 21.0)];
        assert_eq!(shown.map(|us| timeline.shows(us)), [true, true, true, false, false]);
        let text = "a <hold>".to_owned();
        let span = TimelineSpan { us: (5.0, 15.0), class: "hold", level: 1, text };
        let moment = TimelineMoment { us: 10.5, class: "irq", text: String::new() };
        let (spans, moments) = (vec![span], vec![moment]);
        timeline.rows.push(TimelineRow { name: "b0".into(), levels: 2, spans, moments });
        timeline.rows.push(TimelineRow::default());
        let us = (8.0, 11.0);
        timeline.flights.push(TimelineFlight { rows: (0, 1), us, class: "", text: String::new() });
        let drawn = timeline.inline();
        let count = |text: &str| drawn.matches(text).count();
        assert_eq!((count("span hold"), count("moment irq"), count("flight ")), (1, 1, 1));
        assert_eq!((count("a &lt;hold&gt;"), count(">b0<"), count("NaN")), (1, 1, 0));
    }
}

//! The trade-off: what a setting costs the host, in interrupts or in load, against what it costs in
//! latency.

use super::label::{Area, place, text_width};
use super::scale::{Scale, decade, range, short, time};
use super::svg::{Anchor, Canvas, nothing, x_axis};
use super::{Palette, TradeoffChart, TradeoffPoint};

const PLOT: Area = Area { x: 84.0, y: 16.0, width: 856.0, height: 380.0 };
const HEIGHT: f64 = 446.0;

#[derive(Clone, Copy)]
enum Cost {
    Interrupts,
    HostBusy,
}

impl Cost {
    /// The load of the host, if all points have it.
    fn of(points: &[TradeoffPoint]) -> Self {
        let has_load = !points.is_empty() && points.iter().all(|point| point.host_busy.is_some());
        if has_load { Self::HostBusy } else { Self::Interrupts }
    }

    fn at(self, point: &TradeoffPoint) -> f64 {
        match self {
            Self::Interrupts => point.interrupts_per_s,
            Self::HostBusy => 100.0 * point.host_busy.unwrap_or(f64::NAN),
        }
    }

    const fn axis(self) -> &'static str {
        match self {
            Self::Interrupts => "interrupts per second",
            Self::HostBusy => "load of the busiest host, %",
        }
    }

    const fn caption(self) -> &'static str {
        match self {
            Self::Interrupts => "\u{2199} fewer interrupts and lower latency",
            Self::HostBusy => "\u{2199} less load and lower latency",
        }
    }
}

const NAME_SIZE: f64 = 14.0;
const DETAIL_SIZE: f64 = 12.0;
const LINE_HEIGHT: f64 = 17.0;

/// A point with its place on the page and the lines of its label.
struct Mark<'a> {
    point: &'a TradeoffPoint,
    at: (f64, f64),
    class: &'static str,
    detail: String,
    words: String,
}

/// What the page's style sheet is to a chart of a report.
const STYLE: &str = concat!(
    "><style>",
    include_str!("../templates/report.css"),
    "svg { background: var(--card); font-family: system-ui, sans-serif; }</style>"
);

impl TradeoffChart {
    /// What the vertical axis shows, and the word for it before a figure.
    const fn axis(&self) -> &str {
        if self.latency.is_empty() { "median round trip" } else { self.latency }
    }

    const fn figure(&self) -> &str {
        if self.latency.is_empty() { "p50" } else { self.latency }
    }

    /// The chart as an SVG file that needs no other one.
    pub fn svg(&self) -> String {
        let palette = Palette::new(self.points.iter().map(|point| point.name.as_str()));
        let inline = svg(self, &palette);
        let own = inline.replacen("<svg", r#"<svg xmlns="http://www.w3.org/2000/svg""#, 1);
        own.replacen('>', STYLE, 1) + "\n"
    }
}

pub(crate) fn svg(chart: &TradeoffChart, palette: &Palette) -> String {
    let cost = Cost::of(&chart.points);
    let usable = |point: &&TradeoffPoint| {
        let (latency, cost) = (point.latency_us, cost.at(point));
        latency.is_finite() && cost.is_finite() && latency >= 0.0 && cost >= 0.0
    };
    let points: Vec<&TradeoffPoint> = chart.points.iter().filter(usable).collect();
    let Some((x, y)) = scales(&points, cost) else {
        return nothing("No settings to compare.");
    };
    let marks = points.iter().map(|&point| Mark {
        point,
        at: (x.at(cost.at(point)), y.at(point.latency_us)),
        class: palette.class(&point.name),
        detail: detail(point),
        words: describe(point, chart.figure()),
    });
    let marks: Vec<Mark<'_>> = marks.collect();
    let mut canvas = Canvas::new(960.0, HEIGHT);
    better_corner(&mut canvas);
    axes(&mut canvas, &x, &y, (cost, chart.axis()));
    canvas.text("better-text", Anchor::Start, caption_at(), cost.caption());
    draw(&mut canvas, &marks, cost.caption());
    canvas.finish("chart", &summary(chart, &points))
}

/// Logarithmic axes when either quantity spans more than a decade, otherwise linear ones.
fn scales(points: &[&TradeoffPoint], cost: Cost) -> Option<(Scale, Scale)> {
    let interrupts = range(points.iter().map(|point| cost.at(point)))?;
    let latency = range(points.iter().map(|point| point.latency_us))?;
    let (across, up) = ((PLOT.x, PLOT.x + PLOT.width), (PLOT.y + PLOT.height, PLOT.y));
    let positive = interrupts.0 > 0.0 && latency.0 > 0.0;
    let wide = |(low, high): (f64, f64)| high > 10.0 * low;
    if positive && (wide(interrupts) || wide(latency)) {
        let padded = |(low, high): (f64, f64)| {
            // The upper side gets room for labels; the lower one has it down to a power of ten.
            let low = decade(low);
            (low, high * (high / low).max(2.0).powf(0.12))
        };
        return Some((Scale::log(padded(interrupts), across), Scale::log(padded(latency), up)));
    }
    // From zero: what is cut off makes small differences look large.
    let padded = |(_, high): (f64, f64)| (0.0, if high > 0.0 { 1.12 * high } else { 1.0 });
    Some((Scale::linear(padded(interrupts), across), Scale::linear(padded(latency), up)))
}

/// Three nested quarters of an ellipse: a gradient would need a reference by address.
fn better_corner(canvas: &mut Canvas) {
    let (left, bottom) = (PLOT.x, PLOT.y + PLOT.height);
    for share in [0.62, 0.44, 0.26] {
        let (across, up) = (PLOT.width * share, PLOT.height * share);
        let (top, right) = (bottom - up, left + across);
        let arc = format!("M{left} {top}A{across} {up} 0 0 1 {right} {bottom}L{left} {bottom}Z");
        canvas.path("better", &arc);
    }
}

fn caption_at() -> (f64, f64) {
    (PLOT.x + 14.0, PLOT.y + PLOT.height - 16.0)
}

fn axes(canvas: &mut Canvas, x: &Scale, y: &Scale, (cost, latency): (Cost, &str)) {
    let kind = if x.is_log() { ", logarithmic" } else { "" };
    let title = format!("{}{kind}", cost.axis());
    x_axis(canvas, &PLOT, x, &title);
    for tick in y.ticks(8) {
        let at = y.at(tick);
        canvas.line("grid", (PLOT.x, at), (PLOT.x + PLOT.width, at));
        canvas.text("tick", Anchor::End, (PLOT.x - 8.0, at + 4.0), &short(tick));
    }
    let kind = if y.is_log() { ", logarithmic" } else { "" };
    let middle = PLOT.y + PLOT.height / 2.0;
    canvas.upward_text("axis-title", (14.0, middle), &format!("{latency}, us{kind}"));
}

fn detail(point: &TradeoffPoint) -> String {
    let latency = time(point.latency_us);
    match point.bulk_mbit.filter(|rate| rate.is_finite()) {
        Some(rate) => format!("{latency}, {} Mbit/s", short(rate)),
        None => latency,
    }
}

fn draw(canvas: &mut Canvas, marks: &[Mark<'_>], caption: &str) {
    let mut taken: Vec<Area> = marks.iter().map(|mark| Area::around(mark.at, 11.0)).collect();
    let (x, y) = caption_at();
    taken.push(Area { x, y: y - 14.0, width: text_width(caption, 14.0), height: 20.0 });
    // A label may touch the edge: the numbers of the axis keep twice this distance.
    let frame = Area { x: PLOT.x - 4.0, width: PLOT.width + 8.0, ..PLOT };
    for mark in marks {
        let name = text_width(&mark.point.name, NAME_SIZE);
        // Digits and regular weight are narrower than the bold names that the estimate is for.
        let width = name.max(0.9 * text_width(&mark.detail, DETAIL_SIZE));
        let size = (width, 2.0 * LINE_HEIGHT + 2.0);
        let area = place(mark.at, size, &mut taken, &frame);
        canvas.group(&format!("series {}", mark.class), &mark.words, |canvas| {
            canvas.leader(mark.at, &area);
            canvas.dot("halo", mark.at, 12.0);
            canvas.dot("point", mark.at, 7.0);
            let (x, anchor) = match area.x > mark.at.0 {
                true => (area.x, Anchor::Start),
                false => (area.x + area.width, Anchor::End),
            };
            canvas.text("label big", anchor, (x, area.y + 13.0), &mark.point.name);
            canvas.text("label value", anchor, (x, area.y + 13.0 + LINE_HEIGHT), &mark.detail);
        });
    }
}

fn describe(point: &TradeoffPoint, figure: &str) -> String {
    let (latency, interrupts) = (time(point.latency_us), short(point.interrupts_per_s));
    let bulk = point.bulk_mbit.filter(|rate| rate.is_finite());
    let bulk = bulk.map_or(String::new(), |rate| format!(", bulk {} Mbit/s", short(rate)));
    let load = point.host_busy.map(|busy| format!(", host {} % busy", short(100.0 * busy)));
    let load = load.unwrap_or_default();
    format!("{}: {figure} {latency}, {interrupts} interrupts/s{load}{bulk}", point.name)
}

fn summary(chart: &TradeoffChart, points: &[&TradeoffPoint]) -> String {
    let all: Vec<String> = points.iter().map(|point| describe(point, chart.figure())).collect();
    let cost = Cost::of(&chart.points).axis();
    format!("Latency against {cost}, {}. {}.", chart.title, all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(points: &[(f64, f64)]) -> String {
        let point = |(index, &(latency_us, interrupts_per_s))| TradeoffPoint {
            name: format!("delay:{index}"),
            latency_us,
            interrupts_per_s,
            host_busy: None,
            bulk_mbit: (index % 2 == 0).then_some(940.0),
        };
        let points: Vec<TradeoffPoint> = points.iter().enumerate().map(point).collect();
        let names: Vec<String> = points.iter().map(|point| point.name.clone()).collect();
        let palette = Palette::new(names.iter().map(String::as_str));
        svg(&TradeoffChart { title: "rr".into(), points, ..Default::default() }, &palette)
    }

    #[test]
    fn a_file_has_its_name_space_and_its_style() {
        let point = TradeoffPoint { name: "a>b".into(), ..Default::default() };
        let file = TradeoffChart { points: vec![point], ..Default::default() }.svg();
        let head = r#"<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 "#;
        assert!(file.starts_with(head) && file.ends_with("</svg>\n"), "{file}");
        let (open, rest) = file.split_once("><style>").unwrap();
        assert!(!open.contains('>') && rest.contains("</style><"), "{file}");
    }

    #[test]
    fn load_takes_the_place_of_interrupts_if_every_point_has_it() {
        let point = |host_busy| TradeoffPoint {
            name: "delay:75".into(),
            latency_us: 100.0,
            interrupts_per_s: 2e3,
            host_busy,
            bulk_mbit: None,
        };
        let file = |points| TradeoffChart { points, ..Default::default() }.svg();
        let load = file(vec![point(Some(0.25)), point(Some(0.5))]);
        assert!(load.contains(">load of the busiest host, %<") && load.contains("host 50 % busy"));
        assert!(!load.contains(">interrupts per second<"), "{load}");
        let mixed = file(vec![point(Some(0.25)), point(None)]);
        assert!(mixed.contains(">interrupts per second<"), "{mixed}");
    }

    #[test]
    fn linear_axes_begin_at_zero() {
        let svg = draw(&[(144.0, 4_667.0), (236.0, 6_380.0)]);
        assert_eq!(svg.matches(">0</text>").count(), 2, "{svg}");
        assert!(svg.contains(">5000</text>") && !svg.contains("k</text>"), "{svg}");
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        assert!(draw(&[]).contains("No settings"));
        assert!(
            draw(&[(f64::NAN, 1.0), (1.0, f64::INFINITY), (-1.0, 5.0)]).contains("No settings")
        );
        let svg = draw(&[(f64::NAN, 1.0), (100.0, 2e3)]);
        assert_eq!(svg.matches("class=\"point\"").count(), 1);
        assert!(!svg.contains("NaN"));
    }
}

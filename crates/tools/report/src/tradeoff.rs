//! The trade-off: what a setting costs the host, in interrupts or in load, against what it costs in
//! latency.

use super::label::{Area, place, text_width};
use super::scale::{Scale, decade, range, short, time};
use super::svg::{Anchor, Canvas, nothing, x_axis};
use super::terminal::wrap;
use super::{ChartLimit, Palette, PointRole, TradeoffChart, TradeoffPoint};

/// A picture for a kind of screen.
struct Layout {
    class: &'static str,
    /// Of the whole picture.
    size: (f64, f64),
    plot: Area,
    /// Letters of a line of a label.
    line: usize,
}

const WIDE: Layout = Layout {
    class: "chart",
    size: (960.0, 446.0),
    plot: Area { x: 84.0, y: 16.0, width: 856.0, height: 380.0 },
    line: 60,
};

/// For a telephone: letters have the size that they have on a wide screen.
const NARROW: Layout = Layout {
    class: "chart narrow",
    size: (372.0, 420.0),
    plot: Area { x: 58.0, y: 14.0, width: 304.0, height: 356.0 },
    line: 17,
};

#[derive(Clone, Copy)]
enum Cost {
    Interrupts,
    HostBusy,
}

impl Cost {
    /// The load of the host, if all points have it, and it is not nothing for all.
    fn of(points: &[TradeoffPoint]) -> Self {
        let has_load = points.iter().all(|point| point.host_busy.is_some())
            && points.iter().any(|point| point.host_busy > Some(0.0));
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

    fn caption(self, layout: &Layout) -> &'static str {
        match self {
            _ if layout.line < WIDE.line => "\u{2199} better",
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
    /// Its name in lines, and a line of details.
    lines: Vec<String>,
    tooltip: String,
}

/// What the page's style sheet is to a chart of a report.
const STYLE: &str = concat!(
    "><style>",
    include_str!("../templates/report.css"),
    "svg { background: var(--card); font-family: system-ui, sans-serif; }</style>"
);

impl TradeoffChart {
    /// The chart as an SVG file that needs no other one.
    pub fn svg(&self) -> String {
        let palette = Palette::new(self.points.iter().map(|point| point.name.as_str()));
        let inline = drawn(self, &palette, &WIDE);
        let own = inline.replacen("<svg", r#"<svg xmlns="http://www.w3.org/2000/svg""#, 1);
        own.replacen('>', STYLE, 1) + "\n"
    }

    /// The chart for a page that has the style sheet, twice: for wide screens and for narrow ones.
    pub fn inline(&self) -> String {
        svg(self, &Palette::new(self.points.iter().map(|point| point.name.as_str())))
    }
}

/// For a page, which shows the one that its screen has room for.
pub(crate) fn svg(chart: &TradeoffChart, palette: &Palette) -> String {
    drawn(chart, palette, &WIDE).replacen("class=\"chart\"", "class=\"chart wide\"", 1)
        + &drawn(chart, palette, &NARROW)
}

fn drawn(chart: &TradeoffChart, palette: &Palette, layout: &Layout) -> String {
    let cost = Cost::of(&chart.points);
    let usable = |point: &&TradeoffPoint| {
        let (latency, cost) = (point.latency_us, cost.at(point));
        latency.is_finite() && cost.is_finite() && latency >= 0.0 && cost >= 0.0
    };
    let points: Vec<&TradeoffPoint> = chart.points.iter().filter(usable).collect();
    let limits: Vec<&ChartLimit> = chart
        .limits
        .iter()
        .filter(|it| it.is_of_latency || matches!(cost, Cost::Interrupts))
        .collect();
    let Some((x, y)) = scales(&points, &limits, cost, &layout.plot) else {
        return nothing("No settings to compare.");
    };
    let marks = points.iter().map(|&point| Mark {
        point,
        at: (x.at(cost.at(point)), y.at(point.latency_us)),
        class: palette.class(&point.name),
        lines: lines(point, layout),
        tooltip: describe(point, chart),
    });
    let marks: Vec<Mark<'_>> = marks.collect();
    let mut canvas = Canvas::new(layout.size.0, layout.size.1);
    better_corner(&mut canvas, &layout.plot);
    axes(&mut canvas, (&x, &y), (cost.axis(), &latency(chart)), &layout.plot);
    let caption = cost.caption(layout);
    canvas.text("better-text", Anchor::Start, caption_at(&layout.plot), caption);
    let (at, size) = (caption_at(&layout.plot), (text_width(caption, 14.0), 20.0));
    let mut taken = vec![Area { x: at.0, y: at.1 - 14.0, width: size.0, height: size.1 }];
    for limit in limits {
        taken.push(draw_limit(&mut canvas, limit, (&x, &y), &layout.plot));
    }
    draw(&mut canvas, &marks, taken, &layout.plot);
    canvas.finish(layout.class, &summary(chart, &points))
}

/// What is on the vertical axis.
fn latency(chart: &TradeoffChart) -> String {
    let name = if chart.latency.is_empty() { "median round trip" } else { &chart.latency };
    format!("{name}, us")
}

/// A line across the plot with the limit above its end; the place of that text.
fn draw_limit(
    canvas: &mut Canvas,
    limit: &ChartLimit,
    (x, y): (&Scale, &Scale),
    plot: &Area,
) -> Area {
    let width = text_width(&limit.text, DETAIL_SIZE);
    let right = plot.x + plot.width;
    let text = if limit.is_of_latency {
        let at = y.at(limit.value);
        canvas.line("limit", (plot.x, at), (right, at));
        (right - 6.0, at - 6.0)
    } else {
        let at = x.at(limit.value);
        canvas.line("limit", (at, plot.y), (at, plot.y + plot.height));
        ((at - 6.0).max(plot.x + width), plot.y + 12.0)
    };
    canvas.text("limit-text", Anchor::End, text, &limit.text);
    Area { x: text.0 - width, y: text.1 - 12.0, width, height: 16.0 }
}

/// Logarithmic axes when either quantity spans more than a decade, otherwise linear ones.
fn scales(
    points: &[&TradeoffPoint],
    limits: &[&ChartLimit],
    cost: Cost,
    plot: &Area,
) -> Option<(Scale, Scale)> {
    let limit = |is_of_latency| {
        let such = limits.iter().filter(move |it| it.is_of_latency == is_of_latency);
        such.map(|it| it.value).filter(|it| it.is_finite() && *it > 0.0)
    };
    range(points.iter().map(|point| point.latency_us))?;
    let interrupts = range(points.iter().map(|point| cost.at(point)).chain(limit(false)))?;
    let latency = range(points.iter().map(|point| point.latency_us).chain(limit(true)))?;
    let (across, up) = ((plot.x, plot.x + plot.width), (plot.y + plot.height, plot.y));
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
fn better_corner(canvas: &mut Canvas, plot: &Area) {
    let (left, bottom) = (plot.x, plot.y + plot.height);
    for share in [0.62, 0.44, 0.26] {
        let (across, up) = (plot.width * share, plot.height * share);
        let (top, right) = (bottom - up, left + across);
        let arc = format!("M{left} {top}A{across} {up} 0 0 1 {right} {bottom}L{left} {bottom}Z");
        canvas.path("better", &arc);
    }
}

fn caption_at(plot: &Area) -> (f64, f64) {
    (plot.x + 14.0, plot.y + plot.height - 16.0)
}

fn axes(canvas: &mut Canvas, (x, y): (&Scale, &Scale), titles: (&str, &str), plot: &Area) {
    let kind = if x.is_log() { ", logarithmic" } else { "" };
    let title = format!("{}{kind}", titles.0);
    x_axis(canvas, plot, x, &title);
    for tick in y.ticks(8) {
        let at = y.at(tick);
        canvas.line("grid", (plot.x, at), (plot.x + plot.width, at));
        canvas.text("tick", Anchor::End, (plot.x - 8.0, at + 4.0), &short(tick));
    }
    let kind = if y.is_log() { ", logarithmic" } else { "" };
    let middle = plot.y + plot.height / 2.0;
    canvas.upward_text("axis-title", (14.0, middle), &format!("{}{kind}", titles.1));
}

/// The lines of a label: the name, what the setting is, its latency and the goodput beside it.
fn lines(point: &TradeoffPoint, layout: &Layout) -> Vec<String> {
    let mut lines = wrap("", 0, &point.name, layout.line);
    let role = match point.role {
        PointRole::Other => "",
        PointRole::Pick => "picked, ",
        PointRole::Old => "before, ",
    };
    let bulk = point.bulk_mbit.filter(|rate| rate.is_finite());
    let bulk = bulk.map(|rate| format!(", {} Mbit/s", short(rate))).unwrap_or_default();
    lines.push(format!("{role}{}{bulk}", time(point.latency_us)));
    lines
}

fn draw(canvas: &mut Canvas, marks: &[Mark<'_>], mut taken: Vec<Area>, plot: &Area) {
    taken.extend(marks.iter().map(|mark| Area::around(mark.at, 11.0)));
    // A label may touch the edge: the numbers of the axis keep twice this distance.
    let frame = Area { x: plot.x - 4.0, width: plot.width + 8.0, ..*plot };
    for mark in marks {
        let Some((detail, names)) = mark.lines.split_last() else { continue };
        let name = names.iter().map(|line| text_width(line, NAME_SIZE)).fold(0.0, f64::max);
        // Digits and regular weight are narrower than the bold names that the estimate is for.
        let width = name.max(0.9 * text_width(detail, DETAIL_SIZE));
        let size = (width, mark.lines.len() as f64 * LINE_HEIGHT + 2.0);
        let area = place(mark.at, size, &mut taken, &frame);
        canvas.group(&format!("series {}", mark.class), &mark.tooltip, |canvas| {
            canvas.leader(mark.at, &area);
            canvas.dot("halo", mark.at, 12.0);
            canvas.dot("point", mark.at, 7.0);
            match mark.point.role {
                PointRole::Other => {}
                PointRole::Pick => canvas.dot("ring", mark.at, 12.0),
                PointRole::Old => canvas.dot("ring old", mark.at, 12.0),
            }
            let (x, anchor) = match area.x > mark.at.0 {
                true => (area.x, Anchor::Start),
                false => (area.x + area.width, Anchor::End),
            };
            for (number, line) in mark.lines.iter().enumerate() {
                let class = if number < names.len() { "label big" } else { "label value" };
                canvas.text(class, anchor, (x, area.y + 13.0 + number as f64 * LINE_HEIGHT), line);
            }
        });
    }
}

fn describe(point: &TradeoffPoint, chart: &TradeoffChart) -> String {
    let of = if chart.latency.is_empty() { "p50" } else { &chart.latency };
    let (latency, interrupts) = (time(point.latency_us), short(point.interrupts_per_s));
    let bulk = point.bulk_mbit.filter(|rate| rate.is_finite());
    let bulk = bulk.map_or(String::new(), |rate| format!(", bulk {} Mbit/s", short(rate)));
    let load = point.host_busy.map(|busy| format!(", host {} % busy", short(100.0 * busy)));
    let load = load.unwrap_or_default();
    let role = match point.role {
        PointRole::Other => "",
        PointRole::Pick => " (picked)",
        PointRole::Old => " (before)",
    };
    format!("{}{role}: {of} {latency}, {interrupts} interrupts/s{load}{bulk}", point.name)
}

fn summary(chart: &TradeoffChart, points: &[&TradeoffPoint]) -> String {
    let all: Vec<String> = points.iter().map(|point| describe(point, chart)).collect();
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
            ..Default::default()
        };
        let points: Vec<TradeoffPoint> = points.iter().enumerate().map(point).collect();
        let names: Vec<String> = points.iter().map(|point| point.name.clone()).collect();
        let palette = Palette::new(names.iter().map(String::as_str));
        let chart = TradeoffChart { title: "rr".into(), points, ..Default::default() };
        drawn(&chart, &palette, &WIDE)
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
            ..Default::default()
        };
        let file = |points| TradeoffChart { points, ..Default::default() }.svg();
        let load = file(vec![point(Some(0.25)), point(Some(0.5))]);
        assert!(load.contains(">load of the busiest host, %<") && load.contains("host 50 % busy"));
        assert!(!load.contains(">interrupts per second<"), "{load}");
        let mixed = file(vec![point(Some(0.25)), point(None)]);
        assert!(mixed.contains(">interrupts per second<"), "{mixed}");
    }

    #[test]
    fn a_pick_the_old_setting_and_limits_are_marked_on_screens_of_any_width() {
        let point = |name: &str, role, latency_us| TradeoffPoint {
            name: name.into(),
            role,
            latency_us,
            interrupts_per_s: 4e3,
            ..Default::default()
        };
        let limit = |is_of_latency, value, text: &str| ChartLimit {
            is_of_latency,
            value,
            text: text.into(),
        };
        let chart = TradeoffChart {
            latency: "p99".into(),
            points: vec![
                point("as it is", PointRole::Old, 600.0),
                point("rx-usecs 1022 rx-frames 64", PointRole::Pick, 60.0),
            ],
            limits: vec![limit(true, 200.0, "p99 < 200 us"), limit(false, 9e3, "interrupts < 9k")],
            ..Default::default()
        };
        let page = svg(&chart, &Palette::new(["as it is"]));
        assert_eq!(page.matches("<svg").count(), 2, "{page}");
        for (text, times) in [
            (">p99 &lt; 200 us<", 2),
            (">interrupts &lt; 9k<", 2),
            (r#"class="limit""#, 4),
            (r#"class="ring""#, 2),
            (r#"class="ring old""#, 2),
            (">picked, 60 us<", 2),
            (">before, 600 us<", 2),
            (">p99, us<", 2),
            (">rx-usecs 1022 rx-frames 64<", 1),
            (">1022 rx-frames 64<", 1),
        ] {
            assert_eq!(page.matches(text).count(), times, "{text}: {page}");
        }
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

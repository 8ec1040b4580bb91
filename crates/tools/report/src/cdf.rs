//! Cumulative latency: how many round trips were done after how many microseconds.
//!
//! The axis of time is logarithmic, because a hold of 75 us and a lost packet's 200 ms may be in
//! the same measurement. It ends where the slowest setting has 99.9 % of its round trips: the few
//! beyond would take half of the picture.

use super::label::{Area, place, text_width};
use super::scale::{Scale, range, time};
use super::svg::{Anchor, Canvas, nothing, x_axis};
use super::{CdfChart, Palette, panels};

const PLOT: Area = Area { x: 64.0, y: 20.0, width: 862.0, height: 330.0 };
const HEIGHT: f64 = 400.0;
/// More points than this are invisible at the width of a page.
const MOST_POINTS: usize = 200;
const LABEL_SIZE: f64 = 13.0;
const LABEL_HEIGHT: f64 = 18.0;

struct Curve<'a> {
    name: &'a str,
    class: &'static str,
    points: Vec<(f64, f64)>,
    pixels: Vec<(f64, f64)>,
}

pub(crate) fn svg(chart: &CdfChart, palette: &Palette) -> String {
    let mut curves: Vec<Curve<'_>> =
        chart.series.iter().filter_map(|series| curve(series, palette)).collect();
    let Some(x) = time_scale(&curves) else {
        return nothing("No latencies to show.");
    };
    let y = Scale::linear((0.0, 1.0), (PLOT.y + PLOT.height, PLOT.y));
    for curve in &mut curves {
        curve.pixels = pixels(&curve.points, &x, &y);
    }
    let mut canvas = Canvas::new(960.0, HEIGHT);
    x_axis(&mut canvas, &PLOT, &x, "round trip, us (logarithmic)");
    fraction_axis(&mut canvas, &y);
    // The first in the list end up on top: they are what the reader came for.
    for curve in curves.iter().rev() {
        draw(&mut canvas, curve, &x, &y);
    }
    draw_labels(&mut canvas, &curves, &x, &y);
    canvas.finish("chart", &summary(chart, &curves))
}

fn curve<'a>(series: &'a panels::Curve, palette: &Palette) -> Option<Curve<'a>> {
    let points = clean(&series.points);
    let class = palette.class(&series.name);
    (!points.is_empty()).then(|| Curve { name: &series.name, class, points, pixels: Vec::new() })
}

/// Points that a logarithmic axis can show, in order.
fn clean(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let usable = |(us, fraction): &(f64, f64)| us.is_finite() && *us > 0.0 && fraction.is_finite();
    let mut points: Vec<(f64, f64)> = points.iter().copied().filter(usable).collect();
    points.iter_mut().for_each(|point| point.1 = point.1.clamp(0.0, 1.0));
    points.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    points
}

fn time_scale(curves: &[Curve<'_>]) -> Option<Scale> {
    let starts = curves.iter().filter_map(|curve| curve.points.first());
    let ends = curves.iter().filter_map(|curve| {
        quantile(&curve.points, 0.999).or(curve.points.last().map(|point| point.0))
    });
    let (low, high) = range(starts.map(|point| point.0).chain(ends))?;
    Some(Scale::log((low, high * 1.06), (PLOT.x, PLOT.x + PLOT.width)))
}

/// The latency that `fraction` of the round trips do not exceed, microseconds.
fn quantile(points: &[(f64, f64)], fraction: f64) -> Option<f64> {
    let after = points.iter().position(|point| point.1 >= fraction)?;
    let (high, above) = points[after];
    let Some((low, below)) = after.checked_sub(1).map(|before| points[before]) else {
        return Some(high);
    };
    Some(low + (high - low) * (fraction - below) / (above - below))
}

fn pixels(points: &[(f64, f64)], x: &Scale, y: &Scale) -> Vec<(f64, f64)> {
    let first = points.first().map(|(us, _)| (x.at(*us), y.at(0.0)));
    // Only the first point beyond the end of the axis counts; it gives the last slope.
    let shown = points.iter().position(|(us, _)| *us > x.high()).map_or(points.len(), |at| at + 1);
    let rest = points[..shown].iter().map(|(us, fraction)| (x.at(*us), y.at(*fraction)));
    thin(&first.into_iter().chain(rest).collect::<Vec<_>>(), MOST_POINTS)
}

/// At most `most` points, evenly spaced along the line so that bends survive; both ends stay.
fn thin(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most || most < 2 {
        return points.to_vec();
    }
    let length = |pair: &[(f64, f64)]| (pair[1].0 - pair[0].0).hypot(pair[1].1 - pair[0].1);
    let total: f64 = points.windows(2).map(length).sum();
    let step = total / (most - 1) as f64;
    let (mut kept, mut walked) = (vec![points[0]], 0.0);
    for pair in points.windows(2) {
        walked += length(pair);
        if walked >= step * kept.len() as f64 && kept.len() < most - 1 {
            kept.push(pair[1]);
        }
    }
    kept.extend(points.last());
    kept
}

fn fraction_axis(canvas: &mut Canvas, y: &Scale) {
    let right = PLOT.x + PLOT.width;
    let lines = [
        (0.0, "0 %", "grid"),
        (0.25, "25 %", "grid"),
        (0.5, "p50", "grid strong"),
        (0.75, "75 %", "grid"),
        (0.9, "p90", "grid"),
        (0.99, "p99", "grid strong"),
    ];
    for (fraction, name, class) in lines {
        let at = y.at(fraction);
        canvas.line(class, (PLOT.x, at), (right, at));
        let class = if class == "grid" { "tick" } else { "tick strong" };
        canvas.text(class, Anchor::End, (PLOT.x - 8.0, at + 4.0), name);
    }
    let middle = PLOT.y + PLOT.height / 2.0;
    canvas.upward_text("axis-title", (14.0, middle), "share of round trips");
}

fn draw(canvas: &mut Canvas, curve: &Curve<'_>, x: &Scale, y: &Scale) {
    let tooltip = quantiles(curve);
    canvas.group(&format!("series {}", curve.class), &tooltip, |canvas| {
        // A wide invisible line under the thin one makes the tooltip easy to hit.
        canvas.polyline("hit", &curve.pixels);
        canvas.polyline("curve", &curve.pixels);
        for fraction in [0.5, 0.99] {
            if let Some(us) = quantile(&curve.points, fraction) {
                canvas.dot("dot", (x.at(us), y.at(fraction)), 4.0);
            }
        }
    });
}

fn quantiles(curve: &Curve<'_>) -> String {
    let mut text = curve.name.to_owned();
    for (fraction, name) in [(0.5, "p50"), (0.9, "p90"), (0.99, "p99")] {
        if let Some(us) = quantile(&curve.points, fraction) {
            text.push_str(&format!(", {name} {}", time(us)));
        }
    }
    text
}

fn draw_labels(canvas: &mut Canvas, curves: &[Curve<'_>], x: &Scale, y: &Scale) {
    let ink: Vec<Area> = curves.iter().flat_map(|curve| ink(&curve.pixels)).collect();
    let mut taken = Vec::new();
    for curve in curves {
        let median = quantile(&curve.points, 0.5);
        let last = curve.pixels.last().copied().unwrap_or((PLOT.x, PLOT.y));
        let at = median.map_or(last, |us| (x.at(us), y.at(0.5)));
        let median = median.map_or(String::new(), |us| format!(" {}", time(us)));
        let width = text_width(curve.name, LABEL_SIZE) + text_width(&median, LABEL_SIZE);
        let area = place(at, (width, LABEL_HEIGHT), &mut taken, &ink, &PLOT);
        canvas.group(&format!("name {}", curve.class), "", |canvas| {
            canvas.leader(at, &area);
            let at = (area.x + 2.0, area.y + LABEL_HEIGHT / 2.0 + 4.5);
            canvas.rich_text("label", Anchor::Start, at, &[("", curve.name), ("value", &median)]);
        });
    }
}

fn ink(pixels: &[(f64, f64)]) -> impl Iterator<Item = Area> {
    pixels.windows(2).flat_map(|pair| {
        let (from, to) = (pair[0], pair[1]);
        let pieces = ((to.0 - from.0).hypot(to.1 - from.1) / 4.0).ceil().clamp(1.0, 400.0) as usize;
        (0..pieces).map(move |piece| {
            let share = piece as f64 / pieces as f64;
            let at = (from.0 + (to.0 - from.0) * share, from.1 + (to.1 - from.1) * share);
            Area::around(at, 2.0)
        })
    })
}

fn summary(chart: &CdfChart, curves: &[Curve<'_>]) -> String {
    let all: Vec<String> = curves.iter().map(quantiles).collect();
    format!("Latency distribution, {}: {}.", chart.title, all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>) -> CdfChart {
        let series = vec![panels::Curve { name: "delay:75".into(), points }];
        CdfChart { title: "rr".into(), note: String::new(), series }
    }

    fn draw(points: Vec<(f64, f64)>) -> String {
        svg(&chart(points), &Palette::new(["delay:75"]))
    }

    #[test]
    fn thinning_keeps_ends_and_limit() {
        let points: Vec<(f64, f64)> = (0..5000).map(|i| (f64::from(i), f64::from(i % 7))).collect();
        let thinned = thin(&points, 200);
        assert!(thinned.len() <= 200 && thinned.len() > 150, "{}", thinned.len());
        assert_eq!((thinned[0], thinned.last()), (points[0], points.last()));
        assert_eq!(thin(&points[..50], 200), points[..50]);
        assert!(thin(&[(1.0, 1.0); 300], 200).len() <= 200);
    }

    #[test]
    fn quantiles_interpolate() {
        let points = [(100.0, 0.0), (200.0, 0.5), (300.0, 1.0)];
        assert_eq!(quantile(&points, 0.25), Some(150.0));
        assert_eq!(quantile(&points, 1.0), Some(300.0));
        assert_eq!(quantile(&[(100.0, 0.7)], 0.5), Some(100.0));
        assert_eq!(quantile(&[(100.0, 0.3)], 0.5), None);
    }

    #[test]
    fn small_inputs_are_drawn() {
        for points in [vec![(100.0, 1.0)], vec![(100.0, 0.2)], vec![(100.0, 0.0), (100.0, 1.0)]] {
            let svg = draw(points);
            assert!(svg.contains("class=\"curve\"") && svg.contains("delay:75"), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"));
        }
    }

    #[test]
    fn outliers_do_not_squeeze_the_picture() {
        let mut points: Vec<(f64, f64)> = (0..=998)
            .map(|i| (100.0 + f64::from(i) / 10.0, f64::from(i) / 998.0 * 0.9995))
            .collect();
        points.push((200_000.0, 1.0));
        let svg = draw(points);
        assert!(svg.contains(">150<") && !svg.contains(">10000<"), "{svg}");
    }
}

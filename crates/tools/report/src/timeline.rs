//! A few hundred microseconds of a NIC: packets arrive, wait, and an interrupt announces them.
//!
//! Every packet is a bar from its arrival to its delivery: the length of the bar is the hold.
//! Bars that overlap in time are stacked, so a batch looks like a staircase that ends at one
//! interrupt. All timelines of a page share one scale, for the eye to compare lengths.

use super::label::{Area, text_width};
use super::scale::{Scale, time};
use super::svg::{Anchor, Canvas, nothing};
use super::{HeldPacket, Lane, Timeline};

const WIDTH: f64 = 960.0;
const GUTTER: f64 = 170.0;
const RIGHT: f64 = 935.0;
/// Room above a lane for the name of its port, which may be as long as the picture is wide.
const NAME: f64 = 22.0;
/// Room above the bars of a lane: the name, and below it the reasons of interrupts.
const HEAD: f64 = NAME + 26.0;
const TEXT_SIZE: f64 = 12.0;
const LANE_GAP: f64 = 14.0;
const ROW: f64 = 9.0;
const MIN_ROWS: usize = 6;
const MOST_ROWS: usize = 18;
/// A packet that did not wait must still be seen.
const SHORTEST_BAR: f64 = 5.0;

/// Reasons, what each means, and the outline of its shape from its middle, ten pixels wide.
const REASONS: [(&str, &str, &str); 5] = [
    ("mark", "a marked packet's DMA completed", "m-5 -5h10l-5 10z"),
    ("timer", "rx-usecs ran out", "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z"),
    ("frames", "rx-frames packets were waiting", "m-4 -4h8v8h-8z"),
    (
        "stream-end",
        "the last pending DMA of a marked run completed",
        "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
    ),
    ("rearm", "packets waited when the host enabled interrupts again", "m-5 5h10l-5 -10z"),
];

/// The time that each of these timelines has to span to share one scale, microseconds.
pub(crate) fn common_span_us(timelines: &[Timeline]) -> f64 {
    timelines.iter().filter_map(span_us).fold(0.0, f64::max)
}

fn span_us(timeline: &Timeline) -> Option<f64> {
    let span = timeline.to_us - timeline.from_us;
    (span.is_finite() && span > 0.0).then_some(span)
}

/// Draws one timeline on a scale of `common_us` microseconds, or its own span if that is longer.
pub(crate) fn svg(timeline: &Timeline, common_us: f64) -> String {
    let Some(span) = span_us(timeline).filter(|_| !timeline.lanes.is_empty()) else {
        return nothing("No packets to show.");
    };
    let common = if common_us.is_finite() { common_us.max(span) } else { span };
    let from = timeline.from_us;
    let x = Scale::linear((0.0, common), (GUTTER, RIGHT));
    let mut lanes = Vec::new();
    let mut top = 6.0;
    for lane in &timeline.lanes {
        let lane = LaneView::new(lane, from, span, &x, top);
        top += lane.height() + LANE_GAP;
        lanes.push(lane);
    }
    let bottom = top - LANE_GAP;
    let mut canvas = Canvas::new(WIDTH, bottom + 26.0);
    let unit = if common >= 1000.0 { 20 } else { 12 };
    for tick in x.ticks(unit) {
        canvas.line("grid", (x.at(tick), 6.0), (x.at(tick), bottom));
        canvas.text("tick", Anchor::Middle, (x.at(tick), bottom + 18.0), &time(tick));
    }
    for lane in &lanes {
        lane.draw(&mut canvas, &x);
    }
    canvas.finish("chart timeline", &summary(timeline, &lanes))
}

/// One lane with times counted from the start of the excerpt.
struct LaneView<'a> {
    port: &'a str,
    packets: Vec<HeldPacket>,
    rows: Vec<usize>,
    interrupts: Vec<(f64, &'a str)>,
    top: f64,
}

impl<'a> LaneView<'a> {
    fn new(lane: &'a Lane, from: f64, span: f64, x: &Scale, top: f64) -> Self {
        let finite =
            |packet: &&HeldPacket| packet.arrived_us.is_finite() && packet.delivered_us.is_finite();
        let shifted = lane.packets.iter().filter(finite).map(|packet| HeldPacket {
            arrived_us: packet.arrived_us - from,
            delivered_us: packet.delivered_us.max(packet.arrived_us) - from,
            ..packet.clone()
        });
        let shown = |packet: &HeldPacket| packet.delivered_us >= 0.0 && packet.arrived_us <= span;
        let mut packets: Vec<HeldPacket> = shifted.filter(shown).collect();
        packets.sort_by(|a, b| a.arrived_us.total_cmp(&b.arrived_us));
        let bars: Vec<(f64, f64)> = packets.iter().map(|packet| extent(packet, x)).collect();
        let mut interrupts: Vec<(f64, &str)> = lane
            .interrupts
            .iter()
            .map(|interrupt| (interrupt.at_us - from, interrupt.reason.as_str()))
            .filter(|(at, _)| (0.0..=span).contains(at))
            .collect();
        interrupts.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self { port: &lane.port, rows: stack(&bars), packets, interrupts, top }
    }

    fn height(&self) -> f64 {
        let rows = self.rows.iter().max().map_or(0, |row| row + 1);
        HEAD + rows.max(MIN_ROWS) as f64 * ROW + 6.0
    }

    fn draw(&self, canvas: &mut Canvas, x: &Scale) {
        let (top, height) = (self.top, self.height());
        let (y, width) = (top + HEAD - 6.0, RIGHT - GUTTER);
        canvas.bar("lane", Area { x: GUTTER, y, width, height: height - HEAD + 6.0 }, 4.0, "");
        canvas.text("label big", Anchor::Start, (4.0, top + 16.0), self.port);
        for (index, line) in self.facts().iter().enumerate() {
            let at = (4.0, top + HEAD + 12.0 + 16.0 * index as f64);
            canvas.text("tick", Anchor::Start, at, line);
        }
        for (packet, row) in self.packets.iter().zip(&self.rows) {
            let (left, right) = extent(packet, x);
            let y = top + HEAD + *row as f64 * ROW;
            let area = Area { x: left, y, width: right - left, height: ROW - 2.0 };
            let class = if packet.marked { "packet marked" } else { "packet" };
            canvas.bar(class, area, 2.0, &describe(packet));
        }
        self.draw_interrupts(canvas, x);
    }

    fn draw_interrupts(&self, canvas: &mut Canvas, x: &Scale) {
        let middle = self.top + NAME + 10.0;
        for ((at, reason), word) in self.interrupts.iter().zip(self.words(x)) {
            let px = x.at(*at);
            let tooltip = format!("interrupt at {}: {reason}", time(*at));
            canvas.group(&format!("interrupt {}", class(reason)), &tooltip, |canvas| {
                canvas.line("stem", (px, middle + 6.0), (px, self.top + self.height()));
                canvas.path("glyph", &glyph(reason, (px, middle)));
                // The shape alone speaks where there is no room for the word.
                if let Some(area) = word {
                    canvas.text("reason", Anchor::Start, (area.x, middle + 4.0), reason);
                }
            });
        }
    }

    /// Where the word of each interrupt goes: none where it would meet another shape or the edge.
    fn words(&self, x: &Scale) -> Vec<Option<Area>> {
        let shapes: Vec<Area> =
            self.interrupts.iter().map(|(at, _)| self.shape(x.at(*at))).collect();
        let mut words: Vec<Option<Area>> = Vec::new();
        for (index, (_, reason)) in self.interrupts.iter().enumerate() {
            let shape = shapes[index];
            let width = text_width(reason, TEXT_SIZE);
            let area = Area { x: shape.x + shape.width + 2.0, width, ..shape };
            let others = shapes.iter().enumerate().filter(|(other, _)| *other != index);
            let mut taken = others.map(|(_, shape)| shape).chain(words.iter().flatten());
            let is_free = taken.all(|other| !other.meets(&area));
            words.push((is_free && area.x + area.width <= WIDTH).then_some(area));
        }
        words
    }

    fn shape(&self, px: f64) -> Area {
        Area { x: px - 6.0, y: self.top + NAME + 3.0, width: 12.0, height: 14.0 }
    }

    /// The lane in numbers, for its left margin.
    fn facts(&self) -> Vec<String> {
        let count = self.interrupts.len();
        let plural = if count == 1 { "" } else { "s" };
        let mut facts = vec![format!("{count} interrupt{plural}")];
        if let Some(hold) = self.mean_hold(false) {
            facts.push(format!("mean hold {}", time(hold)));
        }
        if let Some(hold) = self.mean_hold(true) {
            facts.push(format!("marked hold {}", time(hold)));
        }
        facts
    }

    fn mean_hold(&self, marked_only: bool) -> Option<f64> {
        let packets = self.packets.iter().filter(|packet| packet.marked || !marked_only);
        let holds: Vec<f64> =
            packets.map(|packet| packet.delivered_us - packet.arrived_us).collect();
        (!holds.is_empty()).then(|| (holds.iter().sum::<f64>() / holds.len() as f64).round())
    }
}

/// Left and right end of a packet's bar, within the lane.
fn extent(packet: &HeldPacket, x: &Scale) -> (f64, f64) {
    let (left, right) = (x.at(packet.arrived_us.max(0.0)), x.at(packet.delivered_us.max(0.0)));
    let left = left.min(RIGHT - SHORTEST_BAR);
    (left, right.max(left + SHORTEST_BAR).min(RIGHT))
}

/// A row for each bar (sorted by start), the highest one that is free.
fn stack(bars: &[(f64, f64)]) -> Vec<usize> {
    let mut ends: Vec<f64> = Vec::new();
    let mut rows = Vec::new();
    for (left, right) in bars {
        let row = match ends.iter().position(|end| *end <= *left) {
            Some(row) => row,
            None if ends.len() < MOST_ROWS => {
                ends.push(0.0);
                ends.len() - 1
            }
            // A lane as high as the page is too high: the rest shares the last row.
            None => MOST_ROWS - 1,
        };
        ends[row] = *right + 1.0;
        rows.push(row);
    }
    rows
}

fn class(reason: &str) -> &'static str {
    if matches!(reason, "mark" | "stream-end") { "by-mark" } else { "" }
}

/// The outline of a reason's shape; a bar for other words.
fn glyph(reason: &str, (x, y): (f64, f64)) -> String {
    let (x, y) = ((x * 10.0).round() / 10.0, (y * 10.0).round() / 10.0);
    let known = REASONS.iter().find(|(known, ..)| *known == reason);
    format!("M{x} {y}{}", known.map_or("m-1.5 -5h3v10h-3z", |(_, _, outline)| outline))
}

/// One entry of the key: a shape as SVG, the reason, and what it means.
#[derive(Debug, Clone)]
pub(crate) struct KeyEntry {
    pub icon: String,
    pub reason: String,
    /// What it means; empty for a word this module does not know.
    pub meaning: String,
}

/// The key to the interrupts that these timelines show.
pub(crate) fn key(timelines: &[Timeline]) -> Vec<KeyEntry> {
    let mut reasons: Vec<&str> = Vec::new();
    let lanes = timelines.iter().flat_map(|timeline| &timeline.lanes);
    for interrupt in lanes.flat_map(|lane| &lane.interrupts) {
        if !reasons.contains(&interrupt.reason.as_str()) {
            reasons.push(&interrupt.reason);
        }
    }
    let known = |reason: &str| REASONS.iter().position(|(known, ..)| *known == reason);
    reasons.sort_by_key(|reason| known(reason).unwrap_or(REASONS.len()));
    let entry = |reason: &str| {
        let mut icon = Canvas::new(14.0, 14.0);
        icon.group(&format!("interrupt {}", class(reason)), "", |icon| {
            icon.path("glyph", &glyph(reason, (7.0, 7.0)));
        });
        let meaning = known(reason).map_or("", |index| REASONS[index].1);
        let icon = icon.finish("icon", reason);
        KeyEntry { icon, reason: reason.to_owned(), meaning: meaning.to_owned() }
    };
    reasons.into_iter().map(entry).collect()
}

fn describe(packet: &HeldPacket) -> String {
    let kind = if packet.marked { "marked packet" } else { "packet" };
    let hold = time(((packet.delivered_us - packet.arrived_us) * 10.0).round() / 10.0);
    format!(
        "{kind}, {} bytes, arrived at {}, held {hold}",
        packet.length_bytes,
        time(packet.arrived_us)
    )
}

fn summary(timeline: &Timeline, lanes: &[LaneView<'_>]) -> String {
    let lane = |lane: &LaneView<'_>| {
        format!("{}: {} packets, {}", lane.port, lane.packets.len(), lane.facts().join(", "))
    };
    let lanes: Vec<String> = lanes.iter().map(lane).collect();
    format!("Timeline of {}. {}.", timeline.setting, lanes.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::Interrupt;
    use super::*;

    fn packet(arrived_us: f64, delivered_us: f64) -> HeldPacket {
        HeldPacket { arrived_us, delivered_us, marked: true, length_bytes: 66 }
    }

    fn timeline(packets: Vec<HeldPacket>, interrupts: &[(f64, &str)]) -> Timeline {
        let interrupt = |&(at_us, reason): &(f64, &str)| Interrupt { at_us, reason: reason.into() };
        let interrupts = interrupts.iter().map(interrupt).collect();
        let lanes = vec![Lane { port: "server".into(), packets, interrupts }];
        Timeline {
            setting: "delay:75".into(),
            from_us: 100.0,
            to_us: 400.0,
            lanes,
            ..Default::default()
        }
    }

    #[test]
    fn bars_that_overlap_get_rows_of_their_own() {
        assert_eq!(stack(&[(0.0, 50.0), (10.0, 50.0), (20.0, 50.0), (60.0, 70.0)]), [0, 1, 2, 0]);
        let crowd = vec![(0.0, 100.0); 500];
        assert!(stack(&crowd).into_iter().all(|row| row < MOST_ROWS));
    }

    #[test]
    fn only_the_excerpt_is_drawn() {
        let packets = vec![
            packet(0.0, 50.0),
            packet(90.0, 120.0),
            packet(200.0, 1e9),
            packet(500.0, 600.0),
            packet(f64::NAN, 200.0),
            packet(200.0, f64::INFINITY),
            packet(200.0, f64::NAN),
            packet(300.0, 250.0),
        ];
        let timeline = timeline(packets, &[(50.0, "timer"), (120.0, "timer"), (f64::NAN, "mark")]);
        let svg = svg(&timeline, 300.0);
        assert_eq!(svg.matches("class=\"packet marked\"").count(), 3);
        assert_eq!(svg.matches("class=\"stem\"").count(), 1);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }

    #[test]
    fn words_meet_neither_shapes_nor_each_other() {
        let mut random = base::prng::Prng::new(3);
        for count in 1..120 {
            let mut at = || 100.0 + random.below(300_000) as f64 / 1e3;
            let interrupts: Vec<(f64, &str)> =
                (0..count).map(|it| (at(), REASONS[it % REASONS.len()].0)).collect();
            let timeline = timeline(Vec::new(), &interrupts);
            let x = Scale::linear((0.0, 300.0), (GUTTER, RIGHT));
            let lane = LaneView::new(&timeline.lanes[0], 100.0, 300.0, &x, 0.0);
            let words: Vec<Area> = lane.words(&x).into_iter().flatten().collect();
            let shapes = lane.interrupts.iter().map(|(at, _)| lane.shape(x.at(*at)));
            let shapes: Vec<Area> = shapes.collect();
            for (index, word) in words.iter().enumerate() {
                assert!(word.x + word.width <= WIDTH, "{word:?}");
                assert!(shapes.iter().chain(&words[..index]).all(|it| !it.meets(word)), "{word:?}");
            }
            assert!(count > 1 || words.len() == 1 || shapes[0].x > 850.0);
        }
    }

    #[test]
    fn timelines_share_a_scale() {
        let short = timeline(vec![packet(110.0, 130.0)], &[]);
        let long = Timeline { to_us: 700.0, ..short.clone() };
        assert_eq!(common_span_us(&[short.clone(), long]), 600.0);
        let width = |common| {
            let svg = svg(&short, common);
            let bar =
                svg.split("packet marked").nth(1).and_then(|rest| rest.split("width=\"").nth(1));
            bar.and_then(|rest| rest.split('"').next()).and_then(|width| width.parse::<f64>().ok())
        };
        let (half, full) = (width(600.0).unwrap(), width(300.0).unwrap());
        assert!((full - 2.0 * half).abs() < 0.2, "{full} {half}");
    }

    #[test]
    fn the_key_names_what_is_shown() {
        let key = key(&[timeline(Vec::new(), &[(1.0, "timer"), (2.0, "mark"), (3.0, "<odd>")])]);
        let reasons: Vec<&str> = key.iter().map(|entry| entry.reason.as_str()).collect();
        assert_eq!(reasons, ["mark", "timer", "<odd>"]);
        assert!(!key[2].icon.contains("<odd>"));
    }
}

//! Requests as both hosts have followed them. Pure.
//!
//! Both hosts know a request by the sequence number of its first byte, so a record of one finds
//! that of the other, whatever their clocks say. While this host knows only that the wire or the
//! far side has the request, the stages of the far host take the place of that; what is left of it
//! is the wire, and the NICs of both hosts. Lengths of time need no common clock.
//!
//! For the two ways of the wire one is needed. The first segment of a request is sent here before
//! it comes there, and that of the answer is sent there before it comes here: each bounds the
//! offset of the clocks from one side. Bounds of requests that are close in time hold for each
//! other, but for what clocks drift apart meanwhile.

use std::collections::HashMap;

use base::quantiles::nearest_rank;
use flows::record::{FlowRole, FlowStage, Stages, TracedRequest};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cause::{Ranked, RankedRequest};

/// Stages in which nothing is known but that the far side, or the wire, has the request.
pub(crate) const FAR: [FlowStage; 4] =
    [FlowStage::FarUnacked, FlowStage::FarAcked, FlowStage::RestUnacked, FlowStage::RestAcked];

/// Stages of the far host in which it waits for this one, or for the wire.
const WAITS: [FlowStage; 5] = [
    FlowStage::BetweenWrites,
    FlowStage::Connect,
    FlowStage::RestUnacked,
    FlowStage::RestAcked,
    FlowStage::OutOfOrder,
];

/// By how much two clocks drift apart at most, in nanoseconds a second: twice what a crystal may be
/// wrong by (50 ppm).
const DRIFT: f64 = 100_000.0;

/// So many requests before one, and after it, bound the offset of the clocks for it.
const NEIGHBOURS: usize = 64;

/// What the far host has followed, by the port of this host and the sequence number.
#[derive(Debug, Default)]
pub(crate) struct FarRequests {
    by_number: HashMap<(u16, u32), TracedRequest>,
}

impl FarRequests {
    /// Those that the far host has answered.
    pub(crate) fn new(all: impl IntoIterator<Item = TracedRequest>) -> Self {
        let answered = all.into_iter().filter(|it| it.role == FlowRole::Answers);
        let whole = answered.filter(|it| !it.partial.began_before && !it.partial.pipelined);
        let keyed = whole.filter_map(|it| Some(((it.flow.remote.port(), it.segments?.first), it)));
        Self { by_number: keyed.collect() }
    }

    fn of(&self, near: &TracedRequest) -> Option<&TracedRequest> {
        let key = (near.flow.local.port(), near.segments?.first);
        self.by_number.get(&key).filter(|_| near.role == FlowRole::Asks)
    }
}

/// How long the wire and the NICs take, each way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct WireTimes {
    /// At least this long from this host's driver to the far host's stack, in microseconds: the
    /// median.
    pub(crate) there_from_us: f64,
    /// At most this long.
    pub(crate) there_to_us: f64,
    /// At least this long from the far host's driver to this host's stack.
    pub(crate) back_from_us: f64,
    /// At most this long.
    pub(crate) back_to_us: f64,
    /// By how much the far clock is ahead of this host's, in microseconds: at least.
    pub(crate) offset_from_us: f64,
    /// By how much it is ahead at most, in microseconds.
    pub(crate) offset_to_us: f64,
}

/// Requests with what the far host has of them.
#[derive(Debug)]
pub(crate) struct BothEnds {
    pub(crate) ranked: Ranked,
    /// `None`: the times of segments do not agree on any offset of the clocks.
    pub(crate) wire: Option<WireTimes>,
}

/// The requests that both hosts have followed; `held`: for how long the far NIC is known to hold
/// what it receives, in nanoseconds.
pub(crate) fn join(near: &Ranked, far: &FarRequests, held: u64) -> BothEnds {
    let mut spans = Vec::new();
    let ranked = near.filter_map(|it| {
        let there = far.of(&it.request)?;
        spans.extend(Span::of(&it.request, there));
        Some(joined(it, there, held))
    });
    BothEnds { ranked, wire: wire_times(spans) }
}

fn joined(near: &RankedRequest, far: &TracedRequest, held: u64) -> RankedRequest {
    let mut near = near.clone();
    let stages = &mut near.request.stages;
    for stage in FAR {
        stages.shift(stage, FlowStage::Wire, u64::MAX);
    }
    let open = stages.of(FlowStage::Wire);
    let mut far = far.clone();
    WAITS.into_iter().for_each(|stage| far.stages.set(stage, 0));
    // What this host did meanwhile has its own stage.
    if far.stages.total() > open {
        far.stages = shortened(&far.stages, open);
    }
    stages.set(FlowStage::Wire, open - far.stages.total());
    let hold = held.min(stages.of(FlowStage::Wire));
    stages.set(FlowStage::Wire, stages.of(FlowStage::Wire) - hold);
    far.stages.add(FlowStage::Hold, hold);
    near.far = Some(Box::new(RankedRequest { request: far, idle: None, far: None }));
    near
}

/// Stages that are together as long as `whole`, with the same shares.
fn shortened(stages: &Stages, whole: u64) -> Stages {
    let total = stages.total().max(1);
    let mut short = Stages::default();
    for (stage, nanos) in stages.iter() {
        short.set(stage, (u128::from(nanos) * u128::from(whole) / u128::from(total)) as u64);
    }
    short
}

/// The four times of a request: this clock's, and the far one's.
#[derive(Clone, Copy, Debug)]
struct Span {
    sent: u64,
    came: u64,
    far_came: u64,
    far_sent: u64,
}

impl Span {
    fn of(near: &TracedRequest, far: &TracedRequest) -> Option<Self> {
        let (near, far) = (near.segments?, far.segments?);
        let (sent, came) = (near.sent?, near.came?);
        Some(Self { sent, came, far_came: far.came?, far_sent: far.sent? })
    }

    /// How far the far clock is ahead: at least, and at most. In nanoseconds.
    fn bounds(&self) -> (f64, f64) {
        let between = |later: u64, earlier: u64| later.wrapping_sub(earlier) as i64 as f64;
        (between(self.far_sent, self.came), between(self.far_came, self.sent))
    }
}

/// The two ways of the wire, by the requests that are close to each other in time.
fn wire_times(mut spans: Vec<Span>) -> Option<WireTimes> {
    spans.sort_by_key(|span| span.sent);
    let mut all: [Vec<f64>; 6] = Default::default();
    for (at, span) in spans.iter().enumerate() {
        let close = &spans[at.saturating_sub(NEIGHBOURS)..(at + NEIGHBOURS + 1).min(spans.len())];
        let (mut low, mut high) = (f64::MIN, f64::MAX);
        for other in close {
            let drift = DRIFT * other.sent.abs_diff(span.sent) as f64 / 1e9;
            let (from, to) = other.bounds();
            (low, high) = (low.max(from - drift), high.min(to + drift));
        }
        if low > high {
            continue;
        }
        let (from, to) = span.bounds();
        // There: from our driver to the far stack; back: from the far driver to our stack.
        let ways = [to - high, to - low, low - from, high - from, low, high];
        all.iter_mut().zip(ways).for_each(|(all, way)| all.push(way));
    }
    let [there_from_us, there_to_us, back_from_us, back_to_us, offset_from_us, offset_to_us] = all
        .map(|mut values| {
            values.sort_by(f64::total_cmp);
            nearest_rank(&values, 500).map(|nanos| nanos / 1e3)
        });
    Some(WireTimes {
        there_from_us: there_from_us?,
        there_to_us: there_to_us?,
        back_from_us: back_from_us?,
        back_to_us: back_to_us?,
        offset_from_us: offset_from_us?,
        offset_to_us: offset_to_us?,
    })
}

/// Requests made by hand as both hosts see them, for tests.
#[cfg(test)]
pub(crate) mod checks {
    use super::*;
    use crate::cause::checks::request;
    use flows::record::SegmentTimes;

    pub(crate) const AHEAD: u64 = 7_000_000_000_000;

    /// A request that takes 20 us to send, 30 us there, 200 us of a lock, 40 us back, and what the
    /// far host has of it, whose clock is ahead.
    pub(crate) fn pair(number: u64) -> (TracedRequest, TracedRequest) {
        let stages =
            [(FlowStage::StackOut, 20), (FlowStage::FarUnacked, 280), (FlowStage::Read, 5)];
        let mut near = request(number, &stages);
        let sent = near.begin + 20_000;
        let first = 1_000 * number as u32;
        near.segments = Some(SegmentTimes { first, sent: Some(sent), came: Some(sent + 280_000) });
        let stages =
            [(FlowStage::RestAcked, 90), (FlowStage::Lock, 200), (FlowStage::StackOut, 10)];
        let mut far = request(number, &stages);
        let came = sent + 30_000 + AHEAD;
        far.role = FlowRole::Answers;
        (far.begin, far.end) = (came, came + 210_000);
        far.segments = Some(SegmentTimes { first, sent: Some(came + 210_000), came: Some(came) });
        (near, far)
    }
}

#[cfg(test)]
mod tests {
    use super::checks::{AHEAD, pair};
    use super::*;

    fn both(held: u64) -> BothEnds {
        let (near, far): (Vec<_>, Vec<_>) = (0..9).map(pair).unzip();
        join(&Ranked::new(near), &FarRequests::new(far), held)
    }

    #[test]
    fn stages_of_the_far_host_take_the_place_of_what_was_not_known() {
        let BothEnds { ranked, .. } = both(0);
        assert_eq!(ranked.len(), 9);
        let one = &ranked.all()[0];
        let far = one.far.as_ref().unwrap().request.stages;
        assert_eq!((far.of(FlowStage::Lock), far.of(FlowStage::RestAcked)), (200_000, 0));
        assert_eq!(one.request.stages.of(FlowStage::Wire), 70_000);
        assert_eq!(one.request.stages.of(FlowStage::FarUnacked), 0);
        assert_eq!(one.total(), one.request.length(), "it adds up");
        let held = both(25_000).ranked;
        let one = &held.all()[0];
        assert_eq!(one.request.stages.of(FlowStage::Wire), 45_000);
        assert_eq!(one.far.as_ref().unwrap().request.stages.of(FlowStage::Hold), 25_000);
    }

    #[test]
    fn far_stages_are_no_longer_than_what_they_take_the_place_of() {
        let (mut near, far) = pair(1);
        near.stages.set(FlowStage::FarUnacked, 105_000);
        near.stages.set(FlowStage::StackOut, 195_000);
        let both = join(&Ranked::new([near]), &FarRequests::new([far]), 0);
        let one = &both.ranked.all()[0];
        assert_eq!(one.request.stages.of(FlowStage::Wire), 0);
        assert_eq!(one.far.as_ref().unwrap().request.stages.of(FlowStage::Lock), 100_000);
        assert_eq!(one.total(), one.request.length());
    }

    #[test]
    fn requests_without_their_other_half_are_left_out() {
        let (near, far) = pair(1);
        let mut other = far.clone();
        other.segments.as_mut().unwrap().first += 1;
        let mut pipelined = far.clone();
        pipelined.partial.pipelined = true;
        let mut asked = far;
        asked.role = FlowRole::Asks;
        for far in [other, pipelined, asked] {
            let ranked = Ranked::new([near.clone()]);
            let both = join(&ranked, &FarRequests::new([far]), 0);
            assert!(both.ranked.is_empty() && both.wire.is_none());
        }
    }

    #[test]
    fn segments_of_both_directions_bound_the_clocks() {
        // All ways are alike, so nothing narrows the bounds: 70 us between both ways.
        let wire = both(0).wire.unwrap();
        let offset = AHEAD as f64 / 1e3;
        assert_eq!((wire.offset_from_us, wire.offset_to_us), (offset - 40.0, offset + 30.0));
        assert_eq!((wire.there_from_us, wire.there_to_us), (0.0, 70.0));
        assert_eq!((wire.back_from_us, wire.back_to_us), (0.0, 70.0));
        // One that is fast on the way there, 1 us before another that is fast on the way back.
        let fast = |sent: u64, there: u64, back: u64| Span {
            sent,
            far_came: sent + there + AHEAD,
            far_sent: sent + there + AHEAD + 1_000,
            came: sent + there + 1_000 + back,
        };
        let spans =
            vec![fast(0, 2_000, 40_000), fast(1_000, 30_000, 3_000), fast(2_000, 30_000, 40_000)];
        let wire = wire_times(spans).unwrap();
        assert!(
            wire.offset_from_us >= offset - 3.2 && wire.offset_to_us <= offset + 2.2,
            "{wire:?}"
        );
        assert!(wire.there_from_us > 27.0 && wire.there_to_us < 34.0, "{wire:?}");
        // Clocks that jump agree on nothing.
        let jumped = Span { far_came: 5, far_sent: 9, ..fast(0, 1, 1) };
        assert!(wire_times(vec![fast(0, 1, 1), jumped]).is_none());
    }
}

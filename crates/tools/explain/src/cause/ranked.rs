//! Many requests as one table.
//!
//! Quantiles of stages do not add up to the quantile of the whole. So besides them there are two
//! columns that do: *typical*, the mean of the requests in the middle tenth by their length, and
//! *slow*, the mean of the slowest hundredth.

use std::collections::BTreeMap;

use base::quantiles::{Quantiles, nearest_rank};
use flows::record::{FlowStage, Stages, TracedRequest};
use schemars::JsonSchema;
use serde::Serialize;

/// Requests that are kept at most: more do not make quantiles better.
const MOST: usize = 100_000;

/// Fewer requests than this make no table.
pub(crate) const FEWEST: usize = 5;

/// Requests in the order of their lengths.
#[derive(Clone, Debug, Default)]
pub struct Ranked {
    requests: Vec<RankedRequest>,
}

/// A request with what others say of it.
#[derive(Clone, Debug)]
pub(crate) struct RankedRequest {
    pub request: TracedRequest,
    /// Nanoseconds since the end of the one before on its flow; `None`: there was none.
    pub idle: Option<u64>,
    /// The same request as the far host has followed it, with the stages that are its own.
    pub far: Option<Box<Self>>,
}

impl RankedRequest {
    /// Nanoseconds of a stage of either host.
    pub(crate) fn of(&self, at: HostStage) -> u64 {
        let request = if at.far { self.far.as_deref() } else { Some(self) };
        request.map_or(0, |it| it.request.stages.of(at.stage))
    }

    /// Nanoseconds of all stages of both hosts.
    pub(crate) fn total(&self) -> u64 {
        let far = self.far.as_ref().map_or(0, |it| it.request.stages.total());
        self.request.stages.total() + far
    }
}

/// A stage of this host, or of the far one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HostStage {
    /// What requests waited for.
    pub stage: FlowStage,
    /// Whether it is one of the far host, as that has followed it (`--with`).
    pub far: bool,
}

impl HostStage {
    /// One of this host.
    pub(crate) const fn near(stage: FlowStage) -> Self {
        Self { stage, far: false }
    }

    /// All of them, in the order of a request: those of the far host after the wire.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let wire = FlowStage::ALL.iter().position(|stage| *stage == FlowStage::Wire);
        let (there, back) = FlowStage::ALL.split_at(wire.unwrap_or(0) + 1);
        let far = FlowStage::ALL.iter().map(|stage| Self { stage: *stage, far: true });
        let near = |stage: &FlowStage| Self::near(*stage);
        there.iter().map(near).chain(far).chain(back.iter().map(near))
    }

    /// As tables have it.
    pub(crate) fn name(self) -> String {
        let place = if self.far { "there: " } else { "" };
        format!("{place}{}", self.stage.name())
    }
}

impl Ranked {
    /// Those whose beginning was seen.
    pub fn new(requests: impl IntoIterator<Item = TracedRequest>) -> Self {
        let whole = |request: &TracedRequest| !request.partial.began_before;
        let mut all: Vec<TracedRequest> = requests.into_iter().collect();
        all.sort_by_key(|request| request.begin);
        let mut ends = BTreeMap::new();
        let mut ranked = Vec::new();
        for request in all {
            let before = ends.insert(request.flow.socket, request.end);
            let idle = before.map(|end| request.begin.saturating_sub(end));
            if whole(&request) && ranked.len() < MOST {
                ranked.push(RankedRequest { request, idle, far: None });
            }
        }
        ranked.sort_by_key(|it| it.request.length());
        Self { requests: ranked }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// These and others together.
    pub(crate) fn with<'a>(&self, others: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut all = self.requests.clone();
        others.into_iter().for_each(|it| all.extend_from_slice(&it.requests));
        all.sort_by_key(|it| it.request.length());
        Self { requests: all }
    }

    /// The least round trip that TCP has seen on their flows, in microseconds.
    pub(crate) fn least_rtt_us(&self) -> Option<f64> {
        let all = self.requests.iter().filter_map(|it| it.request.tcp?.min_rtt_us);
        all.min().map(f64::from)
    }

    /// Whether segments of any of them were sent again.
    pub(crate) fn has_losses(&self) -> bool {
        let counts = self.requests.iter().map(|it| &it.request.counts);
        counts.into_iter().any(|it| it.timeouts + it.fast_retransmissions > 0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// All of them, the fastest first.
    pub(crate) fn all(&self) -> &[RankedRequest] {
        &self.requests
    }

    /// The middle tenth, and at least one if there is any.
    pub(crate) fn typical(&self) -> &[RankedRequest] {
        let (half, middle, all) = (self.len() / 20, self.len() / 2, self.len());
        &self.requests[middle - half.min(middle)..(middle + half + 1).min(all)]
    }

    /// The slowest hundredth, and at least one if there is any.
    pub(crate) fn slowest(&self) -> &[RankedRequest] {
        &self.requests[self.len() - self.len().div_ceil(100)..]
    }

    /// Moves up to that many nanoseconds of each request from one stage to another.
    pub(crate) fn shift(&mut self, from: FlowStage, to: FlowStage, nanos: u64) {
        for it in &mut self.requests {
            it.request.stages.shift(from, to, nanos);
        }
    }

    /// The median of what `of` makes of their stages; `None` without requests.
    pub(crate) fn median_of(&self, of: impl Fn(&Stages) -> u64) -> Option<u64> {
        nearest_rank(&self.sorted(|it| of(&it.request.stages)), 500)
    }

    /// Those of which `of` makes others, in the same order.
    pub(crate) fn filter_map(
        &self,
        of: impl FnMut(&RankedRequest) -> Option<RankedRequest>,
    ) -> Self {
        Self { requests: self.requests.iter().filter_map(of).collect() }
    }

    /// Calls `each` with every request's nanoseconds in a stage, for all stages that occur.
    pub(crate) fn each(&self, mut each: impl FnMut(FlowStage, u64)) {
        for stage in FlowStage::ALL {
            let nanos = || self.requests.iter().map(|it| it.request.stages.of(stage));
            if nanos().any(|nanos| nanos > 0) {
                nanos().for_each(|nanos| each(stage, nanos));
            }
        }
    }

    /// The table; `None` if there are too few requests for one.
    pub fn table(&self) -> Option<RequestTable> {
        if self.len() < FEWEST {
            return None;
        }
        let times = |of: &dyn Fn(&RankedRequest) -> u64, sorted: &[u64]| LengthTimes {
            typical_us: mean_us(self.typical(), of),
            slow_us: mean_us(self.slowest(), of),
            quantiles_us: Quantiles::of_sorted(sorted).unwrap_or_default(),
        };
        let stages = HostStage::all().filter_map(|at| {
            let of = |it: &RankedRequest| it.of(at);
            let sorted = self.sorted(of);
            sorted.last().filter(|most| **most > 0)?;
            Some(StageLine { at, times: times(&of, &sorted) })
        });
        Some(RequestTable {
            requests: self.len(),
            stages: stages.collect(),
            total: times(&RankedRequest::total, &self.sorted(RankedRequest::total)),
        })
    }

    fn sorted(&self, of: impl Fn(&RankedRequest) -> u64) -> Vec<u64> {
        let mut values: Vec<u64> = self.requests.iter().map(of).collect();
        values.sort_unstable();
        values
    }
}

/// The mean over some requests, in microseconds.
fn mean_us(requests: &[RankedRequest], of: impl Fn(&RankedRequest) -> u64) -> f64 {
    let sum: u64 = requests.iter().map(of).sum();
    sum as f64 / requests.len().max(1) as f64 / 1e3
}

/// What many requests take, in a stage or as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LengthTimes {
    /// The mean of typical requests, in microseconds.
    pub typical_us: f64,
    /// The mean of the slowest hundredth, in microseconds.
    pub slow_us: f64,
    /// The quantiles of all requests, in microseconds.
    pub quantiles_us: Quantiles,
}

/// A stage of many requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StageLine {
    /// What requests waited for, on which host.
    #[serde(flatten)]
    pub at: HostStage,
    /// What it takes.
    #[serde(flatten)]
    pub times: LengthTimes,
}

/// All stages that occur in many requests, and the whole.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RequestTable {
    /// How many requests.
    pub requests: usize,
    /// The stages that occur, in the order of a request.
    pub stages: Vec<StageLine>,
    /// From the first byte to the last.
    pub total: LengthTimes,
}

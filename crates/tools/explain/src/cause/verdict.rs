//! What is concluded from requests.

use schemars::JsonSchema;
use serde::Serialize;

use super::ranked::HostStage;
use super::text::CauseAdvice;
use super::{FlowCause, Side};

/// What is concluded from many requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct RequestVerdict {
    /// Of the middle tenth.
    pub typical: PartVerdict,
    /// Of all: a mean has what few requests take very long for.
    pub mean: PartVerdict,
    /// Of the slowest hundredth. Where these, or all, take half as long again as typical ones, the
    /// causes are in the order of what their stages take more than in typical ones.
    pub slowest: PartVerdict,
    /// Stages that are short in every request.
    pub acquitted: Vec<Acquitted>,
    /// Requests during which others were in flight on their socket: what belongs to which, sequence
    /// numbers do not say.
    pub pipelined: usize,
}

/// What is concluded from a part of the requests.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PartVerdict {
    /// How many requests.
    pub requests: usize,
    /// What they take on average, in microseconds.
    pub total_us: f64,
    /// The share of that which stages account for. Below 0.9 there are no causes.
    pub accounted: f64,
    /// The causes of most of that, the largest first.
    pub causes: Vec<CauseGroup>,
}

/// Causes of the same time: the data of this host fits each of them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CauseGroup {
    /// One, or all that the data fits.
    pub causes: Vec<FlowCause>,
    /// Whose that is, if it is the same for all of them.
    pub side: Side,
    /// How much of a request it is, in microseconds.
    pub us: f64,
    /// How much of a request it is, from 0 to 1.
    pub share: f64,
    /// In a sentence for people.
    pub what: String,
    /// What else was seen of it, for people.
    pub seen: Option<String>,
    /// The stack of user space in which most of its requests were blocked for longest, the
    /// innermost function first; none unless stacks were asked for.
    pub stack: Vec<String>,
    /// What to do, for each of them.
    pub advice: Vec<CauseAdvice>,
    /// Commands that separate them, if there are several.
    pub separates: Vec<String>,
}

/// A stage that is short in every request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Acquitted {
    /// What requests waited for, on which host.
    #[serde(flatten)]
    pub at: HostStage,
    /// The most that a request has of it, in microseconds.
    pub at_most_us: f64,
}

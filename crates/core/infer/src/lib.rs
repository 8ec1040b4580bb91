#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod adaptive;
mod apart;
mod clumps;
mod deferral;
mod direction;
mod edge;
mod explanation;
mod fit;
mod frames;
mod judge;
mod lengths;
mod limits;
mod measured;
mod periodic;
mod plan;
mod quiet;
mod series;
mod side;
mod stats;
mod train;
mod unclear;
mod verdict;
mod waking;
mod words;

pub use clumps::{ClumpEvidence, Clumping, Clumps};
pub use judge::{judge, judge_varied};
pub use measured::{Far, MeasuredTrain, Probe};
pub use plan::{Abilities, Plan};
pub use train::{Length, PlannedProbe, Purpose, Train};
pub use verdict::{
    Family, Finding, Interval, Lengths, NoHold, OtherDelay, Place, PlaceVerdict, Unclear,
    UnclearReason, Verdict,
};

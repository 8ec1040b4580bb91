//! From requests to causes. Pure.
//!
//! # Theory of operation
//!
//! ```text
//! requests ─▶ ranked ─▶ judge ─▶ text
//!             parts     causes   sentences of causes.toml
//! ```
//!
//! Three *parts* of the requests are judged, each by itself: the typical ones (the middle tenth by
//! their length), all of them (the mean), and the slowest hundredth. What makes requests slow in
//! one of a hundred cases is nowhere in the typical ones, and the other way round.
//!
//! Of a part, the stages with most of the time are named, each with its cause. Where the data of
//! this host fits several causes of one stage, all of them are named, with the command that
//! separates them. What this host does to receive (softirq, stack, the wait for a processor) is one
//! cause where only together it takes the most: the same busy processor makes all of it longer.
//! Where stages account for less than 90 % of the time, nothing is named.
//! A stage is acquitted only by the largest value that it has in any request.

#[cfg(test)]
pub(crate) mod checks;
mod judge;
mod ranked;
#[cfg(test)]
mod tests;
mod text;
mod verdict;

use schemars::JsonSchema;
use serde::Serialize;

use super::evidence::{Far, OwnHold};

pub(crate) use ranked::RankedRequest;
pub use ranked::{HostStage, Ranked, RequestTable, StageLine};
pub use verdict::{Acquitted, CauseGroup, PartVerdict, RequestVerdict};

/// The share of a part that stages have to account for, or nothing is concluded from it.
pub(crate) const ACCOUNTED: f64 = 0.9;

/// Whose a cause is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// That of this host.
    Mine,
    /// The far side.
    Theirs,
    /// What is between the two.
    Between,
    /// The data does not tell.
    Unknown,
}

/// Why requests take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FlowCause {
    /// The connection is set up for the request.
    Connection,
    /// The program does something between the writes of a request, or before the first.
    BetweenWrites,
    /// This host's stack, on the way to the device.
    StackOut,
    /// The send buffer is full.
    SendBuffer,
    /// Nagle's algorithm here waits for an acknowledgement, which the far side delays.
    Nagle,
    /// Nagle's algorithm of the far side waits for an acknowledgement, which this host delays.
    FarNagle,
    /// TCP Small Queues, pacing, or a cork.
    Pacing,
    /// The congestion window, which has not grown yet.
    CongestionWindow,
    /// The congestion window, which a pause has reset.
    CwndAfterIdle,
    /// The congestion window, which losses have reduced.
    CwndAfterLoss,
    /// The receiver's window is full.
    ReceiverWindow,
    /// The queueing discipline.
    Qdisc,
    /// The driver, and its transmit ring.
    Driver,
    /// Segments of this host were lost, or taken for lost.
    Loss,
    /// Segments of the far side were lost.
    FarLoss,
    /// Segments of the far side came in another order.
    Reordering,
    /// The far program.
    FarProgram,
    /// The far program or machine sleeps, and wakes up late.
    FarAsleep,
    /// The far NIC holds packets.
    FarHold,
    /// The way there and back.
    Way,
    /// This NIC holds packets.
    Hold,
    /// A timer of this host defers polling.
    Deferral,
    /// The softirq that receives comes late.
    Softirq,
    /// This host's stack, receiving.
    StackIn,
    /// Softirq, stack and the wait for a processor together, none of which is it alone.
    Receiving,
    /// The program is woken and waits for a processor.
    WakeUp,
    /// The data is there and the program runs elsewhere.
    Elsewhere,
    /// The call that reads.
    Read,
    /// Others have the processor.
    Preempted,
    /// The cgroup of the program has used up its quota of processors.
    Throttled,
    /// The program waits for a lock.
    Lock,
    /// The program waits for a disk.
    Disk,
    /// The program sleeps.
    Sleep,
    /// The program is blocked by something else.
    Blocked,
    /// The program computes.
    Computes,
    /// The processor may not run as fast as it can.
    Frequency,
}

impl FlowCause {
    /// Whose it is.
    pub(crate) fn side(self) -> Side {
        match self {
            Self::ReceiverWindow
            | Self::FarNagle
            | Self::FarProgram
            | Self::FarAsleep
            | Self::FarHold => Side::Theirs,
            Self::CongestionWindow
            | Self::CwndAfterLoss
            | Self::Loss
            | Self::FarLoss
            | Self::Reordering
            | Self::Connection
            | Self::Way => Side::Between,
            _ => Side::Mine,
        }
    }
}

/// What is known beside the requests, of the time in which they were made.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The device of the requests, if there is one.
    pub(crate) device: Option<&'a str>,
    /// The hold of its NIC.
    pub(crate) own_hold: &'a OwnHold,
    /// What references show of the far side; `None` without references.
    pub(crate) far: Option<Far>,
    /// How long the far NIC holds packets at most, by what the far host says, in microseconds;
    /// `None`: nothing says it.
    pub(crate) far_hold_up_to_us: Option<f64>,
    /// For how long the program's cgroup was throttled in all, in microseconds.
    pub(crate) throttled_us: Option<f64>,
    /// Whether a pause resets the congestion window (`tcp_slow_start_after_idle`).
    pub(crate) slow_start_after_idle: Option<bool>,
    /// The highest frequency that processors may have now, as a share of what they can.
    pub(crate) frequency: Option<f64>,
    /// Packets that the device receives a second.
    pub(crate) packets_per_s: f64,
}

impl Facts<'_> {
    /// What is known of the far host, as far as its requests do not say it: nothing.
    pub(crate) fn of_far_host(&self) -> Facts<'static> {
        Facts {
            device: None,
            own_hold: &OwnHold::Unknown,
            far: None,
            far_hold_up_to_us: None,
            throttled_us: None,
            slow_start_after_idle: None,
            frequency: None,
            packets_per_s: self.packets_per_s,
        }
    }
}

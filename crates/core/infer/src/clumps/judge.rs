//! What the clumps of a capture say.

use crate::verdict::{Family, Interval};

use super::Clump;
use super::edge::{Edge, Shape, distances};
use super::levels::Levels;
use super::wire::WireSpacing;
use super::zone::{Visits, is_full_wire};

/// Packets that ought to be in zones before something is said.
pub(super) const ENOUGH: f64 = 50.0;
/// The part of those that may be there all the same, where something holds.
pub(super) const HARDLY: f64 = 0.1;
/// The part of those from which on nothing holds.
const MANY: f64 = 0.4;
/// Clumps of several flows that there have to be: else each sender may keep to a time of its own.
const MIXED: usize = 20;
/// Zones that are looked at where there is no edge, in nanoseconds.
const SHORT_ZONE_NS: f64 = 8_000.0;
/// Nothing longer is a hold of a NIC, and what is shorter a host may do that takes its time to
/// poll, in nanoseconds.
const HOLDS_NS: core::ops::RangeInclusive<f64> = 9_000.0..=2_500_000.0;
/// What an interrupt and its poll take a host, at most, in nanoseconds.
const POLL_NS: f64 = 6_000.0;
/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClumpEvidence {
    /// Clumps that were looked at.
    pub clumps: u64,
    /// Packets that ought to be in the zones behind clumps if flows were independent.
    pub expected: f64,
    /// Packets that are.
    pub seen: u64,
}

/// Whether something held the packets of a capture.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case", tag = "verdict"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Clumping {
    /// Something held them.
    Held {
        /// Of which family it is; none if two look alike here.
        family: Option<Family>,
        /// The shortest time from one interrupt to the next.
        hold: Interval,
        /// What was counted.
        evidence: ClumpEvidence,
    },
    /// Flows explain all clumps: nothing holds for longer than a few microseconds.
    Free {
        /// What was counted.
        evidence: ClumpEvidence,
    },
    /// Stamps follow the wire: the NIC or a tap has taken them, or nothing held these packets.
    Wire {
        /// Mbit/s of the wire.
        rate_mbit: u64,
    },
    /// The capture cannot tell.
    Unclear {
        /// Why, and what would.
        why: &'static str,
    },
}

pub(super) fn judge(clumps: &[Clump], wire: &WireSpacing) -> Clumping {
    if let Some(rate_mbit) = wire.rate() {
        return Clumping::Wire { rate_mbit };
    }
    let distances = distances(clumps);
    match Edge::find(&distances).filter(|edge| HOLDS_NS.contains(&edge.at)) {
        Some(edge) => match held(clumps, edge) {
            Ok((edge, evidence)) => {
                let shape = edge.shape(clumps, &distances);
                let family = match shape {
                    Shape::Throttle => Some(Family::Throttle),
                    Shape::Delay => Some(Family::Delay),
                    Shape::Periodic => Some(Family::Periodic),
                    Shape::Unclear => None,
                };
                Clumping::Held { family, hold: interval(&edge, shape), evidence }
            }
            Err(why) => adaptive(clumps).unwrap_or(why),
        },
        None => adaptive(clumps).unwrap_or_else(|| free(clumps)),
    }
}

/// How long it holds. A delay begins with the first packet that comes after a poll, so its edge is
/// later by what a poll takes at least.
fn interval(edge: &Edge, shape: Shape) -> Interval {
    let half = 3.0 * edge.spread / (edge.count as f64).sqrt() + 1_000.0;
    match shape {
        Shape::Throttle | Shape::Periodic => Interval::around(edge.at / 1e3, half / 1e3),
        Shape::Delay | Shape::Unclear => {
            let low = (edge.low - POLL_NS).max(0.0);
            let value = edge.low - POLL_NS / 2.0;
            Interval { value: value / 1e3, low: low / 1e3, high: (edge.low + half) / 1e3 }
        }
    }
}

/// Whether zones up to the edge are as empty as a hold makes them.
fn held(clumps: &[Clump], edge: Edge) -> Result<(Edge, ClumpEvidence), Clumping> {
    let visits = Visits::of(clumps, edge.at);
    let evidence = evidence(clumps, visits);
    let mixed = clumps.iter().filter(|clump| clump.flow_count() > 1).count();
    if visits.expected < ENOUGH || mixed < MIXED {
        return Err(Clumping::Unclear {
            why: "nearly all packets are of one flow, or no two flows met: what it does by itself \
                  looks like a hold; a capture with several flows would tell",
        });
    }
    if is_full_wire(clumps, edge.at) {
        return Err(Clumping::Unclear {
            why: "the wire was full, which has distances of its own; a capture at less load would \
                  tell",
        });
    }
    match visits.seen as f64 / visits.expected {
        part if part <= HARDLY => Ok((edge, evidence)),
        // The edge is what a sender does. There may be shorter zones.
        part if part >= MANY => Err(free(clumps)),
        _ => Err(Clumping::Unclear {
            why: "flows keep away from each other more than chance would have it, and less than a \
                  hold would; they may depend on each other, or on several queues",
        }),
    }
}

fn evidence(clumps: &[Clump], visits: Visits) -> ClumpEvidence {
    let Visits { expected, seen } = visits;
    ClumpEvidence { clumps: clumps.len() as u64, expected, seen }
}

/// A hold whose length changes from one stretch of the capture to another. Its waits begin with a
/// packet, as a delay's do.
fn adaptive(clumps: &[Clump]) -> Option<Clumping> {
    let Levels { shortest, usual, longest, evidence } = Levels::find(clumps)?;
    let wait = |level: f64| (level - POLL_NS / 2.0) / 1e3;
    let hold = Interval { value: wait(usual), low: wait(shortest), high: wait(longest) };
    Some(Clumping::Held { family: Some(Family::Adaptive), hold, evidence })
}

/// Where there is no edge: whether packets visit short zones as they ought to.
fn free(clumps: &[Clump]) -> Clumping {
    let visits = Visits::of(clumps, SHORT_ZONE_NS);
    if visits.expected >= ENOUGH && visits.seen as f64 >= MANY * visits.expected {
        return Clumping::Free { evidence: evidence(clumps, visits) };
    }
    Clumping::Unclear {
        why: "distances of clumps have no sharp edge, and too few packets of other flows would meet \
              a hold; a longer capture under more load would tell",
    }
}

impl Clumping {
    /// It in a sentence.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Held { family, hold, evidence } => {
                let of = match family {
                    Some(Family::Adaptive) => format!(
                        "a hold that changes, from {:.0} to {:.0} us (adaptive)",
                        hold.low, hold.high
                    ),
                    Some(family) => format!("a hold of {:.0} us ({family})", hold.value),
                    None => format!(
                        "a hold of {:.0} us, of a family that these packets do not show",
                        hold.value
                    ),
                };
                format!(
                    "Packets went through {of}: of independent flows {:.0} packets would be in the \
                     gaps between clumps, and {} are.",
                    evidence.expected, evidence.seen
                )
            }
            Self::Free { evidence } => format!(
                "Flows explain how packets are clumped: {} are in the gaps between clumps, where of \
                 independent flows {:.0} would be. Nothing held them for more than some us.",
                evidence.seen, evidence.expected
            ),
            Self::Wire { rate_mbit } => format!(
                "Stamps follow a wire of {rate_mbit} Mbit/s: a NIC or a tap has taken them, or \
                 nothing held these packets. They say the truth."
            ),
            Self::Unclear { why } => {
                format!("Whether something held these packets is open: {why}.")
            }
        }
    }
}

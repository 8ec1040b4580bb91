//! Rules that would mark what waits in vain.
//!
//! A mark ends the hold of its packet, and of all that wait with it. Whether that costs an
//! interrupt depends on the traffic: a lone packet has an interrupt anyway, only later. So each
//! rule that the traffic suggests goes through the NIC, and is judged by the time that packets
//! wait less for each interrupt more. What the program behind a packet is worth is not in a
//! capture.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use nic::headers::{TCP, UDP};
use nic::lanes::LaneError;
use nic::marker::{Condition, Rules};
use nic::moderation::{Marks, Moderation};

use crate::arrival::ArrivedPacket;
use crate::grid::run;
use crate::run::RunSettings;

/// Ports and code points that are tried, those of most packets.
const MOST: usize = 8;
/// Lengths below which a segment with PSH counts as small.
const SMALL: [u16; 3] = [128, 256, 512];
/// Packets of a port or code point that are worth a rule.
const FEWEST: u64 = 10;

/// A rule, and what marks would be worth if it chose them.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proposal {
    /// The rule as text.
    pub rule: String,
    /// The setting that it was tried with.
    pub setting: String,
    /// The part of packets that it marks.
    pub marked: f64,
    /// Interrupts per second more than without marks; negative if fewer.
    pub more_interrupts_per_s: f64,
    /// Seconds that packets wait less, all together, in a second of the capture.
    pub saved_s_per_s: f64,
    /// Microseconds that packets wait less for each interrupt more; none if no more are needed.
    pub saved_us_per_interrupt: Option<f64>,
    /// The median hold of all packets then, microseconds.
    pub hold_p50_us: f64,
    /// Rules for a NIC that has queues and filters, but no marks (`earmark lane`), if it can tell
    /// these packets.
    pub lane: Option<String>,
    /// Interrupts per second more than without, if a lane has them.
    pub lane_more_interrupts_per_s: Option<f64>,
}

/// Tries the rules that `arrivals` suggest, over the timer of `base`; the best come first, by what
/// they save for an interrupt more.
///
/// # Errors
/// If there are no queues for lanes.
pub fn propose(
    base: Moderation,
    arrivals: &[ArrivedPacket],
    settings: &RunSettings,
) -> Result<Vec<Proposal>, LaneError> {
    let plain = Moderation { marks: Marks::Ignored, gap_usecs: 0, ..base };
    let without = run(plain, arrivals, settings)?;
    let marked = Moderation { marks: Marks::Immediate, ..plain };
    let lane = Moderation { marks: Marks::Lane, ..plain };
    if marked.checked().is_err() || without.packets == 0 {
        return Ok(Vec::new());
    }
    let held = |outcome: &crate::SettingOutcome| {
        outcome.hold_us.map_or(0.0, |hold| hold.mean * hold.count as f64)
    };
    let per_s = without.interrupts_per_s / without.interrupts.max(1) as f64;
    let mut proposals = Vec::new();
    for text in candidates(arrivals) {
        // Texts of ours are rules.
        let Ok(rules) = text.parse::<Rules>() else { continue };
        let lane_rule = lane_of(&rules);
        let settings = RunSettings { rules, ..settings.clone() };
        let with = run(marked, arrivals, &settings)?;
        let saved_us = held(&without) - held(&with);
        if with.marked == 0 || saved_us <= 0.0 {
            continue;
        }
        let more = with.interrupts as f64 - without.interrupts as f64;
        let in_lane = match &lane_rule {
            Some(_) => Some(run(lane, arrivals, &settings)?),
            None => None,
        };
        proposals.push(Proposal {
            rule: text,
            setting: with.setting,
            marked: with.marked as f64 / with.packets.max(1) as f64,
            more_interrupts_per_s: more * per_s,
            saved_s_per_s: saved_us * per_s / 1e6,
            saved_us_per_interrupt: (more > 0.0).then(|| saved_us / more),
            hold_p50_us: with.hold_us.map_or(0.0, |hold| hold.p50),
            lane: lane_rule,
            lane_more_interrupts_per_s: in_lane
                .map(|it| it.interrupts_per_s - without.interrupts_per_s),
        });
    }
    let worth = |it: &Proposal| it.saved_us_per_interrupt.unwrap_or(f64::INFINITY);
    let order = |a: &Proposal, b: &Proposal| {
        let saved = b.saved_s_per_s.total_cmp(&a.saved_s_per_s);
        worth(b).total_cmp(&worth(a)).then(saved).then(b.lane.is_some().cmp(&a.lane.is_some()))
    };
    proposals.sort_by(order);
    // Of rules that mark the same one is enough: one for filters of NICs, or else the simplest.
    let effect = |it: &Proposal| (it.marked, it.more_interrupts_per_s, it.saved_s_per_s);
    proposals.dedup_by(|later, kept| effect(later) == effect(kept));
    Ok(proposals)
}

/// Rules that these packets suggest.
fn candidates(arrivals: &[ArrivedPacket]) -> Vec<String> {
    let mut ports: BTreeMap<(u8, u16), u64> = BTreeMap::new();
    let mut code_points: BTreeMap<u8, u64> = BTreeMap::new();
    let mut pushed = 0_u64;
    for headers in arrivals.iter().filter_map(|arrival| arrival.headers.as_ref().ok()) {
        if let (Some(protocol @ (TCP | UDP)), Some((a, b))) = (headers.protocol(), headers.ports())
        {
            *ports.entry((protocol, a.min(b))).or_default() += 1;
        }
        if let Some(dscp) = headers.dscp().filter(|dscp| *dscp > 0) {
            *code_points.entry(dscp).or_default() += 1;
        }
        pushed += u64::from(headers.tcp_psh());
    }
    let mut texts = Vec::new();
    if pushed >= FEWEST {
        texts.extend(SMALL.map(|length| format!("tcp-psh & length<={length}")));
    }
    for (protocol, port) in most(&ports) {
        let name = if protocol == TCP { "tcp" } else { "udp" };
        texts.push(format!("{name}-port={port}"));
        if protocol == TCP && pushed >= FEWEST {
            texts.push(format!("tcp-psh & tcp-port={port} & length<=512"));
        }
    }
    texts.extend(most(&code_points).map(|dscp| format!("dscp={dscp}")));
    texts
}

/// Those of most packets.
fn most<K: Copy + Ord>(counts: &BTreeMap<K, u64>) -> impl Iterator<Item = K> + use<K> {
    let mut all: Vec<(u64, K)> = counts.iter().map(|(key, count)| (*count, *key)).collect();
    all.retain(|(count, _)| *count >= FEWEST);
    all.sort_by_key(|(count, key)| (core::cmp::Reverse(*count), *key));
    all.truncate(MOST);
    all.into_iter().map(|(_, key)| key)
}

/// The rules for `earmark lane`, if filters of NICs can compare all that these test.
fn lane_of(rules: &Rules) -> Option<String> {
    let is_simple = |condition| match condition {
        Condition::Flag(_) => false,
        Condition::Value { field, negate, .. } => field != "length" && !negate,
    };
    let all = rules.iter().all(|rule| rule.marks() && rule.conditions().all(is_simple));
    all.then(|| rules.to_string())
}

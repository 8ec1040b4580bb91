//! From a lane that is wanted and what a device has to a plan, or to the reasons why not.

use std::fmt;
use std::net::IpAddr;

use super::by_hash::{self, Flows, Ports};
use super::capabilities::Capabilities;
use super::mark::{Candidate, lone_port, translate};
use crate::setting::steering::{cpus_text, parse_cpus, table_text};
use crate::setting::{Change, Setting, Value};

/// A lane that is wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Which packets, in the language of marks.
    pub packets: String,
    /// Its queue; without it the last one.
    pub queue: Option<u16>,
    /// How long its packets may wait, in microseconds.
    pub rx_usecs: u32,
    /// How long all others may; without it, as long as now.
    pub rest_usecs: Option<u32>,
    /// The processor for it alone.
    pub cpu: Option<u32>,
    /// By the choice of ports, for this far host and this one's address, instead of by rules.
    pub by_hash: Option<(IpAddr, IpAddr)>,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The queue of the lane.
    pub queue: u16,
    /// All but the rules.
    pub change: Change,
    /// The rules that lead there.
    pub candidates: Vec<Candidate>,
    /// Places for them; `None`: wherever the driver puts it.
    pub places: Vec<Option<u32>>,
    /// Ports that lead there without rules.
    pub ports: Option<Ports>,
    /// What the device lacks, and what that costs: a sentence each.
    pub lost: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    pub(crate) reason: String,
    /// What could be done instead, if the device lacks something; nothing, maybe.
    pub(crate) left: Option<Vec<String>>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)?;
        match self.left.as_deref() {
            None => {}
            Some([]) => f.write_str("; nothing is left that would do the same")?,
            Some(left) => write!(f, "; what is left: {}", left.join("; or "))?,
        }
        f.write_str("; nothing was changed")
    }
}

impl std::error::Error for Refusal {}

/// Makes a plan.
pub fn plan(wanted: &Wanted, device: &Capabilities) -> Result<Plan, Refusal> {
    let queue = queue(wanted, device)?;
    let mut plan = Plan { queue, ..Plan::default() };
    match wanted.by_hash {
        None => by_rules(wanted, device, &mut plan)?,
        Some((peer, local)) => by_ports(wanted, device, peer, local, &mut plan)?,
    }
    coalescing(wanted, device, &mut plan);
    placement(wanted, device, &mut plan);
    Ok(plan)
}

fn refuse(reason: impl Into<String>) -> Refusal {
    Refusal { reason: reason.into(), left: None }
}

fn lack(reason: impl Into<String>, left: Vec<String>) -> Refusal {
    Refusal { reason: reason.into(), left: Some(left) }
}

fn queue(wanted: &Wanted, device: &Capabilities) -> Result<u16, Refusal> {
    let Capabilities { device: name, queues, .. } = device;
    if *queues < 2 {
        let reason = format!(
            "{name} ({}) has one receive queue, and a lane takes one beside it",
            device.driver
        );
        let more = device.max_queues.filter(|most| *most > 1).map(|most| {
            format!("more queues, up to {most}: ethtool -L {name} combined 2, and this again")
        });
        return Err(lack(reason, more.into_iter().collect()));
    }
    let last = u16::try_from(queues - 1).unwrap_or(u16::MAX);
    let queue = wanted.queue.unwrap_or(last);
    if queue > last {
        return Err(refuse(format!("{name} has no queue {queue}: there are {queues}, from 0 on")));
    }
    Ok(queue)
}

fn by_rules(wanted: &Wanted, device: &Capabilities, plan: &mut Plan) -> Result<(), Refusal> {
    let translation = translate(&wanted.packets, plan.queue).map_err(refuse)?;
    if device.rules.is_none() {
        let reason = format!(
            "{} ({}) has no rules that choose a queue (ntuple)",
            device.device, device.driver
        );
        return Err(lack(reason, by_hash_instead(wanted, device)));
    }
    // What is there already, of an earlier lane maybe, stays where it is.
    let known = |candidate: &Candidate| {
        let there = device.there.iter().find(|placed| candidate.ways.contains(&placed.rule));
        there.map(|placed| placed.location)
    };
    let mut free = device.places();
    let places = translation.candidates.iter().map_while(|it| known(it).or_else(|| free.next()));
    plan.places = places.collect();
    let missing = translation.candidates.len() - plan.places.len();
    if missing > 0 {
        return Err(refuse(format!(
            "{} has {} places for rules left, and this takes {missing} more; those in use: ethtool \
             -n {0}",
            device.device,
            plan.places.len(),
        )));
    }
    plan.lost = translation.lost;
    plan.candidates = translation.candidates;
    if device.ntuple == Some(false) {
        plan.change.0.push((Setting::Ntuple, Value::Switch(true)));
    }
    leave_out(device, plan);
    Ok(())
}

fn leave_out(device: &Capabilities, plan: &mut Plan) {
    let Some(rss) = &device.rss else {
        plan.lost.push(format!(
            "the driver does not show the table of its hash, so other packets may get to queue {}, \
             too",
            plan.queue
        ));
        return;
    };
    let queue = u32::from(plan.queue);
    if !rss.table.contains(&queue) {
        return;
    }
    let table =
        by_hash::without(&rss.table, queue, &rest(rss.table.iter().copied(), queue, device.queues));
    plan.change.0.push((Setting::RssTable, Value::Text(table_text(&table))));
}

fn rest(table: impl Iterator<Item = u32>, queue: u32, queues: u32) -> Vec<u32> {
    let mut rest: Vec<u32> = table.filter(|it| *it != queue).collect();
    rest.sort_unstable();
    rest.dedup();
    if rest.is_empty() { (0..queues).filter(|it| *it != queue).collect() } else { rest }
}

fn by_ports(
    wanted: &Wanted,
    device: &Capabilities,
    peer: IpAddr,
    local: IpAddr,
    plan: &mut Plan,
) -> Result<(), Refusal> {
    let Some((is_tcp, port)) = lone_port(&wanted.packets) else {
        return Err(refuse(format!(
            "`{}`: ports can be chosen for one port of a service alone, as in tcp-port=11211",
            wanted.packets
        )));
    };
    let why =
        |why: String| lack(format!("{} ({}): {why}", device.device, device.driver), Vec::new());
    let Some(rss) = &device.rss else {
        return Err(why("the driver does not show the table of its hash".into()));
    };
    match if is_tcp { device.tcp_hash } else { device.udp_hash } {
        Some(fields) if !fields.ports => {
            let (kind, name) = (if is_tcp { "tcp4" } else { "udp4" }, &device.device);
            let command = format!("put them in: ethtool -N {name} rx-flow-hash {kind} sdfn");
            let refusal = why(format!("ports are not in the hash of {kind}"));
            return Err(lack(refusal.reason, vec![command]));
        }
        Some(_) => {}
        None => plan.lost.push(
            "the driver does not say what it hashes; addresses and ports are taken for granted"
                .into(),
        ),
    }
    let queue = u32::from(plan.queue);
    let others = rest(rss.table.iter().copied(), queue, device.queues);
    let (table, entry) = by_hash::table(&rss.table, queue, &others)
        .ok_or_else(|| why("there is no other queue in the table of its hash".into()))?;
    plan.ports = Some(by_hash::ports(rss, entry, Flows { peer, local, port }).map_err(why)?);
    plan.lost.push(format!(
        "other flows get to queue {queue} by chance, one in {}; and packets from or to other hosts \
         than {peer} hash otherwise",
        table.len()
    ));
    if table != rss.table {
        plan.change.0.push((Setting::RssTable, Value::Text(table_text(&table))));
    }
    Ok(())
}

/// What is left where there are no rules.
fn by_hash_instead(wanted: &Wanted, device: &Capabilities) -> Vec<String> {
    let has_key = device.rss.as_ref().is_some_and(|rss| rss.is_toeplitz() && rss.key.len() >= 20);
    if !has_key || lone_port(&wanted.packets).is_none() {
        return Vec::new();
    }
    vec![format!(
        "a far host that chooses its port numbers by the hash: earmark lane {device} '{rules}' \
         --by-hash ADDRESS",
        device = device.device,
        rules = wanted.packets
    )]
}

fn coalescing(wanted: &Wanted, device: &Capabilities, plan: &mut Plan) {
    let state = &device.state;
    let has = |setting| state.get(setting).is_some();
    let number = |usecs: u32| Value::Number(usecs.into());
    if !has(Setting::RxUsecs) {
        plan.lost.push(format!(
            "{} has no coalescing to set: when it interrupts stays as it is",
            device.driver
        ));
        return;
    }
    let is_adaptive = state.is_on(Setting::AdaptiveRx);
    if let Some(usecs) = wanted.rest_usecs {
        if is_adaptive {
            plan.change.0.push((Setting::AdaptiveRx, Value::Switch(false)));
        }
        plan.change.0.push((Setting::RxUsecs, number(usecs)));
    }
    if device.per_queue {
        let adaptive = Setting::AdaptiveRx.of_queue(plan.queue);
        if let Some(adaptive) = adaptive.filter(|_| has(Setting::AdaptiveRx)) {
            plan.change.0.push((adaptive, Value::Switch(false)));
        }
        let usecs = Setting::RxUsecs.of_queue(plan.queue);
        plan.change.0.extend(usecs.map(|setting| (setting, number(wanted.rx_usecs))));
        // Without a time, a single frame has to end the wait.
        let is_several = state.get(Setting::RxFrames).and_then(Value::number) > Some(1);
        if wanted.rx_usecs == 0 && device.may_wait && is_several {
            let frames = Setting::RxFrames.of_queue(plan.queue);
            plan.change.0.extend(frames.map(|setting| (setting, number(1))));
        }
        return;
    }
    let now = wanted.rest_usecs.or_else(|| {
        state.get(Setting::RxUsecs).and_then(Value::number).and_then(|it| u32::try_from(it).ok())
    });
    let waits = now != Some(wanted.rx_usecs) || (is_adaptive && wanted.rest_usecs.is_none());
    if waits {
        let how = match now.filter(|_| !is_adaptive) {
            Some(usecs) => format!("rx-usecs {usecs}"),
            None => "adaptive-rx on".into(),
        };
        plan.lost.push(format!(
            "{driver} has one coalescing for all queues: the lane waits as the others do ({how}), \
             but not behind them; for less: earmark apply {device} rx-usecs {usecs}",
            driver = device.driver,
            device = device.device,
            usecs = wanted.rx_usecs
        ));
    }
}

/// Interrupt and transmit queue of the lane go to one processor, and the others keep off it.
fn placement(wanted: &Wanted, device: &Capabilities, plan: &mut Plan) {
    let Some(cpu) = wanted.cpu else { return };
    for (of, what) in [
        (Setting::SmpAffinity, "which processor its interrupt goes to"),
        (Setting::XpsCpus, "which processors send over its transmit queue"),
    ] {
        let own = of.of_queue(plan.queue).filter(|own| device.state.get(*own).is_some());
        let Some(own) = own else {
            plan.lost.push(format!("{what} cannot be chosen on {}", device.device));
            continue;
        };
        plan.change.0.push((own, Value::Text(cpus_text(&[cpu]))));
        for queue in 0..u16::try_from(device.queues).unwrap_or(u16::MAX) {
            let Some(other) = of.of_queue(queue).filter(|other| *other != own) else { continue };
            let now = device.state.get(other).and_then(|it| parse_cpus(&it.to_string()).ok());
            let left: Vec<u32> = now.iter().flatten().copied().filter(|it| *it != cpu).collect();
            if now.is_some_and(|now| now.len() > left.len()) && !left.is_empty() {
                plan.change.0.push((other, Value::Text(cpus_text(&left))));
            }
        }
    }
}

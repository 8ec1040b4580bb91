//! Rounds that may have no figures: one that is starved is marked, and costs the others nothing.

use anyhow::Result;
use nic::moderation::Moderation;
use workload::Counter;

use crate::caller::Caller;
use crate::experiment::Plan;
use crate::slice::{NotMeasured, Part, PortRecord, Slice};
use crate::world::World;

/// The rounds of one cell.
#[derive(Default)]
pub struct CellRounds {
    /// Those that were measured.
    pub slices: Vec<Slice>,
    /// The numbers of the others, and why.
    pub missed: Vec<(usize, NotMeasured)>,
}

impl CellRounds {
    /// Keeps what came of round number `round`.
    pub fn keep(&mut self, round: u32, came: Result<Slice, NotMeasured>) {
        match came {
            Ok(slice) => self.slices.push(slice),
            Err(why) => self.missed.push((round as usize, why)),
        }
    }
}

/// Plays one round. One in which nothing was measured is marked, and costs the others nothing. If
/// the user has asked to end, it does not begin, or nothing came of it.
pub fn attempt(
    caller: &dyn Caller,
    world: &dyn World,
    plan: &Plan,
    moderation: Moderation,
    change_to: Option<Moderation>,
) -> Result<Option<Result<Slice, NotMeasured>>> {
    if caller.check().is_err() {
        return Ok(None);
    }
    match world.round(plan, moderation, change_to) {
        Ok(slice) => Ok(Some(refuse_silence(plan, &slice).map(|()| slice))),
        // It reaches agents as well.
        Err(_) if caller.check().is_err() => Ok(None),
        Err(error) if error.is::<NotMeasured>() => {
            Ok(Some(Err(NotMeasured(report::output::message(&error)))))
        }
        Err(error) => Err(error),
    }
}

/// Ends a run that has no figures at all, instead of trying it again and again.
pub fn refuse_nothing<'a>(mut cells: impl Iterator<Item = &'a CellRounds> + Clone) -> Result<()> {
    let first = cells.clone().find_map(|cell| cell.missed.first());
    match first {
        Some((_, why)) if cells.all(|cell| cell.slices.is_empty()) => Err(why.clone().into()),
        _ => Ok(()),
    }
}

/// A round in which nothing happened has no figures.
pub fn refuse_silence(plan: &Plan, slice: &Slice) -> Result<(), NotMeasured> {
    for (part, record) in &slice.records {
        let (counter, what) = match part {
            Part::Asker => (Counter::Transactions, "no request was answered"),
            Part::BulkSink => (Counter::BytesReceived, "the bulk flow did not flow"),
            Part::Counter => (Counter::DatagramsReceived, "no datagram arrived"),
            Part::MessageSink => (Counter::MessagesReceived, "no message arrived"),
            _ => continue,
        };
        if record.counter(counter) == 0 {
            let why = format!("{what} in {} s: {}", plan.duration_s, seen(slice));
            return Err(NotMeasured(why));
        }
    }
    Ok(())
}

/// What the NIC and the agents have counted that may explain a silence.
fn seen(slice: &Slice) -> String {
    let ports = &slice.nic.ports;
    let sum = |of: fn(&PortRecord) -> u64| ports.iter().map(of).sum::<u64>();
    let (lost, full) = (sum(|port| port.link_lost), sum(|port| port.ring_full));
    if lost > 0 {
        return format!("the cable lost {lost} frames (--link-loss)");
    }
    if full > 0 {
        return format!("{full} frames found a full ring");
    }
    let busy_ns: u64 = slice.records.iter().map(|(_, record)| record.cpu_ns).sum();
    format!(
        "no frame was lost, the hosts took {} packets, and the agents had {:.1} ms of CPU time; \
         measure for longer with --duration",
        sum(|port| port.delivered),
        busy_ns as f64 / 1e6
    )
}

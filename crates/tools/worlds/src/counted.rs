//! What a data plane has counted in a round, as results have it.

use base::distribution::Distribution;
use bench::slice::{NicRecord, Part, PortRecord, Slice};
use hostside::processor::Activity;
use lab::snapshot::{PortSnapshot, Snapshot};
use workload::Record;

/// What the agents measured, and what the NIC counted in the same time: `snapshot` is of the round
/// alone.
pub(crate) fn slice(records: Vec<(Part, Record)>, snapshot: &Snapshot) -> Slice {
    let seconds = snapshot.at.as_nanos() as f64 / 1e9;
    Slice { seconds, records, nic: nic(snapshot) }
}

fn nic(snapshot: &Snapshot) -> NicRecord {
    NicRecord {
        cpu_ns: snapshot.cpu.as_nanos(),
        delivering_ns: snapshot.delivering.as_nanos(),
        spun_ns: snapshot.spun.as_nanos(),
        overshoot: Distribution::of(&snapshot.overshoot, 1),
        ports: snapshot.ports.iter().map(|it| port(it, snapshot)).collect(),
    }
}

fn port(port: &PortSnapshot, all: &Snapshot) -> PortRecord {
    let lost: u64 = all.ports.iter().map(|port| port.link.lost).sum();
    PortRecord {
        name: port.name.clone(),
        setting: port.queues[0].moderation.to_string(),
        steered: port.lanes.iter().map(|(_, packets)| packets).sum(),
        holds: Distribution::of(&port.holds, 1),
        refused: port.refused,
        link_lost: lost - port.link.lost,
        busy_ns: port.busy.map(|busy| Activity::ALL.map(|activity| busy[activity].as_nanos())),
        ..PortRecord::counted(&port.counters)
    }
}

//! One round of one setting, as a world returns it: what agents and the NIC have counted.
//!
//! It is complete: everything that a result says of a round is made of this, and it survives JSON,
//! so that rounds of several processes can be summed up as those of one are.

use std::collections::BTreeMap;

use base::distribution::Distribution;
use nic::counters::Counters;
use nic::moderation::Reason;
use nic::processor::Activity;
use serde::{Deserialize, Serialize};
use workload::{Counter, Record};

use crate::records::per_second;

/// One round of one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    /// Length of the measurement, in seconds.
    pub seconds: f64,
    /// What the agents measured, each with the part it played.
    pub records: Vec<(Part, Record)>,
    /// What the NIC counted in the same time.
    pub nic: NicRecord,
}

/// The part that an agent plays in an experiment, which says what its figures mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// It asks, and its latencies are the experiment's.
    Asker,
    /// The agent that answers.
    Answerer,
    /// It sends the bulk flow.
    BulkSource,
    /// It receives the bulk flow.
    BulkSink,
    /// It sends datagrams or frames as fast as it can.
    Flood,
    /// It counts datagrams.
    Counter,
    /// It sends messages of MX one way.
    MessageSource,
    /// It receives them.
    MessageSink,
}

/// Why a round has no figures: no request was answered, or an agent did not get its work done.
/// Other rounds may have some all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub struct NotMeasured(pub String);

/// A program that an experiment takes is not installed: nothing of it can be played, and others
/// can.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{program} is not installed, and this experiment takes it; apt-get install {program}")]
pub struct MissingProgram {
    /// Its name, which is that of its package.
    pub program: String,
}

/// What a NIC and its data plane have counted in a round, or in several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicRecord {
    /// CPU time of the data-plane thread, in nanoseconds.
    pub cpu_ns: u64,
    /// The part of it in the hosts' receive paths.
    pub delivering_ns: u64,
    /// The part of it that was spent waiting without sleeping.
    pub spun_ns: u64,
    /// By how much deadlines were overshot.
    pub overshoot: Distribution,
    /// The ports, in order.
    pub ports: Vec<PortRecord>,
}

/// Nanoseconds in which a host's processor was busy, for each of [`Activity::ALL`].
pub(crate) type Busy = [u64; Activity::ALL.len()];

/// What a port has counted in a round, or in several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortRecord {
    /// The interface, such as `b0`.
    pub name: String,
    /// The setting in force at the end, of queue 0.
    pub setting: String,
    /// Packets that its host took.
    pub delivered: u64,
    /// Frames that entered its rings with a mark.
    pub marked: u64,
    /// Frames about which rules of lanes decided.
    #[serde(default)]
    pub steered: u64,
    /// Interrupts, by the names of their [`Reason`]s.
    pub interrupts: BTreeMap<String, u64>,
    /// Holds of the packets.
    pub holds: Distribution,
    /// Frames dropped because a ring was full.
    pub ring_full: u64,
    /// Frames that the host's stack refused; in the model, datagrams that found no room in their
    /// socket.
    pub refused: u64,
    /// Frames lost on the way to this port: on the links of the others, or in a switch.
    pub link_lost: u64,
    /// What its host's processor was busy with, if that costs time.
    pub busy_ns: Option<Busy>,
    /// Processors of its host, all of which are in that.
    #[serde(default = "one")]
    pub cores: usize,
}

const fn one() -> usize {
    1
}

impl NicRecord {
    /// Adds what was counted in a later round, whose settings are kept.
    pub(crate) fn merge(&mut self, later: &Self) {
        self.cpu_ns += later.cpu_ns;
        self.delivering_ns += later.delivering_ns;
        self.spun_ns += later.spun_ns;
        self.overshoot.merge(&later.overshoot);
        for (port, later) in self.ports.iter_mut().zip(&later.ports) {
            port.merge(later);
        }
    }

    pub(crate) fn interrupts(&self) -> u64 {
        self.ports.iter().flat_map(|port| port.interrupts.values()).sum()
    }

    pub(crate) fn holds(&self) -> Distribution {
        let mut sum = Distribution::default();
        self.ports.iter().for_each(|port| sum.merge(&port.holds));
        sum
    }
}

impl PortRecord {
    /// What the queues of a port have counted.
    pub fn counted(counters: &Counters) -> Self {
        let count = |reason: Reason| (reason.name().to_owned(), counters.interrupts_for(reason));
        Self {
            delivered: counters.delivered,
            marked: counters.marked,
            interrupts: Reason::ALL.into_iter().map(count).collect(),
            ring_full: counters.ring_full,
            cores: 1,
            ..Self::default()
        }
    }

    fn merge(&mut self, later: &Self) {
        self.setting.clone_from(&later.setting);
        self.delivered += later.delivered;
        self.marked += later.marked;
        self.steered += later.steered;
        for (reason, count) in &later.interrupts {
            *self.interrupts.entry(reason.clone()).or_default() += count;
        }
        self.holds.merge(&later.holds);
        self.ring_full += later.ring_full;
        self.refused += later.refused;
        self.link_lost += later.link_lost;
        for (busy, later) in self.busy_ns.iter_mut().zip(&later.busy_ns) {
            busy.iter_mut().zip(later).for_each(|(sum, one)| *sum += one);
        }
    }

    /// Interrupts for one reason.
    pub fn interrupts_for(&self, reason: Reason) -> u64 {
        self.interrupts.get(reason.name()).copied().unwrap_or_default()
    }
}

impl Slice {
    /// What the agent that played `part` measured.
    pub fn record(&self, part: Part) -> Option<&Record> {
        self.records.iter().find(|(played, _)| *played == part).map(|(_, record)| record)
    }

    /// A counter of the agent that played `part`, a second.
    pub(crate) fn rate(&self, part: Part, counter: Counter) -> Option<f64> {
        Some(per_second(self.record(part)?, counter))
    }

    /// What all agents together have counted.
    pub(crate) fn counted(&self, counter: Counter) -> u64 {
        self.records.iter().map(|(_, record)| record.counter(counter)).sum()
    }

    /// What programs of both hosts have counted of their polls, if they poll: each host has one of
    /// these agents.
    pub(crate) fn polls(&self, counter: Counter) -> Option<u64> {
        let agents = [Part::Asker, Part::Answerer].into_iter().filter_map(|part| self.record(part));
        let counts = agents.filter_map(|agent| agent.counters.get(&counter));
        counts.copied().reduce(|sum, one| sum + one)
    }

    /// Messages of MX, where there were any.
    pub(crate) fn messages(&self) -> Option<u64> {
        Some(self.counted(Counter::MessagesReceived)).filter(|messages| *messages > 0)
    }

    /// The same, if all interrupts were for them.
    pub(crate) fn messages_alone(&self) -> Option<u64> {
        self.messages().filter(|_| self.record(Part::BulkSink).is_none())
    }

    /// Whether it is one that a world may return: one that was read from a file may be anything.
    pub fn is_sound(&self) -> bool {
        let NicRecord { overshoot, ports, .. } = &self.nic;
        self.seconds > 0.0
            // Worlds have two hosts and more, with a port each.
            && ports.len() >= 2
            && overshoot.is_sound()
            && ports.iter().all(|port| port.holds.is_sound())
            && self.records.iter().all(|(_, record)| record.is_sound())
    }
}

//! Who plays on which host, and what all players of a run share.

use super::kind::Experiment;
use crate::agent::AgentSpec;
use crate::measurement::Part;
use crate::options::ExperimentOptions;

/// Host `a`, where clients are.
pub const A: usize = 0;

/// Host `b`, where servers are.
pub const B: usize = 1;

/// Round trips a second in `mixed`: a fixed rate, since a faster closed loop would make more
/// interrupts by itself.
pub const MIXED_ROUND_TRIPS_PER_S: u32 = 1_000;

/// The bulk flow of `mixed`, in Mbit/s: well below what a TAP carries.
pub const MIXED_BULK_MBIT: u32 = 300;

/// What the bulk flow writes at a time, as iperf3 does.
pub(super) const BULK_CHUNK_BYTES: u32 = 131_072;

/// What a player runs.
#[derive(Clone, Debug)]
pub enum Role {
    /// An agent with this workload.
    Agent(Part, Box<AgentSpec>),
    /// A program, with its arguments.
    Program(Vec<String>),
}

/// One workload or program on one host.
#[derive(Clone, Debug)]
pub struct Player {
    /// [`A`] or [`B`].
    pub host: usize,
    /// It must be there before the others start, and stays until they are done.
    pub server: bool,
    /// What it runs.
    pub role: Role,
}

/// What the players of one experiment have in common.
pub(super) struct Stage<'a> {
    pub(super) experiment: Experiment,
    pub(super) options: &'a ExperimentOptions,
    pub(super) clients: u32,
    pub(super) seed: u64,
    pub(super) warmup_s: f64,
    pub(super) duration_s: f64,
}

pub(super) fn player(host: usize, part: Part, server: bool, agent: AgentSpec) -> Player {
    Player { host, server, role: Role::Agent(part, Box::new(agent)) }
}

//! Who plays on which host, and what all players of a run share.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::kind::Experiment;
use crate::agent::AgentSpec;
use crate::options::ExperimentOptions;
use crate::slice::Part;

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
    /// [`A`] or [`B`], or another number where there are more hosts.
    pub host: usize,
    /// The hosts that its connections go to, in turn; none for a server.
    pub peers: Vec<usize>,
    /// It must be there before the others start, and stays until they are done.
    pub server: bool,
    /// What it runs.
    pub role: Role,
}

/// Where an experiment is played, and which host has which part in it.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The addresses of the two hosts, by number.
    pub addresses: [IpAddr; 2],
    /// The host that answers round trips; the other one asks.
    pub server: usize,
    /// The host that receives the bulk flow; the other one sends it.
    pub sink: usize,
    /// The port of the server of round trips; the bulk flow has the next one.
    pub port: u16,
    /// Memcached is started; without it, it runs already.
    pub starts_memcached: bool,
}

impl Site {
    /// Two hosts of a lab: clients on [`A`], servers on [`B`].
    pub const LAB: Self = Self {
        addresses: [IpAddr::V4(Ipv4Addr::new(10, 9, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 9, 0, 2))],
        server: B,
        sink: B,
        port: 7_000,
        starts_memcached: true,
    };

    pub(super) fn server_at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.addresses[self.server], port)
    }

    /// The address of the receiver of the bulk flow.
    pub(super) fn bulk(&self) -> SocketAddr {
        SocketAddr::new(self.addresses[self.sink], self.port + 1)
    }

    pub(super) fn client(&self) -> usize {
        1 - self.server
    }

    pub(super) fn source(&self) -> usize {
        1 - self.sink
    }
}

/// What the players of one experiment have in common.
pub(super) struct PlanBuilder<'a> {
    pub(super) experiment: Experiment,
    pub(super) options: &'a ExperimentOptions,
    pub(super) site: &'a Site,
    pub(super) clients: u32,
    pub(super) seed: u64,
    pub(super) warmup_s: f64,
    pub(super) duration_s: f64,
}

pub(super) fn player(host: usize, part: Part, server: bool, agent: AgentSpec) -> Player {
    let peers = if server { Vec::new() } else { vec![1 - host] };
    Player { host, peers, server, role: Role::Agent(part, Box::new(agent)) }
}

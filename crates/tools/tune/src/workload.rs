//! What a device is tuned for: experiments of the bench, between its host and a far one.

use std::net::IpAddr;

use bench::experiment::{Experiment, Plan, Role, Site};
use bench::options::ExperimentOptions;

/// The host whose device is tuned.
const HERE: usize = 0;

const THERE: usize = 1;

/// The port of the server of round trips; the bulk flow has the next one.
const PORT: u16 = 7_011;

/// What the device is tuned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Workload {
    /// This host asks the far one, one byte there and back over TCP, again and again
    TcpRr,
    /// The far host asks this one, which works 110 us on each request
    LoadedServer,
    /// The far host gets values from the memcached of this one, which is yours, at port 11211
    Memcached,
    /// The far host sends a TCP flow to this one, as fast as it goes
    Bulk,
    /// The far host sends a paced TCP flow, and this one asks meanwhile, 1000 times a second
    Mixed,
}

impl Workload {
    /// The name on the command line.
    pub fn name(self) -> String {
        self.experiment().name()
    }

    /// Whether it has round trips whose latency is measured.
    pub fn has_latency(self) -> bool {
        self != Self::Bulk
    }

    /// Whether it has a bulk flow.
    pub fn has_throughput(self) -> bool {
        matches!(self, Self::Bulk | Self::Mixed)
    }

    /// What is played.
    pub fn experiment(self) -> Experiment {
        match self {
            Self::TcpRr => Experiment::TcpRr,
            Self::LoadedServer => Experiment::LoadedServer,
            Self::Memcached => Experiment::Memcached,
            Self::Bulk => Experiment::Bulk,
            Self::Mixed => Experiment::Mixed,
        }
    }

    /// Whether this host asks the far one, and not the other way round.
    pub(crate) fn asks_far_host(self) -> bool {
        matches!(self, Self::TcpRr | Self::Mixed)
    }

    pub(crate) fn site(self, here: IpAddr, there: IpAddr) -> Site {
        let server = if self.asks_far_host() { THERE } else { HERE };
        let addresses = [here, there];
        Site { addresses, server, sink: HERE, port: PORT, starts_memcached: false }
    }

    /// Who plays what there: `clients` connections ask at once, servers of ours serve the other of
    /// the two hosts alone, and everything random follows from `seed`.
    pub fn plan(self, site: &Site, options: &ExperimentOptions, clients: u32, seed: u64) -> Plan {
        let mut plan = self.experiment().plan_at(site, options, Some(clients), seed);
        for player in plan.players.iter_mut().filter(|player| player.server) {
            if let Role::Agent(_, spec) = &mut player.role {
                spec.for_host = Some(site.addresses[1 - player.host].to_canonical());
            }
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bench::agent::AgentSpec;
    use bench::slice::Part;
    use clap::ValueEnum;

    #[test]
    fn every_part_can_be_played() {
        let (here, there) = ("10.9.0.1".parse().unwrap(), "fd09::2".parse().unwrap());
        for workload in Workload::value_variants() {
            let named = workload.to_possible_value().unwrap();
            assert_eq!(workload.name(), named.get_name());
            let site = workload.site(here, there);
            let players = workload.plan(&site, &ExperimentOptions::default(), 2, 1).players;
            let servers = players.iter().filter(|player| player.server).count();
            assert!(players[..servers].iter().all(|player| player.server), "{workload:?}");
            for player in &players {
                let Role::Agent(part, spec) = &player.role else { panic!("a program") };
                let json = serde_json::to_string(spec).unwrap();
                let read = AgentSpec::parse(&json).unwrap();
                // A player that listens does so at its own address.
                let (own, other) = if player.host == HERE { (here, there) } else { (there, here) };
                assert_eq!(read.socket_address().unwrap().ip() == own, player.server, "{part:?}");
                assert_eq!(read.for_host, player.server.then_some(other), "{part:?}");
            }
            let asks =
                players.iter().any(|player| matches!(&player.role, Role::Agent(Part::Asker, _)));
            assert_eq!(asks, workload.has_latency());
        }
    }
}

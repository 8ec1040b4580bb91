//! Workloads of `earmark tune`: who plays which part, here and on the far host.

use std::net::IpAddr;

use bench::agent::{AgentSpec, Transport};
use bench::experiment::{Player, Role};
use bench::measurement::Part;
use bench::workload::{
    BulkReceiverSpec, BulkSenderSpec, MemcachedClientSpec, RrClientSpec, RrServerSpec, WorkloadSpec,
};

/// The host whose device is tuned.
pub const HERE: usize = 0;

/// The far host.
pub const THERE: usize = 1;

/// The port of the server of round trips.
const PORT: u16 = 7_011;

/// The port of the bulk flow.
const BULK_PORT: u16 = 7_012;

/// The port of memcached.
const MEMCACHED_PORT: u16 = 11_211;

/// CPU time of a loaded server for each request, in microseconds: the e1000 story's.
const LOADED_US: u64 = 110;

/// Clients think for up to this long, in microseconds, so that a periodic timer meets their
/// requests at any phase.
const MEMCACHED_THINK_US: u64 = 1_000;

/// Round trips a second beside the bulk flow of `mixed`.
const MIXED_RATE: u64 = 1_000;

/// The bulk flow of `mixed`, in Mbit/s.
const MIXED_BULK_MBIT: u64 = 300;

/// What the device is tuned for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
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

/// How a trial is played.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// This host's address, as the far one sees it.
    pub here: IpAddr,
    /// The far host's.
    pub there: IpAddr,
    /// Connections that ask at once.
    pub clients: usize,
    /// Round trips a second, whatever the answers do; without it, one after the other.
    pub rate: Option<u64>,
    /// Mbit/s of a bulk flow.
    pub bulk_mbit: Option<u64>,
    /// Milliseconds before the measurement.
    pub warmup_ms: u64,
    /// Milliseconds of the measurement.
    pub duration_ms: u64,
}

impl Kind {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let value = clap::ValueEnum::to_possible_value(&self);
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether it has round trips whose latency is measured.
    #[must_use]
    pub fn has_latency(self) -> bool {
        self != Self::Bulk
    }

    /// Whether it has a bulk flow.
    #[must_use]
    pub fn has_throughput(self) -> bool {
        matches!(self, Self::Bulk | Self::Mixed)
    }

    /// Who plays, servers first. Everything random follows from `seed`.
    #[must_use]
    pub fn players(self, terms: &Terms, seed: u64) -> Vec<Player> {
        let stage = Stage { terms, seed };
        match self {
            Self::TcpRr => vec![stage.server(THERE, 0), stage.client(HERE, terms.rate)],
            Self::LoadedServer => {
                vec![stage.server(HERE, LOADED_US), stage.client(THERE, terms.rate)]
            }
            Self::Memcached => vec![stage.memcached_client()],
            Self::Bulk => vec![stage.sink(), stage.source(terms.bulk_mbit)],
            Self::Mixed => vec![
                stage.server(THERE, 0),
                stage.sink(),
                stage.client(HERE, terms.rate.or(Some(MIXED_RATE))),
                stage.source(terms.bulk_mbit.or(Some(MIXED_BULK_MBIT))),
            ],
        }
    }
}

struct Stage<'a> {
    terms: &'a Terms,
    seed: u64,
}

impl Stage<'_> {
    fn server(&self, host: usize, compute_us: u64) -> Player {
        let spec = RrServerSpec { compute_us, ..RrServerSpec::default() };
        self.player(host, host, Part::Answerer, (WorkloadSpec::RrServer(spec), PORT))
    }

    fn client(&self, host: usize, rate_per_s: Option<u64>) -> Player {
        let connections = self.terms.clients;
        let spec = RrClientSpec { connections, rate_per_s, ..RrClientSpec::default() };
        let server = if host == HERE { THERE } else { HERE };
        self.player(host, server, Part::Asker, (WorkloadSpec::RrClient(spec), PORT))
    }

    fn memcached_client(&self) -> Player {
        let spec = MemcachedClientSpec {
            think_us_max: MEMCACHED_THINK_US,
            ..MemcachedClientSpec::default()
        };
        let workload = (WorkloadSpec::MemcachedClient(spec), MEMCACHED_PORT);
        self.player(THERE, HERE, Part::Asker, workload)
    }

    fn sink(&self) -> Player {
        let workload = WorkloadSpec::BulkReceiver(BulkReceiverSpec::default());
        self.player(HERE, HERE, Part::BulkSink, (workload, BULK_PORT))
    }

    fn source(&self, rate_mbit: Option<u64>) -> Player {
        let spec = BulkSenderSpec { rate_mbit, chunk_bytes: 131_072 };
        self.player(THERE, HERE, Part::BulkSource, (WorkloadSpec::BulkSender(spec), BULK_PORT))
    }

    fn player(
        &self,
        host: usize,
        server: usize,
        part: Part,
        (workload, port): (WorkloadSpec, u16),
    ) -> Player {
        let terms = self.terms;
        let ip = if server == HERE { terms.here } else { terms.there };
        let is_server = workload.is_server();
        let agent = AgentSpec {
            workload,
            transport: Some(Transport::Tcp),
            address: Some(std::net::SocketAddr::new(ip, port).to_string()),
            interface: None,
            mx: None,
            for_host: None,
            warmup_ms: terms.warmup_ms,
            duration_ms: terms.duration_ms,
            seed: self.seed,
            spin: false,
            virtual_time: false,
            processor: None,
            series: false,
        };
        Player { host, server: is_server, role: Role::Agent(part, Box::new(agent)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_can_be_played() {
        let terms = Terms {
            here: "10.9.0.1".parse().unwrap(),
            there: "fd09::2".parse().unwrap(),
            clients: 2,
            rate: None,
            bulk_mbit: None,
            warmup_ms: 10,
            duration_ms: 20,
        };
        for kind in [Kind::TcpRr, Kind::LoadedServer, Kind::Memcached, Kind::Bulk, Kind::Mixed] {
            let players = kind.players(&terms, 1);
            let servers = players.iter().filter(|player| player.server).count();
            assert!(players[..servers].iter().all(|player| player.server), "{kind:?}");
            for player in &players {
                let Role::Agent(part, spec) = &player.role else { panic!("a program") };
                let json = serde_json::to_string(spec).unwrap();
                let read = AgentSpec::parse(&json).unwrap();
                // Whoever listens does so at its own address.
                let own = if player.host == HERE { terms.here } else { terms.there };
                assert_eq!(read.socket_address().unwrap().ip() == own, player.server, "{part:?}");
            }
            let asks =
                players.iter().any(|player| matches!(&player.role, Role::Agent(Part::Asker, _)));
            assert_eq!(asks, kind.has_latency());
        }
    }
}

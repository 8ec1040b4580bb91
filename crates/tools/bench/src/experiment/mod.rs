//! Experiments: who does what on which host.
//!
//! An experiment is a list of *players*. Each is one workload on one host, driven by an agent; or a
//! real program, such as memcached. Servers start first, then clients; then all get their *go* at
//! once.

mod kind;
mod mx;
mod pattern;
mod players;

pub use kind::Experiment;
pub use mx::MxTerms;
pub use pattern::{Crowd, MANY, MAX_HOSTS, Pattern};
pub use players::{A, B, MIXED_BULK_MBIT, MIXED_ROUND_TRIPS_PER_S, Player, Role, Site};
use players::{BULK_CHUNK_BYTES, PlanBuilder, player};

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use nic::moderation::{Moderation, TimerKind};
use workload::{
    BulkReceiverSpec, BulkSenderSpec, FrameSenderSpec, MemcachedClientSpec, NtpClientSpec,
    NtpServerSpec, PpsReceiverSpec, PpsSenderSpec, RrClientSpec, RrServerSpec, Transport,
    WorkloadSpec,
};

use crate::agent::AgentSpec;
use crate::options::ExperimentOptions;
use crate::polling::Polling;
use crate::slice::Part;

const MEMCACHED_PORT: u16 = 11_211;

const NTP_PORT: u16 = 123;

/// CPU work for each request in the e1000 seed's "more realistic benchmark".
const LOADED_COMPUTE_US: u32 = 110;

/// Memcached clients think at random up to this long, so that a free-running tick meets them at any
/// phase.
const MEMCACHED_THINK_US: u32 = 1_000;

/// Polls a second of the NTP client; the seed polled each second for 100 s.
const NTP_POLLS_PER_S: u32 = 100;

const PING_BYTES: u32 = 56;

/// The setting of a NIC where none is given: the delay that Myri-10G shipped with, and the paper
/// calls "Timeout".
pub const USUAL_SETTING: Moderation =
    Moderation { timer: TimerKind::Delay, rx_usecs: 75, ..Moderation::DISABLED };

/// An experiment, with the numbers filled in.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Who takes part, servers first.
    pub players: Vec<Player>,
    /// How many hosts there are.
    pub hosts: usize,
    /// Seconds before the measurement.
    pub warmup_s: f64,
    /// Seconds of the measurement.
    pub duration_s: f64,
    /// Where everything random comes from.
    pub seed: u64,
    /// Hosts, and what `earmark apply` is to set on their interfaces first.
    pub settings: Vec<(usize, String)>,
    /// Hosts that get at packets in a way of their own, with all their programs.
    pub polling: Vec<(usize, Polling)>,
}

impl Plan {
    /// The same, with hosts and agents that get at packets in this way, and `settings` of their
    /// interfaces.
    ///
    /// A host that asks on a schedule, or at moments of its own as clients of memcached do, stays
    /// as it is: it is the measuring instrument, and `epoll_wait` that polls is late for such a
    /// moment.
    #[must_use]
    pub fn with(mut self, polling: Polling, settings: &str) -> Self {
        let on_schedule = self.players.iter().find_map(|player| match &player.role {
            Role::Agent(_, agent) if agent.workload.keeps_schedule() => Some(player.host),
            Role::Agent(_, agent) if is_memcached(&agent.workload) => Some(player.host),
            _ => None,
        });
        let is_left = |host: usize| on_schedule == Some(host);
        for player in self.players.iter_mut().filter(|player| !is_left(player.host)) {
            if let Role::Agent(_, agent) = &mut player.role {
                agent.poll = polling;
            }
        }
        let of_polling = polling.settings().unwrap_or_default();
        let text = format!("{of_polling} {settings}").trim().to_owned();
        let hosts = [A, B].into_iter().filter(|host| !text.is_empty() && !is_left(*host));
        let settings = hosts.map(|host| (host, text.clone())).collect();
        let others = [A, B].into_iter().filter(|host| !is_left(*host));
        let polling = others.map(|host| (host, polling)).collect();
        Self { settings, polling, ..self }
    }
}

impl Plan {
    /// How a host and its programs get at packets.
    pub fn polling_of(&self, host: usize) -> Polling {
        let own = self.polling.iter().find(|(it, _)| *it == host);
        own.map_or_else(Polling::default, |(_, polling)| *polling)
    }
}

const fn is_memcached(workload: &WorkloadSpec) -> bool {
    matches!(workload, WorkloadSpec::MemcachedClient(_))
}

impl Experiment {
    /// Whether it is one of [round trips of MX](Self::MxPingpong), of which half is reported.
    pub fn reports_half(self) -> bool {
        matches!(self, Self::MxPingpong | Self::MxLargeAnatomy | Self::MxMisorder)
    }

    /// Refuses options that do not go with it.
    pub fn check(self, options: &ExperimentOptions) -> Result<()> {
        ensure!(
            options.rate.is_none() || options.think.unwrap_or(0) == 0,
            "--think: with --rate, requests are sent when they are due; drop one of the two"
        );
        mx::check(self, options)
    }

    /// What messages of MX are like in it, if there are any.
    pub fn mx(self, options: &ExperimentOptions) -> Option<MxTerms> {
        mx::terms(self, options)
    }

    /// Fills in the numbers: those of `options`, and the experiment's usual ones. It is played in
    /// a [lab](Site::LAB).
    pub fn plan(self, options: &ExperimentOptions, clients: Option<u32>, seed: u64) -> Plan {
        self.plan_at(&Site::LAB, options, clients, seed)
    }

    /// The same for other hosts.
    pub fn plan_at(
        self,
        site: &Site,
        options: &ExperimentOptions,
        clients: Option<u32>,
        seed: u64,
    ) -> Plan {
        let (warmup_s, duration_s) = timing(options);
        let (experiment, clients) = (self, clients.unwrap_or(1));
        let builder =
            PlanBuilder { experiment, options, site, clients, seed, warmup_s, duration_s };
        let settings = Vec::new();
        let (players, hosts) = (builder.players(), Crowd::PAIR.hosts);
        Plan { players, hosts, warmup_s, duration_s, seed, settings, polling: Vec::new() }
    }
}

/// Seconds of warm-up and of measurement.
pub fn timing(options: &ExperimentOptions) -> (f64, f64) {
    (options.warmup.unwrap_or(0.3), options.duration.unwrap_or(2.0))
}

impl PlanBuilder<'_> {
    fn players(&self) -> Vec<Player> {
        use Experiment as E;
        match self.experiment {
            E::TcpRr | E::LoadedServer => {
                vec![self.rr_server(Transport::Tcp), self.rr_client(Transport::Tcp)]
            }
            E::UdpRr => vec![self.rr_server(Transport::Udp), self.rr_client(Transport::Udp)],
            E::Ping => vec![self.rr_client(Transport::Icmp)],
            E::Memcached => {
                let server = self.site.starts_memcached.then(|| self.memcached());
                server.into_iter().chain([self.memcached_client()]).collect()
            }
            E::Ntp => vec![self.ntp_server(), self.ntp_client()],
            E::Bulk => vec![self.bulk_sink(), self.bulk_source()],
            E::Mixed => vec![
                self.rr_server(Transport::Tcp),
                self.bulk_sink(),
                self.rr_client(Transport::Tcp),
                self.bulk_source(),
            ],
            E::Pps => vec![self.pps_counter(), self.pps_flood()],
            E::InvalidFrames => vec![self.frame_flood()],
            E::MxPingpong | E::MxLargeAnatomy | E::MxMisorder => self.mx_ping_pong(),
            E::MxStream => self.mx_stream(),
            E::MxMixed => self.mx_mixed(),
        }
    }

    /// Servers first, which the others find there.
    fn mx_mixed(&self) -> Vec<Player> {
        let mut players = [self.mx_ping_pong(), self.mx_stream()].concat();
        players.extend([self.bulk_sink(), self.bulk_source()]);
        players.sort_by_key(|player| !player.server);
        players
    }

    fn rr_server(&self, transport: Transport) -> Player {
        let usual = if self.experiment == Experiment::LoadedServer { LOADED_COMPUTE_US } else { 0 };
        let spec = RrServerSpec {
            request_bytes: self.request_bytes(),
            response_bytes: self.response_bytes(),
            compute_us: self.options.compute.unwrap_or(usual).into(),
        };
        let agent = self.agent(WorkloadSpec::RrServer(spec), transport, self.rr_address());
        player(self.site.server, Part::Answerer, true, agent)
    }

    fn rr_client(&self, transport: Transport) -> Player {
        let mixed = self.experiment == Experiment::Mixed;
        let usual_rate = mixed.then_some(MIXED_ROUND_TRIPS_PER_S);
        let spec = RrClientSpec {
            request_bytes: self.request_bytes(),
            response_bytes: self.response_bytes(),
            connections: self.clients as usize,
            think_us_max: self.options.think.unwrap_or(0).into(),
            rate_per_s: self.options.rate.or(usual_rate).map(u64::from),
            ..RrClientSpec::default()
        };
        let agent = self.agent(WorkloadSpec::RrClient(spec), transport, self.rr_address());
        player(self.site.client(), Part::Asker, false, agent)
    }

    fn memcached_client(&self) -> Player {
        let spec = MemcachedClientSpec {
            value_bytes: self.options.value_bytes.unwrap_or(4_096) as usize,
            think_us_max: self.options.think.unwrap_or(MEMCACHED_THINK_US).into(),
        };
        let address = self.site.server_at(MEMCACHED_PORT);
        let agent = self.agent(WorkloadSpec::MemcachedClient(spec), Transport::Tcp, address);
        player(self.site.client(), Part::Asker, false, agent)
    }

    fn ntp_server(&self) -> Player {
        let workload = WorkloadSpec::NtpServer(NtpServerSpec::default());
        let agent = self.agent(workload, Transport::Udp, self.site.server_at(NTP_PORT));
        player(self.site.server, Part::Answerer, true, agent)
    }

    fn ntp_client(&self) -> Player {
        let rate = self.options.rate.unwrap_or(NTP_POLLS_PER_S);
        let interval_us = (1_000_000 / u64::from(rate)).max(1);
        let spec = NtpClientSpec { interval_us, ..NtpClientSpec::default() };
        let workload = WorkloadSpec::NtpClient(spec);
        let agent = self.agent(workload, Transport::Udp, self.site.server_at(NTP_PORT));
        player(self.site.client(), Part::Asker, false, agent)
    }

    fn bulk_source(&self) -> Player {
        let mixed = matches!(self.experiment, Experiment::Mixed | Experiment::MxMixed);
        let usual_rate = mixed.then_some(MIXED_BULK_MBIT);
        let spec = BulkSenderSpec {
            rate_mbit: self.options.bulk_rate.or(usual_rate).map(u64::from),
            chunk_bytes: self.options.bulk_chunk.unwrap_or(BULK_CHUNK_BYTES) as usize,
            ..BulkSenderSpec::default()
        };
        let agent = self.agent(WorkloadSpec::BulkSender(spec), Transport::Tcp, self.site.bulk());
        player(self.site.source(), Part::BulkSource, false, agent)
    }

    fn bulk_sink(&self) -> Player {
        let workload = WorkloadSpec::BulkReceiver(BulkReceiverSpec::default());
        let agent = self.agent(workload, Transport::Tcp, self.site.bulk());
        player(self.site.sink, Part::BulkSink, true, agent)
    }

    fn pps_flood(&self) -> Player {
        let spec = PpsSenderSpec {
            payload_bytes: self.options.payload_bytes.unwrap_or(18) as usize,
            rate_per_s: self.options.rate.map(u64::from),
            ..PpsSenderSpec::default()
        };
        let agent = self.agent(WorkloadSpec::PpsSender(spec), Transport::Udp, self.rr_address());
        player(self.site.client(), Part::Flood, false, agent)
    }

    fn pps_counter(&self) -> Player {
        let workload = WorkloadSpec::PpsReceiver(PpsReceiverSpec::default());
        let agent = self.agent(workload, Transport::Udp, self.rr_address());
        player(self.site.server, Part::Counter, true, agent)
    }

    fn frame_flood(&self) -> Player {
        let rate_per_s = self.options.rate.map(u64::from);
        let spec = FrameSenderSpec { rate_per_s, ..FrameSenderSpec::default() };
        let mut agent =
            self.agent(WorkloadSpec::FrameSender(spec), Transport::Packet, self.rr_address());
        agent.address = None;
        agent.interface = Some("a0".into());
        player(A, Part::Flood, false, agent)
    }

    fn agent(
        &self,
        workload: WorkloadSpec,
        transport: Transport,
        address: SocketAddr,
    ) -> AgentSpec {
        let millis = |seconds: f64| (seconds * 1e3).round() as u64;
        AgentSpec {
            spin: self.options.client_spin.unwrap_or(false) && !workload.is_server(),
            workload,
            transport: Some(transport),
            address: Some(address.to_string()),
            interface: None,
            mx: None,
            for_host: None,
            warmup_ms: millis(self.warmup_s),
            duration_ms: millis(self.duration_s),
            seed: self.seed,
            poll: Polling::default(),
            virtual_time: false,
            processor: None,
            series: self.options.change_to.is_some(),
        }
    }

    fn rr_address(&self) -> SocketAddr {
        self.site.server_at(self.site.port)
    }

    fn request_bytes(&self) -> usize {
        let usual = if self.experiment == Experiment::Ping { PING_BYTES } else { 1 };
        self.options.request_bytes.unwrap_or(usual) as usize
    }

    fn response_bytes(&self) -> usize {
        self.options.response_bytes.unwrap_or(1) as usize
    }

    /// The real server, one thread, as the bge seed's.
    fn memcached(&self) -> Player {
        let address = self.site.server_at(MEMCACHED_PORT);
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        let words = ["memcached", "-u", "root", "-t", "1", "-U", "0", "-l", &ip, "-p", &port]
            .map(str::to_owned);
        let (host, peers) = (self.site.server, Vec::new());
        Player { host, peers, server: true, role: Role::Program(words.to_vec()) }
    }
}

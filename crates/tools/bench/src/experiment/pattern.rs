//! Which hosts talk to which where an experiment has many hosts, or several processes on each.

use anyhow::{Result, bail, ensure};
use schemars::JsonSchema;
use serde::Serialize;

use super::players::{Player, Role};
use super::{Experiment, Plan};
use crate::options::{ExperimentOptions, Hosts, NicOptions};
use crate::world::WorldKind;
use workload::Transport;

/// Which of many hosts talk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Pattern {
    /// All send to one host, or ask it: host b
    #[default]
    Incast,
    /// Each sends to all others, or asks them
    AllToAll,
}

/// The experiments that may have many hosts: all whose programs come from one workload.
pub const MANY: &[Experiment] = &[
    Experiment::TcpRr,
    Experiment::UdpRr,
    Experiment::Ping,
    Experiment::LoadedServer,
    Experiment::Bulk,
    Experiment::Pps,
    Experiment::MxPingpong,
    Experiment::MxStream,
    Experiment::MxLargeAnatomy,
    Experiment::MxMisorder,
];

/// Hosts of a model.
pub const MAX_HOSTS: usize = 1_000;

/// Processes of all hosts.
const MAX_PROCESSES: usize = 10_000;

/// Connections of a host: clients have ports for no more (`net.ipv4.ip_local_port_range`).
const MAX_OF_HOST: usize = 28_000;

/// Connections of TCP: each has four buffers of 32 KiB and more.
const MAX_TCP: usize = 20_000;

/// Bytes of a segment of TCP, whose options are a timestamp.
const SEGMENT: u32 = 1_448;

/// Peers of endpoints of MX: each has a window of frames and of requests.
const MAX_MX: usize = 100_000;

/// Endpoints of MX of a host that send: a byte numbers them, and others have some.
const MAX_ENDPOINTS: usize = 200;

/// How many hosts an experiment has, and who talks on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Crowd {
    /// How many hosts.
    pub hosts: usize,
    /// Which of them talk.
    pub pattern: Pattern,
    /// On each host that sends or asks, so many processes do.
    pub processes: usize,
    /// Processes of a server.
    pub workers: usize,
}

impl Crowd {
    /// Two hosts, one of which sends or asks.
    pub const PAIR: Self = Self { hosts: 2, pattern: Pattern::Incast, processes: 1, workers: 1 };

    /// What options ask for.
    ///
    /// # Errors
    /// If that world or experiment has two hosts only, or these are too many.
    pub fn of(
        experiment: Experiment,
        world: WorldKind,
        (nic, options): (&NicOptions, &ExperimentOptions),
    ) -> Result<Self> {
        let hosts = match (world, nic.hosts) {
            (WorldKind::Model, Some(Hosts::Count(hosts))) => hosts.into(),
            (WorldKind::Model, Some(_)) => {
                bail!("--hosts: in the model, say how many there are, as in --hosts 16")
            }
            (_, Some(Hosts::Count(hosts))) => bail!(
                "--hosts {hosts}: only the model has more than two hosts; give --world model, or \
                 say what they are made of: namespaces or uml"
            ),
            (_, None | Some(_)) => Self::PAIR.hosts,
        };
        let pattern = options.pattern.unwrap_or_default();
        let processes = options.processes.unwrap_or(1) as usize;
        let workers = options.workers.unwrap_or(1) as usize;
        let crowd = Self { hosts, pattern, processes, workers };
        let bytes = [options.request_bytes, options.response_bytes].into_iter().flatten().max();
        ensure!(
            workers == 1 || bytes.is_none_or(|bytes| bytes <= SEGMENT),
            "--workers {workers}: pieces of a request might go to several of them; give requests \
             and answers {SEGMENT} bytes or fewer"
        );
        ensure!(
            crowd == Self::PAIR || MANY.contains(&experiment),
            "--hosts {hosts}: {} is played on two hosts; these have more: {}",
            experiment.name(),
            MANY.iter().map(|one| one.name()).collect::<Vec<_>>().join(", ")
        );
        let all = hosts * (processes + 1);
        ensure!(
            all <= MAX_PROCESSES + MAX_HOSTS,
            "--processes {processes}: {hosts} hosts would have {}, and at most {MAX_PROCESSES} are \
             modelled; give --processes {} or fewer hosts",
            hosts * processes,
            MAX_PROCESSES / hosts
        );
        ensure!(
            pattern == Pattern::Incast || processes < hosts,
            "--processes {processes}: under all-to-all they share {} peers; give at most as many",
            hosts - 1
        );
        Ok(crowd)
    }

    /// The clients of this host, each with its peers; `server` is the host of the only server.
    fn clients(&self, host: usize, server: usize) -> Vec<Vec<usize>> {
        let processes = 0..self.processes;
        match self.pattern {
            Pattern::Incast if host == server => Vec::new(),
            Pattern::Incast => processes.map(|_| vec![server]).collect(),
            // Each begins with the host after it, so that they do not all begin with the same one.
            Pattern::AllToAll => {
                let others = |first| (first + 1..self.hosts).step_by(self.processes);
                let peer = |distance: usize| (host + distance) % self.hosts;
                processes.map(|first| others(first).map(peer).collect()).collect()
            }
        }
    }
}

impl Plan {
    /// The same on as many hosts as `crowd` has.
    ///
    /// # Errors
    /// If there would be more connections than can be modelled.
    pub fn spread(self, crowd: &Crowd) -> Result<Self> {
        if *crowd == Crowd::PAIR {
            return Ok(self);
        }
        let server = self.players.iter().find(|it| it.server).map_or(super::B, |it| it.host);
        let hosts = 0..crowd.hosts;
        let mut players = Vec::new();
        for player in &self.players {
            if player.server {
                let has_server =
                    |host: &usize| crowd.pattern == Pattern::AllToAll || *host == server;
                for host in hosts.clone().filter(has_server) {
                    let worker = Player { host, ..player.clone() };
                    players.extend(std::iter::repeat_n(worker, crowd.workers));
                }
                continue;
            }
            let each = hosts.clone().flat_map(|host| {
                crowd.clients(host, server).into_iter().map(move |peers| (host, peers))
            });
            players.extend(
                (0..).zip(each).map(|(number, (host, peers))| copy(player, number, host, peers)),
            );
        }
        check_connections(&players, crowd)?;
        Ok(Self { players, hosts: crowd.hosts, ..self })
    }
}

/// A client as number `number` of its kind, on another host.
fn copy(client: &Player, number: u64, host: usize, peers: Vec<usize>) -> Player {
    let mut copy = Player { host, ..client.clone() };
    if let Role::Agent(_, agent) = &mut copy.role {
        agent.seed = agent.seed.wrapping_add(number);
        agent.workload.multiply_connections(peers.len());
    }
    copy.peers = peers;
    copy
}

fn check_connections(players: &[Player], crowd: &Crowd) -> Result<()> {
    let agents = players.iter().filter_map(|player| match &player.role {
        Role::Agent(_, agent) => Some((player.host, agent)),
        Role::Program(_) => None,
    });
    let mut of_hosts = vec![0; crowd.hosts];
    let (mut tcp, mut mx) = (0, 0);
    for (host, agent) in agents {
        let connections = agent.workload.connections();
        of_hosts[host] += connections;
        tcp += if agent.transport() == Transport::Tcp { connections } else { 0 };
        mx += if agent.transport() == Transport::Mx { connections } else { 0 };
    }
    let most = of_hosts.into_iter().max().unwrap_or_default();
    ensure!(
        most <= MAX_OF_HOST,
        "a host would have {most} connections, and there are ports for {MAX_OF_HOST}; give fewer \
         --hosts, --processes or --clients"
    );
    ensure!(
        tcp <= MAX_TCP,
        "there would be {tcp} connections of TCP, and at most {MAX_TCP} are modelled; give fewer \
         --hosts, --processes or --clients, or an experiment over UDP"
    );
    ensure!(
        mx <= MAX_MX,
        "there would be {mx} pairs of endpoints of MX, and at most {MAX_MX} are modelled; give \
         fewer --hosts, --processes or --clients"
    );
    ensure!(
        mx == 0 || crowd.processes <= MAX_ENDPOINTS,
        "--processes {}: a host has at most {MAX_ENDPOINTS} endpoints of MX",
        crowd.processes
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(experiment: Experiment, crowd: &Crowd) -> Result<Plan> {
        experiment.plan(&ExperimentOptions::default(), None, 1).spread(crowd)
    }

    /// Host, peers and connections of each client.
    fn clients(plan: &Plan) -> Vec<(usize, Vec<usize>, usize)> {
        let clients = plan.players.iter().filter(|player| !player.server);
        let client = |player: &Player| match &player.role {
            Role::Agent(_, agent) => {
                (player.host, player.peers.clone(), agent.workload.connections())
            }
            Role::Program(_) => panic!("no experiment of many hosts starts programs"),
        };
        clients.map(client).collect()
    }

    #[test]
    fn all_hosts_send_to_one_or_each_to_all_others() {
        let incast = Crowd { hosts: 3, processes: 2, ..Crowd::PAIR };
        let both = |host| [(host, vec![1], 1), (host, vec![1], 1)];
        let plan_of = |crowd| plan(Experiment::Pps, &crowd).unwrap();
        assert_eq!(clients(&plan_of(incast)), [both(0), both(2)].concat());
        let all = plan_of(Crowd { hosts: 4, pattern: Pattern::AllToAll, ..Crowd::PAIR });
        assert_eq!(all.players.iter().filter(|player| player.server).count(), 4);
        assert_eq!(clients(&all)[3], (3, vec![0, 1, 2], 3));
        let shared =
            plan_of(Crowd { hosts: 4, pattern: Pattern::AllToAll, processes: 2, ..Crowd::PAIR });
        assert_eq!(clients(&shared)[..2], [(0, vec![1, 3], 2), (0, vec![2], 1)]);
        let seeds = |player: &Player| match &player.role {
            Role::Agent(_, agent) => agent.seed,
            Role::Program(_) => 0,
        };
        let mut seeds: Vec<_> = shared.players.iter().filter(|it| !it.server).map(seeds).collect();
        seeds.dedup();
        assert_eq!(seeds.len(), 8);
    }

    #[test]
    fn what_cannot_be_modelled_is_refused() {
        let asked = |world, hosts, pattern, processes| {
            let nic = NicOptions { hosts: Some(hosts), ..NicOptions::default() };
            let options = ExperimentOptions { pattern, processes, ..ExperimentOptions::default() };
            move |experiment| {
                let crowd = Crowd::of(experiment, world, (&nic, &options))?;
                plan(experiment, &crowd).map(|plan| plan.players.len())
            }
        };
        let (all, model) = (Some(Pattern::AllToAll), WorldKind::Model);
        let many = Hosts::Count(1_000);
        assert_eq!(asked(model, many, None, Some(10))(Experiment::UdpRr).unwrap(), 9_991);
        assert_eq!(asked(model, many, all, Some(9))(Experiment::UdpRr).unwrap(), 10_000);
        assert_eq!(asked(model, many, None, Some(10))(Experiment::MxStream).unwrap(), 9_991);
        for (world, hosts, pattern, processes, experiment, words) in [
            (WorldKind::Live, many, None, None, Experiment::UdpRr, "only the model has more"),
            (model, Hosts::Uml, None, None, Experiment::UdpRr, "say how many"),
            (model, many, None, None, Experiment::Ntp, "ntp is played on two hosts"),
            (model, many, None, Some(11), Experiment::UdpRr, "give --processes 10"),
            (model, Hosts::Count(4), all, Some(4), Experiment::UdpRr, "share 3 peers"),
            (model, many, all, None, Experiment::TcpRr, "at most 20000 are modelled"),
            (model, many, all, None, Experiment::MxPingpong, "at most 100000 are modelled"),
            (model, Hosts::Count(9), None, Some(201), Experiment::MxPingpong, "at most 200 "),
        ] {
            let error = asked(world, hosts, pattern, processes)(experiment).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

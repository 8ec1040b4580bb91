//! The model world: hosts of many cores in simulated time, on any machine.
//!
//! NIC, protocol of MX and workloads are the real ones ([`model`]); what hosts cost is a
//! [machine](Machine), as data. A round takes milliseconds, and the same seed is the same round.
//! Of Linux's own protocols there is a small TCP, so what depends on Linux's is for the virtual
//! world.

use std::collections::{BTreeMap, BTreeSet};

use ::mx::config::Config;
use ::mx::wire::ETHER_TYPE;
use anyhow::{Context, Result, anyhow, bail, ensure};
use base::distribution::Distribution;
use base::time::{Duration, Instant};
use model::cpu::Busy;
use model::device::NicSettings;
use model::machine::{Completions, Costs, Machine, Transmissions};
use model::stack::Process;
use model::stack::driver::WorkloadDriver;
use model::stack::joined::Joined;
use model::stack::mx::{self, EndpointSpec, MxStack};
use model::stack::mx_program::WorkloadProgram;
use model::stack::net::{self, Binding, NetStack, ProgramSpec};
use model::world::{Settings, Simulation};
use nic::counters::Counters;
use nic::moderation::Moderation;
use nic::processor::Activity;
use workload::{MemcachedServer, Record, Transport, Window};

use super::trace::{HostTrace, Seen};
use super::{World, setup};
use crate::agent::{AgentSpec, MxSpec};
use crate::costs;
use crate::environment::Environment;
use crate::experiment::{Plan, Player, Role};
use crate::options::{NicOptions, Ports};
use crate::slice::{NicRecord, NotMeasured, Part, PortRecord, Slice};

/// The machine where no option names one.
const USUAL_MACHINE: &str = "ideal";

/// When programs begin, as in virtual time: NICs have had a silence before that.
pub const GO_AT: Instant = Instant::from_micros(1_000_000);

/// How long servers go on after the measurement, so that the last requests are answered.
const LINGER: Duration = Duration::from_millis(50);

/// Bytes for messages that come, all places together, and how many places there are.
const ROOM_BYTES: u64 = 4 << 20;
const PLACES: std::ops::RangeInclusive<u64> = 4..=512;

/// Where rounds of the model are played.
#[derive(Debug)]
pub struct ModelWorld {
    options: NicOptions,
    machine: Machine,
    environment: Environment,
}

impl ModelWorld {
    /// The world that `options` describe; `environment` is that of this program.
    ///
    /// # Errors
    /// If they do not go together, or there is no such machine.
    pub fn new(options: &NicOptions, environment: Environment) -> Result<Self> {
        let machine = with(machine(options.machine.as_deref())?, options);
        let fitted = machine.fitted();
        let environment = Environment {
            wait: "simulated time".to_owned(),
            machine: format!("{}; {fitted} constants fitted", machine.title),
            interrupt_latency_us: Some(0),
            costs: costs::describe([0, 1].map(|host| options.costs_of(host))),
            congestion_control: "reno".to_owned(),
            link: setup::describe_link(
                Some(machine.link.rate_mbit).filter(|rate| *rate > 0),
                Duration::from_nanos(machine.link.latency_ns.into()),
                options,
            ),
            mark: setup::rules(options)?.to_string(),
            lane: options.lane.as_ref().map_or_else(String::new, ToString::to_string),
            ..environment
        };
        Ok(Self { options: options.clone(), machine, environment })
    }

    /// What hosts are like.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The setting of the port of a host, if it takes one.
    fn moderation(&self, host: usize, moderation: Moderation) -> Moderation {
        let takes = match self.options.ports.unwrap_or(Ports::Both) {
            Ports::Both => true,
            one => one.numbers(host + 1).contains(&host),
        };
        if takes { moderation } else { Moderation::DISABLED }
    }

    /// How the NIC of a host is set, and what things cost there.
    fn host(
        &self,
        number: usize,
        moderation: Moderation,
        plan: &Plan,
    ) -> Result<(NicSettings, Costs)> {
        let NicOptions { queues, ring, .. } = &self.options;
        let (moderation, usual) = (self.moderation(number, moderation), NicSettings::default());
        let polling = plan.polling.iter().find(|(host, _)| *host == number);
        let nic = NicSettings {
            moderation,
            rules: setup::rules(&self.options)?,
            lanes: self.options.lanes(moderation),
            queues: queues.unwrap_or(1),
            ring: ring.map_or(usual.ring, |ring| ring as usize),
            tick_seed: Some(setup::tick_seed(Some(plan.seed), number)),
            napi: polling.map_or_else(Default::default, |(_, polling)| polling.napi()),
        };
        let mut costs = self.machine.constants.costs;
        let own = [
            &mut costs.interrupt,
            &mut costs.packet,
            &mut costs.send,
            &mut costs.idle_exit,
            &mut costs.idle_after,
        ];
        for (cost, given) in own.into_iter().zip(self.options.given_costs(number)) {
            *cost = given.map_or(*cost, |given| given.as_nanos() as f64);
        }
        Ok((nic, costs))
    }

    fn settings(&self, plan: &Plan, moderation: Moderation) -> Result<Settings> {
        let polls = plan.polling.iter().any(|(_, polling)| !polling.is_epoll());
        ensure!(
            !polls || self.machine.nic.completions == Completions::AtOnce,
            "--poll: the NIC of this machine reports what polls find (nic.completions = reported); \
             give another machine, or --machine NAME,nic.completions=at-once"
        );
        let seed = plan.seed;
        let hosts = (0..plan.hosts).map(|host| self.host(host, moderation, plan));
        Ok(Settings {
            machine: self.machine.clone(),
            hosts: hosts.collect::<Result<_>>()?,
            faults: setup::link(&NicOptions { seed: Some(seed), ..self.options.clone() }, 0),
            switch_queue: 1_000,
            seed,
        })
    }
}

/// A machine of the crate or of a file, with changes: `NAME|FILE[,KEY=VALUE]...`.
fn machine(named: Option<&str>) -> Result<Machine> {
    let mut parts = named.unwrap_or(USUAL_MACHINE).split(',');
    let name = parts.next().unwrap_or_default();
    let changes: Vec<&str> = parts.collect();
    let text = match Machine::text(name) {
        Some(text) => text.to_owned(),
        None => {
            let known = Machine::names().collect::<Vec<_>>().join(", ");
            std::fs::read_to_string(name).with_context(|| {
                format!("--machine: read {name}; the machines that Earmark brings are {known}")
            })?
        }
    };
    Machine::parse(&text, &changes).map_err(|error| anyhow!("--machine {name}: {error}"))
}

/// The machine, changed as options say.
fn with(mut machine: Machine, options: &NicOptions) -> Machine {
    if let Some(rate_mbit) = options.link_rate {
        machine.link.rate_mbit = rate_mbit;
    }
    if let Some(latency) = options.link_latency {
        machine.link.latency_ns = latency.saturating_mul(1_000);
    }
    if let Some(latency) = options.dma_latency {
        machine.constants.costs.dma = f64::from(latency) * 1e3;
    }
    if options.transmit_interrupts == Some(true) {
        machine.nic.transmissions = Transmissions::Shared;
    }
    machine.sleeps |= options.wakeup_cost.is_some();
    machine
}

/// The stacks of a host: MX, and IP beside it.
type Stacks = Joined<MxStack, NetStack>;

impl World for ModelWorld {
    fn environment(&self) -> &Environment {
        &self.environment
    }

    fn round(
        &self,
        plan: &Plan,
        moderation: Moderation,
        change_to: Option<Moderation>,
    ) -> Result<Slice> {
        Ok(self.traced(plan, (moderation, change_to), 0)?.0)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }

    fn parallel(&self) -> Option<&(dyn World + Sync)> {
        Some(self)
    }
}

impl ModelWorld {
    /// A round as [`World::round`], and the first `most` things of each kind that happened at each
    /// host in the measurement.
    ///
    /// # Errors
    /// If an agent did not get its work done, or the model cannot play it.
    pub fn traced(
        &self,
        plan: &Plan,
        (moderation, change_to): (Moderation, Option<Moderation>),
        most: usize,
    ) -> Result<(Slice, Vec<HostTrace>)> {
        let settings = self.settings(plan, moderation)?;
        let stacks = self.stacks(plan)?.map(|stack| (stack, Seen::default()));
        let mut world = Simulation::new(&settings, stacks);
        let after = change_to.unwrap_or(moderation);
        let (nic, traces) = self.play(plan, &mut world, (moderation, after), most)?;
        let mut processes = vec![[0; 2]; plan.hosts];
        let mut records = Vec::new();
        for Player { host, role, .. } in &plan.players {
            let stacks = &mut world.hosts[*host].stack;
            let process = &mut processes[*host][usize::from(is_mx(role))];
            if let Role::Agent(part, spec) = role {
                add(&mut records, *part, record(stacks, *process, spec, *part)?);
            }
            *process += 1;
        }
        let seconds = plan.duration_s;
        Ok((Slice { seconds, records, nic }, traces))
    }
}

/// Adds what an agent has measured to what others in the same part have.
fn add(records: &mut Vec<(Part, Record)>, part: Part, record: Record) {
    match records.iter_mut().find(|(known, _)| *known == part) {
        Some((_, sum)) => {
            // They did so at once.
            let window_ns = sum.window_ns;
            sum.merge(&record);
            sum.window_ns = window_ns;
        }
        None => records.push((part, record)),
    }
}

/// The name of a host: those of a lab, and behind `z`, `aa` and so on.
fn name_of(host: usize) -> String {
    let letter = char::from(b'a' + (host % 26) as u8);
    match host / 26 {
        0 => letter.to_string(),
        more => name_of(more - 1) + &letter.to_string(),
    }
}

fn is_mx(role: &Role) -> bool {
    matches!(role, Role::Agent(_, spec) if spec.transport() == Transport::Mx)
}

impl ModelWorld {
    /// The stacks of the hosts, with the programs of all agents, each on a core of its own as far
    /// as there are cores.
    fn stacks(&self, plan: &Plan) -> Result<impl Iterator<Item = Stacks>> {
        let mut cores = vec![0; plan.hosts];
        let (mut endpoints, mut programs) = (Vec::new(), Vec::new());
        for Player { host, role, peers, .. } in &plan.players {
            let place = (*host, cores[*host]);
            cores[*host] += 1;
            match role {
                Role::Agent(_, spec) if is_mx(role) => {
                    endpoints.push(endpoint(place, (spec, peers.len()), &self.machine)?);
                }
                Role::Agent(_, spec) => programs.push(agent(place, peers, spec)?),
                Role::Program(words) => programs.push(memcached(place, words)?),
            }
        }
        join(&mut endpoints, plan.players.iter().filter(|player| is_mx(&player.role)));
        let mx = mx::stacks(plan.hosts, &self.machine, endpoints)?;
        let net = net::stacks(plan.hosts, plan.seed, programs);
        let joined = |(mx, net)| Joined::new(mx, net, ETHER_TYPE);
        Ok(mx.into_iter().zip(net).map(joined))
    }

    /// Plays a round to its end; what the NICs counted in the measurement.
    fn play(
        &self,
        plan: &Plan,
        world: &mut Simulation<Stacks, Seen>,
        (before, after): (Moderation, Moderation),
        most: usize,
    ) -> Result<(NicRecord, Vec<HostTrace>)> {
        let at = |seconds: f64| GO_AT + Duration::from_nanos((seconds * 1e9) as u64);
        world.run(at(plan.warmup_s));
        let first: Vec<_> = (0..plan.hosts).map(|host| counted(world, host)).collect();
        world.hosts.iter_mut().for_each(|host| host.device.observer = Seen::new(most));
        if before != after {
            world.run(at(plan.warmup_s + plan.duration_s / 2.0));
            for host in 0..plan.hosts {
                world.set_moderation(host, self.moderation(host, after));
            }
        }
        let end = at(plan.warmup_s + plan.duration_s);
        world.run(end);
        let (mut ports, mut traces) = (Vec::new(), Vec::new());
        for (host, (earlier, busy, lost, refused)) in first.into_iter().enumerate() {
            let (counters, busy_now, lost_now, refused_now) = counted(world, host);
            let Seen { holds, trace, .. } = std::mem::take(&mut world.hosts[host].device.observer);
            traces.push(trace);
            ports.push(PortRecord {
                name: format!("{}0", name_of(host)),
                setting: self.moderation(host, after).to_string(),
                holds: Distribution::of(&holds, 1),
                busy_ns: Some(busy_since(busy_now, busy)),
                cores: self.machine.cores,
                link_lost: lost_now - lost,
                refused: refused_now - refused,
                ..PortRecord::counted(&(counters - earlier))
            });
        }
        world.run(end + LINGER);
        Ok((NicRecord { ports, ..NicRecord::default() }, traces))
    }
}

/// What a NIC and the cores of its host have counted, frames that did not reach it, and datagrams
/// that found no room in a socket.
fn counted(world: &Simulation<Stacks, Seen>, host: usize) -> (Counters, Busy, u64, u64) {
    let it = &world.hosts[host];
    (it.device.counters(), it.busy(), world.lost(host), it.stack.other.dropped())
}

/// Nanoseconds for each of [`Activity::ALL`]; what processes send is in their work.
fn busy_since(busy: Busy, earlier: Busy) -> [u64; Activity::ALL.len()] {
    let Busy { interrupts, softirqs, processes } = busy;
    Activity::ALL.map(|activity| match activity {
        Activity::Wakeup | Activity::Send => 0,
        Activity::Interrupt => interrupts - earlier.interrupts,
        Activity::Receive => softirqs - earlier.softirqs,
        Activity::Work => processes - earlier.processes,
    })
}

/// Gives endpoints of these players, servers first, their peers: a client talks to the server of
/// its number on each of its hosts. Of those with one number on a host, later ones get others.
fn join<'a>(endpoints: &mut [EndpointSpec], players: impl Iterator<Item = &'a Player>) {
    let mut servers = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (at, player) in players.enumerate() {
        let (host, number) = (player.host, endpoints[at].endpoint);
        if player.server {
            servers.insert((host, number), at);
        }
        for to in player.peers.iter().filter_map(|peer| servers.get(&(*peer, number))) {
            endpoints[at].peers.push(*to);
            endpoints[*to].peers.push(at);
        }
        let free = |number: &u8| !taken.contains(&(host, *number));
        let number = [number].into_iter().chain(1..=u8::MAX).find(free).unwrap_or(number);
        taken.insert((host, number));
        endpoints[at].endpoint = number;
    }
}

/// The endpoint of an agent with so many peers, and its program.
fn endpoint(
    (host, core): (usize, usize),
    (spec, peers): (&AgentSpec, usize),
    machine: &Machine,
) -> Result<EndpointSpec> {
    let (_, settings) = spec.mx().map_err(NotMeasured)?;
    let MxSpec { endpoint, message_bytes, in_flight, marks, mark_early, .. } = *settings;
    let bytes = u64::from(message_bytes);
    let usual = Config::default();
    let ack_every = machine.ack_every(bytes, &usual);
    let config = Config { marks: marks.0, mark_early, ack_every, ..usual };
    let places = (ROOM_BYTES / bytes.max(1)).clamp(*PLACES.start(), *PLACES.end());
    let driver = driver(spec, WorkloadProgram::KEEPS);
    let connections = spec.workload.connections();
    let program = WorkloadProgram::new(driver, (connections, peers), in_flight as usize);
    Ok(EndpointSpec {
        host,
        core,
        endpoint,
        config,
        peers: Vec::new(),
        receives: (places as usize, bytes),
        program: Box::new(program),
    })
}

fn driver(spec: &AgentSpec, keeps: usize) -> WorkloadDriver {
    let workload = spec.workload.build(spec.transport().framing(), spec.seed);
    WorkloadDriver::new(workload, spec.window(), keeps, spec.series).beginning_at(GO_AT)
}

/// A program with sockets. It sleeps while it waits.
fn agent((host, core): (usize, usize), peers: &[usize], spec: &AgentSpec) -> Result<ProgramSpec> {
    let transport = spec.transport();
    let binding = match (transport, spec.workload.is_server()) {
        (Transport::Packet, _) => Binding::Interface,
        (_, true) => Binding::Port(spec.socket_address().map_err(NotMeasured)?.port()),
        (_, false) => Binding::Peers {
            hosts: peers.to_vec(),
            port: spec.socket_address().map_err(NotMeasured)?.port(),
            connections: spec.workload.connections(),
        },
    };
    let process = Process { core, blocks: true };
    Ok(ProgramSpec { host, process, transport, binding, driver: driver(spec, usize::MAX) })
}

/// A server that answers as memcached does, which plans start as a program.
fn memcached((host, core): (usize, usize), words: &[String]) -> Result<ProgramSpec> {
    let port = match words {
        [name, .., port] if name == "memcached" => port.parse().ok(),
        _ => None,
    };
    let port = port.with_context(|| {
        format!("the model cannot play `{}`; give --world virtual", words.join(" "))
    })?;
    let server =
        WorkloadDriver::new(Box::new(MemcachedServer::new()), Window::NEVER, usize::MAX, false);
    let process = Process { core, blocks: true };
    let binding = Binding::Port(port);
    Ok(ProgramSpec { host, process, transport: Transport::Tcp, binding, driver: server })
}

/// What an agent has measured.
fn record(stacks: &mut Stacks, process: usize, spec: &AgentSpec, part: Part) -> Result<Record> {
    let driver = if spec.transport() == Transport::Mx {
        let program: Option<&mut WorkloadProgram> = stacks.one.program(process);
        program.map(|program| &mut program.driver)
    } else {
        stacks.other.driver(process)
    };
    let driver = driver.context("a process of the model has another program")?;
    if let Some(why) = driver.failure() {
        bail!(NotMeasured(format!("{part:?}: {why}").to_lowercase()));
    }
    Ok(driver.record(&spec.workload, 0))
}

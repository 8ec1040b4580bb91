//! What many hosts cost a simulation: what `cargo xtask bench scale` measures.
//!
//! ```text
//! scale incast|all-to-all HOSTS EVENTS    round trips of UDP: events, CPU seconds, bytes resident
//! scale queued HOSTS PACKETS              packets of 1,514 bytes that wait: how many, and bytes
//! scale bulk SECONDS                      one flow of TCP: packets received, seconds of CPU
//! ```

use std::error::Error;
use std::fs;

use base::time::{Duration, Instant};
use model::device::NicSettings;
use model::machine::Machine;
use model::stack::Process;
use model::stack::driver::WorkloadDriver;
use model::stack::net::{Binding, NetStack, ProgramSpec, stacks};
use model::world::{Settings, Simulation};
use network::link::LinkSettings;
use workload::{
    BulkReceiverSpec, BulkSenderSpec, PpsReceiverSpec, PpsSenderSpec, RrClientSpec, RrServerSpec,
    Transport, Window, WorkloadSpec,
};

const PORT: u16 = 7_000;
/// Packets that all hosts send a second where they queue: two thirds of what the cable carries.
const QUEUED_PER_S: u64 = 54_000;
/// Nanoseconds that a host takes for each of those, so that almost none is taken.
const SLOW: f64 = 1e9;

/// A program on a host; a client with a connection to each of its peers.
fn program(
    host: usize,
    transport: Transport,
    spec: &WorkloadSpec,
    peers: Vec<usize>,
) -> ProgramSpec {
    let window = Window { start: Instant::ZERO, end: Instant::from_nanos(u64::MAX / 2) };
    let mut spec = spec.clone();
    let binding = if peers.is_empty() {
        Binding::Port(PORT)
    } else {
        spec.multiply_connections(peers.len());
        Binding::Peers { connections: peers.len(), hosts: peers, port: PORT }
    };
    let workload = spec.build(transport.framing(), host as u64);
    let driver = WorkloadDriver::new(workload, window, usize::MAX, false);
    ProgramSpec { host, process: Process { core: 0, blocks: true }, transport, binding, driver }
}

/// Hosts of the usual machine, all of which send to the first one, or each to all others.
fn world(
    hosts: usize,
    transport: Transport,
    [client, server]: [&WorkloadSpec; 2],
    (all_to_all, packet): (bool, f64),
) -> Result<Simulation<NetStack>, Box<dyn Error>> {
    let mut programs = Vec::new();
    for host in 0..hosts {
        if host == 0 || all_to_all {
            programs.push(program(host, transport, server, Vec::new()));
        }
        if all_to_all {
            let peers = (1..hosts).map(|distance| (host + distance) % hosts);
            programs.push(program(host, transport, client, peers.collect()));
        } else if host > 0 {
            programs.push(program(host, transport, client, vec![0]));
        }
    }
    let machine = Machine::named("ideal").ok_or("the machine comes with the crate")?;
    let moderation = "delay:75".parse()?;
    let nic = NicSettings { moderation, ring: 1 << 20, ..NicSettings::default() };
    let mut costs = machine.constants.costs;
    let usual = (NicSettings { moderation, ..NicSettings::default() }, costs);
    costs.packet = packet;
    let first = if packet > 0.0 { (nic, costs) } else { usual.clone() };
    let settings = Settings {
        hosts: vec![first, usual],
        machine,
        faults: LinkSettings::default(),
        switch_queue: 1_000,
        seed: 1,
    };
    let stacks = stacks(hosts, 1, programs);
    Ok(Simulation::new(&settings, stacks.into_iter().map(|stack| (stack, ()))))
}

/// Seconds of CPU that this thread has had: what others take on a busy machine is not in it.
fn cpu_s() -> Result<f64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos: f64 = text.split(' ').next().unwrap_or_default().parse()?;
    Ok(nanos / 1e9)
}

/// Bytes of memory that this process has.
fn resident() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/self/smaps_rollup")?;
    let line = text.lines().find(|line| line.starts_with("Rss:")).ok_or("no Rss")?;
    let kib: u64 = line.split_whitespace().nth(1).ok_or("no number")?.parse()?;
    Ok(kib << 10)
}

fn round_trips(hosts: usize, all_to_all: bool, events: u64) -> Result<(), Box<dyn Error>> {
    let client = WorkloadSpec::RrClient(RrClientSpec::default());
    let server = WorkloadSpec::RrServer(RrServerSpec::default());
    let mut world = world(hosts, Transport::Udp, [&client, &server], (all_to_all, 0.0))?;
    let began = cpu_s()?;
    while world.events() < events {
        world.run(world.now() + Duration::from_micros(50));
    }
    println!("{} {} {}", world.events(), cpu_s()? - began, resident()?);
    Ok(())
}

fn queued(hosts: usize, packets: u64) -> Result<(), Box<dyn Error>> {
    let rate_per_s = Some((QUEUED_PER_S / (hosts as u64 - 1)).max(1));
    let client = PpsSenderSpec { payload_bytes: 1_472, rate_per_s, ..PpsSenderSpec::default() };
    let client = WorkloadSpec::PpsSender(client);
    let server = WorkloadSpec::PpsReceiver(PpsReceiverSpec::default());
    let mut world = world(hosts, Transport::Udp, [&client, &server], (false, SLOW))?;
    // Programs have what they need by then.
    world.run(Instant::from_micros(100_000));
    let (before, few) = (resident()?, world.queued() as u64);
    while (world.queued() as u64) < few + packets {
        world.run(world.now() + Duration::from_micros(1_000));
    }
    println!("{} {}", world.queued() as u64 - few, resident()? - before);
    Ok(())
}

fn bulk(seconds: u64) -> Result<(), Box<dyn Error>> {
    let chunk_bytes = 131_072;
    let client = BulkSenderSpec { chunk_bytes, ..BulkSenderSpec::default() };
    let client = WorkloadSpec::BulkSender(client);
    let server = WorkloadSpec::BulkReceiver(BulkReceiverSpec::default());
    let mut world = world(2, Transport::Tcp, [&client, &server], (false, 0.0))?;
    let began = cpu_s()?;
    world.run(Instant::ZERO + Duration::from_millis(seconds * 1_000));
    let packets: u64 = world.hosts.iter().map(|host| host.polled).sum();
    println!("{packets} {}", cpu_s()? - began);
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["incast", hosts, events] => round_trips(hosts.parse()?, false, events.parse()?),
        ["all-to-all", hosts, events] => round_trips(hosts.parse()?, true, events.parse()?),
        ["queued", hosts, packets] => queued(hosts.parse()?, packets.parse()?),
        ["bulk", seconds] => bulk(seconds.parse()?),
        _ => {
            Err("use incast|all-to-all HOSTS EVENTS, queued HOSTS PACKETS, or bulk SECONDS".into())
        }
    }
}

//! `earmark mx stress`: endpoints that do everything at once, while every byte is checked.
//!
//! Each endpoint has threads that send messages of all sizes to all others, a quarter of them
//! synchronously, and threads that receive: from any peer, by match information, from one peer, by
//! probing and claiming, into too little memory, and with receives that are taken back. A message
//! that is lost, comes twice or out of order, or has a wrong byte or status is a fault.

mod delivery;
mod order;
mod work;

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use mx::config::Config;
use mx_io::endpoint::{Endpoint, EndpointOptions};
use mx_io::port::faulty::{Fault, Faults, FaultyPort, Tally};
use mx_io::port::wire::Wire;
use mx_io::port::{self, NicId, Port, PortSpec};
use mx_io::report::{EndpointReport, dump_on};
use serde::Serialize;
use signal_hook::consts::SIGUSR1;

use self::delivery::{DeliveryCheck, STALL};
use self::work::Party;
use super::session::{BytesEndpoint, Wait};
use bench::options::{Text, duration};
use report::{errln, json, outln};

/// How long an endpoint may take to connect, and to close.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long what has been sent may take to come when nothing more is sent.
const DRAIN: Duration = Duration::from_secs(5);

/// What `earmark mx stress` takes.
#[derive(Args, Debug)]
pub struct StressArgs {
    /// Where frames travel; without it, within this process. Given more than once, endpoints take
    /// turns; those of one interface cannot reach each other, so packet and virtio need two
    #[arg(long, value_name = "PORT")]
    port: Vec<PortSpec>,
    /// How many endpoints
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=64))]
    endpoints: u8,
    /// Threads of each endpoint that send, and as many that receive
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    threads: u8,
    /// For how long
    #[arg(long, default_value_t = 10.0, value_name = "SECONDS", value_parser = duration)]
    seconds: f64,
    /// How to wait
    #[arg(long, value_enum, default_value_t)]
    wait: Wait,
    /// Lose, double or delay frames on purpose, such as drop:medium:100,duplicate:ack:7,delay:50
    #[arg(long, value_name = "FAULTS")]
    faults: Option<Text<Faults>>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// What a run has counted.
#[derive(Debug, Serialize)]
struct StressResult {
    seconds: f64,
    messages: u64,
    bytes: u64,
    synchronous: u64,
    truncated: u64,
    cancelled: u64,
    claimed: u64,
    /// How often an endpoint got nothing for 100 ms although messages were on their way.
    stalls: u64,
    longest_stall_ms: f64,
    /// Memory of this process, in KiB.
    rss_start_kib: u64,
    rss_end_kib: u64,
    /// Faults made on purpose.
    faults_made: Vec<(&'static str, u64)>,
    /// Of all endpoints together.
    counters: Vec<(String, u64)>,
    faults: u64,
    /// The first of them.
    #[serde(rename = "told")]
    reported: Vec<String>,
}

/// Lets endpoints work; fails if anything was wrong.
pub(super) fn run(args: &StressArgs) -> Result<ExitCode> {
    let mut tallies = Vec::new();
    let parties = gather(args, &mut tallies)?;
    let observers = parties.iter().map(|party| party.end.observer()).collect();
    let _dumper = dump_on(SIGUSR1, observers).context("listen to SIGUSR1")?;
    let check = DeliveryCheck::new(parties.len());
    let (begin, rss_start_kib) = (Instant::now(), rss_kib()?);
    work(args, &parties, &check);
    let (seconds, rss_end_kib) = (begin.elapsed().as_secs_f64(), rss_kib()?);
    let reports: Vec<EndpointReport> =
        parties.iter().filter_map(|party| party.end.observer().look()).collect();
    if check.missing() > 0 {
        check.fault(format!("{} messages never came", check.missing()));
        reports.iter().for_each(|report| errln!("{}", report.dump.trim_end()));
    }
    // What is wrong already needs no waiting.
    let timeout = if check.faults().is_empty() { TIMEOUT } else { Duration::from_secs(1) };
    for party in parties {
        if let Err(error) = party.end.close(timeout) {
            check.fault(error.to_string());
        }
    }
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let tally = &check.tally;
    let outcome = StressResult {
        seconds,
        messages: get(&tally.received),
        bytes: get(&tally.bytes),
        synchronous: get(&tally.synchronous),
        truncated: get(&tally.truncated),
        cancelled: get(&tally.cancelled),
        claimed: get(&tally.claimed),
        stalls: get(&tally.stalls),
        longest_stall_ms: get(&tally.longest_stall_nanos) as f64 / 1e6,
        rss_start_kib,
        rss_end_kib,
        faults_made: faults_made(&tallies),
        counters: sum(&reports),
        faults: get(&tally.faults),
        reported: check.faults(),
    };
    if args.json {
        json::print(&outcome)?;
    } else {
        outcome.print();
    }
    Ok(if outcome.faults == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Opens endpoints, and connects those that reach each other.
fn gather(args: &StressArgs, tallies: &mut Vec<Tally>) -> Result<Vec<Party>> {
    let wire = Wire::new(1500, 1024)?;
    let life = EndpointOptions { waiting: args.wait.into(), ..EndpointOptions::default() };
    let mut ends: Vec<BytesEndpoint> = Vec::new();
    for number in 1..=args.endpoints {
        let mut port: Box<dyn Port> = match args.spec(number.into()) {
            Some(spec) => port::open(spec, number)?,
            None => Box::new(wire.port(NicId([2, 0, 0, 0, 0, number]), number)?),
        };
        if let Some(Text(faults)) = &args.faults {
            let faulty = FaultyPort::new(port, faults);
            tallies.push(faulty.tally());
            port = Box::new(faulty);
        }
        let config = Config { mtu: port.mtu(), ..Config::default() };
        ends.push(Endpoint::open(port, config, life)?);
    }
    let addresses: Vec<_> = ends.iter().map(Endpoint::address).collect();
    let mut parties = Vec::new();
    for (number, end) in ends.into_iter().enumerate() {
        let mut peers = Vec::new();
        for (other, address) in addresses.iter().enumerate() {
            if args.reach(number, other) {
                peers.push((end.connect(*address, 0, TIMEOUT)?, other));
            }
        }
        ensure!(
            !peers.is_empty(),
            "endpoint {}: it reaches no other endpoint, since a port of a NIC has one endpoint; \
             give a second --port, such as another socket of the NIC",
            addresses[number]
        );
        parties.push(Party { number, end, peers });
    }
    Ok(parties)
}

impl StressArgs {
    /// The port of an endpoint.
    fn spec(&self, number: usize) -> Option<&PortSpec> {
        self.port.get(number % self.port.len().max(1))
    }

    /// Whether an endpoint reaches another.
    fn reach(&self, one: usize, other: usize) -> bool {
        // Endpoints are numbered from 1 at their ports.
        let [spec, another] = [one, other].map(|it| self.spec(it + 1));
        one != other && (spec != another || !matches!(spec, Some(PortSpec::Virtio(_))))
    }
}

/// Sends and receives until the time is over and all has come, or nothing comes any more.
fn work(args: &StressArgs, parties: &[Party], check: &DeliveryCheck) {
    scope(|scope| {
        let mut senders = Vec::new();
        for party in parties {
            for thread in 0..u64::from(args.threads) {
                senders.push(scope.spawn(move || party.send(check, thread)));
                scope.spawn(move || party.receive(check, thread));
            }
        }
        sleep(Duration::from_secs_f64(args.seconds));
        check.is_over.store(true, Ordering::Relaxed);
        for sender in senders {
            // One that panicked has said so; its messages may be missing, which is reported.
            let _ = sender.join();
        }
        let until = Instant::now() + DRAIN;
        while check.missing() > 0 && Instant::now() < until {
            sleep(Duration::from_millis(1));
        }
        check.is_drained.store(true, Ordering::Relaxed);
    });
}

/// Memory of this process that is in use, in KiB.
fn rss_kib() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").context("read /proc/self/statm")?;
    let pages: u64 = text.split(' ').nth(1).context("read /proc/self/statm")?.parse()?;
    Ok(pages * sys::page::size() as u64 / 1024)
}

fn faults_made(tallies: &[Tally]) -> Vec<(&'static str, u64)> {
    if tallies.is_empty() {
        return Vec::new();
    }
    let all = |fault| tallies.iter().map(|tally| tally.of(fault)).sum();
    Fault::ALL.map(|fault| (fault.name(), all(fault))).into()
}

fn sum(reports: &[EndpointReport]) -> Vec<(String, u64)> {
    let mut sums: Vec<(String, u64)> = Vec::new();
    for (place, (name, count)) in reports.iter().flat_map(|it| it.counters.iter().enumerate()) {
        match sums.get_mut(place) {
            Some((_, sum)) => *sum += count,
            None => sums.push((name.clone(), *count)),
        }
    }
    sums
}

impl StressResult {
    fn print(&self) {
        let Self { seconds, messages, synchronous, truncated, cancelled, claimed, .. } = self;
        let megabytes = self.bytes as f64 / 1e6;
        outln!("{messages} messages, {megabytes:.1} MB in {seconds:.1} s");
        outln!("{synchronous} sent synchronously, {truncated} truncated, {claimed} claimed");
        outln!("{cancelled} receives taken back");
        let longest = self.longest_stall_ms;
        outln!("stalls above {} ms: {}, longest {longest:.0} ms", STALL.as_millis(), self.stalls);
        outln!(
            "memory: {} KiB at the start, {} KiB at the end",
            self.rss_start_kib,
            self.rss_end_kib
        );
        for (name, count) in &self.faults_made {
            outln!("made on purpose: {name} {count}");
        }
        for (name, count) in self.counters.iter().filter(|(_, count)| *count > 0) {
            outln!("  {name}: {count}");
        }
        outln!("faults: {}", self.faults);
        self.reported.iter().for_each(|fault| outln!("  {fault}"));
    }
}

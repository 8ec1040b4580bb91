//! Agents: `earmark agent '<JSON>'` drives one workload over real sockets and reports what it
//! measured.
//!
//! # Theory of operation
//!
//! The bench starts one agent per side of a conversation, in a namespace, in a guest or on another
//! host, and talks to it over standard input and output, one line at a time:
//!
//! ```text
//! agent  {"event":"ready","address":"10.9.0.2:7000"}      listening, or connected (tries for 5 s)
//! bench  go                                               time zero: warm-up, then the window
//! bench  stop                                             servers only; so does closing the pipe
//! agent  {"event":"record",...}                           and status 0
//! agent  {"event":"error","message":"..."}                instead of any of these, and status 1
//! ```
//!
//! Servers serve from the moment they are ready; *go* only opens their window. A client whose
//! input ends before *go* exits without output.

mod clock;
mod control;
mod driver;
mod frames;
mod icmp;
mod mx;
mod outgoing;
mod poller;
mod port;
mod result;
mod tcp;
pub(crate) mod udp;
mod worker;

use bench::agent::AgentSpec;

use bench::records::AgentMessage;
use clock::Clock;
use control::{Command, Control, print};
use driver::{Driver, RunTotals};
use poller::Poller;
use port::Port;
use result::record;
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use std::num::NonZeroU64;
use std::process::ExitCode;
use worker::Worker;
use workload::{Counter, Record, Recorder, Transport, Window, WorkloadSpec};

/// The most memory of an agent that works for another host, in bytes. `earmark serve` has 16 of
/// them at most, which is 1 GiB.
const MEMORY_FOR_OTHERS: u64 = 64 << 20;

/// Runs an agent from its specification in JSON until it is done.
pub fn run(json: &str) -> ExitCode {
    match AgentSpec::parse(json).and_then(|spec| drive(&spec)) {
        Ok(record) => {
            if let Some(record) = record {
                print(&AgentMessage::Record(record));
            }
            ExitCode::SUCCESS
        }
        Err(message) => {
            print(&AgentMessage::Error { message });
            ExitCode::FAILURE
        }
    }
}

/// The whole life of an agent; no record if the parent left before *go*.
fn drive(spec: &AgentSpec) -> Result<Option<Record>, String> {
    // Timeouts to the nanosecond, as far as the hardware goes; the default adds up to 50 us to
    // each.
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1))
        .map_err(|error| format!("set timer slack: {error}"))?;
    if spec.for_host.is_some() {
        confine()?;
    }
    if spec.transport() == Transport::Mx {
        return mx::drive(spec);
    }
    let poller = Poller::new(spec.poll)?;
    let port = open(spec, &poller)?;
    let worker = Worker::new(spec)?;
    let address = port.address();
    let mut workload = spec.workload.build(spec.transport().framing(), spec.seed);
    let window = if spec.workload.is_server() { Window::NEVER } else { spec.window() };
    let mut recorder = Recorder::new(window, spec.series);
    let mut control = Control::default();
    print(&AgentMessage::Ready { address: address.clone() });

    if !spec.workload.is_server() {
        match control.wait().map_err(|error| error.to_string())? {
            Command::Go => {}
            Command::Stop | Command::End => return Ok(None),
        }
    }
    let clock = Clock::start(workload.reads_wall_clock());
    let mut driver = Driver::new(port, poller, clock, worker, (spec.spin, spec.poll));
    if spec.workload.is_server() {
        driver.obey(control, spec.window())?;
    }
    let totals = driver.run(workload.as_mut(), &mut recorder)?;
    check_reached(spec, &address, totals, &recorder)?;
    Ok(Some(record(spec, totals, recorder)))
}

/// Keeps an agent that works for another host within bounds, whatever that host sends: it ends with
/// its parent, and for lack of memory before this host does.
fn confine() -> Result<(), String> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("ask to end with the parent: {error}"))?;
    let most = Some(MEMORY_FOR_OTHERS);
    setrlimit(Resource::Data, Rlimit { current: most, maximum: most })
        .map_err(|error| format!("limit the memory: {error}"))
}

fn open(spec: &AgentSpec, poller: &Poller) -> Result<Box<dyn Port>, String> {
    let connections = spec.workload.connections();
    let server = spec.workload.is_server();
    Ok(match spec.transport() {
        Transport::Packet => {
            let interface = spec
                .interface
                .as_deref()
                .ok_or("frame-sender needs an interface, for example \"interface\":\"eth0\"")?;
            Box::new(frames::FrameSocket::open(interface)?)
        }
        Transport::Icmp => {
            Box::new(icmp::Icmp::connect(poller, spec.socket_address()?, connections)?)
        }
        Transport::Tcp if server => {
            Box::new(tcp::Tcp::listen(poller, spec.socket_address()?, spec.for_host)?)
        }
        Transport::Udp if server => Box::new(udp::Udp::listen(poller, spec.socket_address()?)?),
        Transport::Tcp => Box::new(tcp::Tcp::connect(poller, spec.socket_address()?, connections)?),
        Transport::Udp => Box::new(udp::Udp::connect(poller, spec.socket_address()?, connections)?),
        Transport::Mx => return Err("MX has endpoints, not sockets".into()),
    })
}

/// A datagram client whose every request was refused measured nothing, which is an error, not a
/// result.
fn check_reached(
    spec: &AgentSpec,
    address: &str,
    totals: RunTotals,
    recorder: &Recorder,
) -> Result<(), String> {
    let asks = matches!(spec.workload, WorkloadSpec::RrClient(_) | WorkloadSpec::NtpClient(_));
    if asks && totals.refused > 0 && recorder.counter(Counter::Transactions) == 0 {
        let error = std::io::Error::from(rustix::io::Errno::CONNREFUSED);
        return Err(port::explain("ask", address, &error));
    }
    Ok(())
}

//! Reports of running endpoints: counters and state.
//!
//! A program that wants to be looked at serves its endpoints ([`serve`]): each has an abstract unix
//! socket named after its address, which answers each client with a [`EndpointReport`] as JSON.
//! [`ask`] and [`running`] are the other side. The sockets belong to a network namespace, as
//! interfaces do; only the user of the program, and root, are answered.
//!
//! [`dump_on`] prints the same on standard error when a signal comes.

use std::io::{self, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ::mx::address::Address;
use ::mx::counters::Counters;
use serde::{Deserialize, Serialize};
use signal_hook::iterator::Signals;
use sys::streams::write_full;

use super::port::PortCounters;
use sys::peer::{self, Credentials, LocalServer};

/// What the names of the sockets begin with; the address follows.
const PREFIX: &str = "earmark-mx/report/";

/// How long either side waits for the other one, all its bytes together.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest report that is read, in bytes: that of some hundred thousand requests.
const MAX_REPORT: u64 = 64 << 20;

/// An endpoint as others may look at it, even after its end.
#[derive(Clone)]
pub struct Observer {
    address: Address,
    look: Arc<dyn Fn() -> Option<EndpointReport> + Send + Sync>,
}

impl Observer {
    pub(super) fn new(
        address: Address,
        look: impl Fn() -> Option<EndpointReport> + Send + Sync + 'static,
    ) -> Self {
        Self { address, look: Arc::new(look) }
    }

    /// What there is to be seen; `None` if the endpoint is closed. The endpoint does nothing else
    /// meanwhile: with very many requests, that is some milliseconds.
    #[must_use]
    pub fn look(&self) -> Option<EndpointReport> {
        (self.look)()
    }
}

/// What can be seen of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointReport {
    /// Where it is: `02:00:00:00:00:01/3`.
    pub address: String,
    /// The process that it belongs to.
    pub pid: u32,
    /// Names and values of all counters; those of the port begin with `port-`.
    pub counters: Vec<(String, u64)>,
    /// Peers and requests, for people to read.
    pub dump: String,
}

impl EndpointReport {
    pub(super) fn new(
        address: Address,
        counters: &Counters,
        port: &PortCounters,
        dump: String,
    ) -> Self {
        let counters = named(counters, port);
        Self { address: address.to_string(), pid: std::process::id(), counters, dump }
    }

    /// The dump, and the counters that are not 0, for people to read.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = self.dump.clone();
        for (name, count) in self.counters.iter().filter(|(_, count)| *count > 0) {
            text += &format!("  {name}: {count}\n");
        }
        text
    }
}

/// All counters of an endpoint with their names; those of the port begin with `port-`.
#[must_use]
pub fn named(counters: &Counters, port: &PortCounters) -> Vec<(String, u64)> {
    let mut all = Vec::new();
    counters.each(|group, name, count| {
        let blank = if group.is_empty() { "" } else { "-" };
        all.push((format!("{group}{blank}{name}"), count));
    });
    port.each(|name, count| all.push((format!("port-{name}"), count)));
    all
}

/// Serves an endpoint until it is dropped.
#[derive(Debug)]
pub struct Reporter {
    socket: UnixListener,
    thread: Option<JoinHandle<()>>,
}

/// Lets others look at an endpoint, in the network namespace of this thread.
///
/// # Errors
/// If there is an endpoint of this address already, or the system gives no socket or thread.
pub fn serve(observer: Observer) -> io::Result<Reporter> {
    let name = format!("{PREFIX}{}", observer.address);
    let socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?)?;
    let listener = socket.try_clone()?;
    let thread = std::thread::Builder::new().name("mx-report".into()).spawn(move || {
        while let Some(stream) = peer::accept(&listener) {
            // A client that goes away in between has no use for an answer.
            let _ = answer(&stream, &observer);
        }
    })?;
    Ok(Reporter { socket, thread: Some(thread) })
}

fn answer(stream: &UnixStream, observer: &Observer) -> io::Result<()> {
    if !Credentials::of(stream)?.are_trusted() {
        return Ok(());
    }
    let Some(report) = observer.look() else { return Ok(()) };
    write_full(stream, &serde_json::to_vec(&report)?, Instant::now() + TIMEOUT)
}

impl Drop for Reporter {
    fn drop(&mut self) {
        // A socket that is shut down accepts no more clients, and its thread ends.
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        // It panics only if the engine does, and that is on standard error.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Addresses of endpoints that can be looked at from this network namespace, in order.
///
/// # Errors
/// If the kernel does not list its sockets.
pub fn running() -> io::Result<Vec<String>> {
    peer::listening(PREFIX)
}

/// Looks at the endpoint of this address.
///
/// # Errors
/// If it is not served, it belongs to another user, or it does not answer.
pub fn ask(address: &str) -> io::Result<EndpointReport> {
    let server = LocalServer::connect(&format!("{PREFIX}{address}"), TIMEOUT)?;
    let mut text = Vec::new();
    server.take(MAX_REPORT).read_to_end(&mut text)?;
    if text.is_empty() {
        return Err(io::Error::other("it gives no answer: it is being closed, or is root's"));
    }
    Ok(serde_json::from_slice(&text)?)
}

/// Prints reports whenever a signal comes, until it is dropped.
#[derive(Debug)]
pub struct Dumper {
    signals: signal_hook::iterator::Handle,
    thread: Option<JoinHandle<()>>,
}

/// Prints what is going on in endpoints on standard error whenever `signal` comes, such as
/// `SIGUSR1`.
///
/// # Errors
/// If no handler may be had for this signal, or the system gives no thread.
pub fn dump_on(signal: i32, observers: Vec<Observer>) -> io::Result<Dumper> {
    let mut signals = Signals::new([signal])?;
    let handle = signals.handle();
    let thread = std::thread::Builder::new().name("mx-dump".into()).spawn(move || {
        for _ in signals.forever() {
            for report in observers.iter().filter_map(Observer::look) {
                // If it is not read, it is not wanted.
                let _ = io::stderr().write_all(report.text().as_bytes());
            }
        }
    })?;
    Ok(Dumper { signals: handle, thread: Some(thread) })
}

impl Drop for Dumper {
    fn drop(&mut self) {
        self.signals.close();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

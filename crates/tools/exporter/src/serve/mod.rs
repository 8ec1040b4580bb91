//! Answers scrapes over HTTP.
//!
//! # What a client can cost
//!
//! One thread serves all connections, and one more reads the devices. Each connection is for one
//! request, has a limit for its headers and two deadlines, and there are `MAX_CONNECTIONS` at
//! most: where all are taken, an old one makes room for the newest (`admission.rs`). The devices
//! are read once a second at most, however many ask (`latest.rs`).

mod admission;
mod answer;
mod latest;

use std::convert::Infallible;
use std::fmt::Arguments;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;
use rustix::process::{Resource, getrlimit};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use self::admission::{Admission, Slot};
use self::latest::Latest;
use crate::collector::Collector;

/// The default port. The list of default ports that Prometheus keeps has none
/// left between 9100 and 9999; this is next to Earmark's other ports.
pub const PORT: u16 = 7013;

const MAX_CONNECTIONS: usize = 64;

/// How long a client may take to send its request.
const REQUEST_WITHIN: Duration = Duration::from_secs(5);

/// How long a connection lasts, whatever happens.
const END_AFTER: Duration = Duration::from_secs(20);

/// How many headers a request has, and how many bytes with its first line. Prometheus sends 6
/// headers of 400 bytes.
const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 8_192;

/// How long to wait before the next connection is accepted where that has failed.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// The sockets that systemd has passed; none if it has not (`sd_listen_fds(3)`).
pub fn inherited() -> Result<Vec<TcpListener>> {
    let mut passed = ListenFd::from_env();
    let mut listeners = Vec::new();
    for number in 0..passed.len() {
        let remedy = "the .socket unit needs ListenStream= with an address and a port, and no \
                      Accept=yes";
        let listener = passed.take_tcp_listener(number);
        let listener = listener.with_context(|| format!("take socket {number}; {remedy}"))?;
        let Some(listener) = listener else { continue };
        let accepts = socket_acceptconn(&listener).unwrap_or(false);
        ensure!(accepts, "socket {number} accepts no connections; {remedy}");
        listeners.push(listener);
    }
    Ok(listeners)
}

/// A socket at an address of this host.
pub fn listen(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).with_context(|| {
        format!("listen on {address}; choose an address of this host and a free port: --listen")
    })
}

/// Answers scrapes for ever. `report` prints a line.
pub fn run(
    listeners: Vec<TcpListener>,
    collector: Collector,
    report: fn(Arguments<'_>),
) -> Result<Infallible> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_io().enable_time().max_blocking_threads(1).build();
    let runtime = runtime.context("start the server; check the limit on open files: ulimit -n")?;
    runtime.block_on(async {
        let (latest, collecting) = latest::collecting(collector);
        let admission = Arc::new(Admission::new(connections()));
        for listener in listeners {
            listener.set_nonblocking(true).context("listen")?;
            let listener = tokio::net::TcpListener::from_std(listener).context("listen")?;
            let (latest, admission) = (latest.clone(), Arc::clone(&admission));
            tokio::spawn(accept(listener, latest, admission, report));
        }
        collecting.await
    })
}

/// How many connections there may be, so that descriptors are left to read devices with.
fn connections() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / 2).unwrap_or(usize::MAX).clamp(1, MAX_CONNECTIONS)
}

async fn accept(
    listener: tokio::net::TcpListener,
    latest: Latest,
    admission: Arc<Admission>,
    report: fn(Arguments<'_>),
) {
    let mut is_reported = false;
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                admission.enter(from.ip(), |slot| {
                    tokio::spawn(attend(stream, slot, latest.clone())).abort_handle()
                });
                // It has its turn before there is another one that may replace it.
                tokio::task::yield_now().await;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => {
                // No descriptors are left, most likely.
                admission.make_room();
                if !is_reported {
                    report(format_args!("accept a connection: {error}; the next ones may be late"));
                    is_reported = true;
                }
                sleep(ACCEPT_AGAIN).await;
            }
        }
    }
}

async fn attend(stream: TcpStream, slot: Slot, latest: Latest) {
    let slot = Arc::new(slot);
    let service = service_fn(|request| {
        slot.is_asked();
        answer::answer(request, latest.clone())
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .keep_alive(false)
        .header_read_timeout(REQUEST_WITHIN)
        .max_headers(MAX_HEADERS)
        .max_header_size(MAX_HEADER_BYTES)
        .max_buf_size(2 * MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // Whatever is wrong with a client is its own affair.
    let _ = timeout(END_AFTER, connection).await;
}

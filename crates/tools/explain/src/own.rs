//! `earmark explain HOST`: requests of our own, traced.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use base::quantiles::nearest_rank;

use super::engine::{Path, Role};
use super::event_requests::Target;
use super::evidence::{self, OwnHold, References};
use super::report::{Explained, Explanation, LeftOut, SumError};
use super::stages::{self, Lengths, Stage};
use super::summary::Collection;
use super::tracer::Tracer;
use super::traffic::{Manner, RequestKind, RequestRecord, RequestTimes, Requester};
use super::verdict::VerdictInput;
use super::{hold, stamped};
use netdev::routes;
use probe::echo::PORT;
use sys::address::host_and_port;

const ASKS: &str = "earmark-asks";

/// Windows of tracing have room for so many requests, more than a report needs, unless they would
/// be longer than so many nanoseconds: on a busy machine the next one may be after the end.
const WIDE_FOR: u64 = 10;
const WIDEST: u64 = 1_000_000_000;

/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The host that is asked, a name or an address, with or without `:PORT`.
    pub host: String,
    /// The port of its echo; `None`: that of `host`, or of `earmark echo`.
    pub port: Option<u16>,
    /// Over UDP instead of TCP.
    pub udp: bool,
    /// Bytes of a request.
    pub size: usize,
    /// Spaced requests a second.
    pub rate: f64,
    /// For how many seconds.
    pub seconds: f64,
}

/// Asks, and explains; `each` gets every request's nanoseconds in each stage that occurs.
pub fn explain(settings: &Settings, each: impl FnMut(Stage, u64)) -> Result<Explanation> {
    let (host, own) = host_and_port(&settings.host);
    ensure!(
        own.is_none() || settings.port.is_none(),
        "{} has a port; give that, or --port, and not both",
        settings.host
    );
    let addresses = resolve(host, own.or(settings.port).unwrap_or(PORT))?;
    let manner = Manner {
        to: addresses[0],
        udp: settings.udp,
        size: settings.size,
        rate: settings.rate,
        nanos: (settings.seconds * 1e9) as u64,
    };
    let (sender, receiver) = mpsc::channel();
    let (go, ready) = mpsc::channel::<bool>();
    let client = thread::Builder::new().name(ASKS.into()).spawn(move || {
        let mut requester = connect(&addresses, manner)?;
        let _ = sender.send((requester.local()?, requester.remote(), requester.round_trip()));
        // If tracing is refused, no one reads the result.
        let Ok(stamps) = ready.recv() else { return Ok(RequestRecord::default()) };
        if stamps {
            // Some echoes take no second connection; then there are no stamps.
            let _ = requester.stamp();
        }
        requester.run()
    })?;
    let Ok((local, to, round_trip)) = receiver.recv() else {
        client.join().map_err(|_| anyhow!("the thread that asks has panicked"))??;
        return Err(anyhow!("the thread that asks has ended"));
    };
    let device = routes::device(local.ip(), to.ip());
    let target = Target::Threads { name: ASKS.to_owned(), device: device.clone() };
    let mut tracer = Tracer::open(target)?;
    // Another one of these may run.
    tracer.follow(std::process::id());
    tracer.widen(WIDE_FOR.saturating_mul(round_trip + manner.pause()).min(WIDEST));
    let mut paths = Vec::new();
    let mut keep = |path: Path| {
        if path.role == Role::Asks {
            paths.push(path);
        }
    };
    tracer.step(|_, path| keep(path))?;
    let _ = go.send(device.as_deref().is_some_and(stamped::can));
    while !client.is_finished() {
        tracer.step(|_, path| keep(path))?;
    }
    let record = client.join().map_err(|_| anyhow!("the thread that asks has panicked"))??;
    let account = tracer.finish(|_, path| keep(path));
    let own_hold = device.as_deref().map_or(OwnHold::Unknown, hold::of).or_stamped(&record.kept);
    Ok(report(settings, to, Findings { device, own_hold, record, paths, account }, each))
}

struct Findings {
    device: Option<String>,
    own_hold: OwnHold,
    record: RequestRecord,
    paths: Vec<Path>,
    account: super::tracer::Account,
}

fn report(
    settings: &Settings,
    to: SocketAddr,
    findings: Findings,
    each: impl FnMut(Stage, u64),
) -> Explanation {
    let Findings { device, own_hold, record, paths, account } = findings;
    let Matched { mut spaced, back_to_back, sum_error } = matched(&record, &paths);
    let mut far_busy = back_to_back;
    hold::split(&mut spaced, &own_hold);
    spaced.each(each);
    hold::split(&mut far_busy, &own_hold);
    let mut references = References::of(&record);
    if device.as_deref() == Some("lo") {
        // Nothing holds packets there; answers that come together were written together.
        (references.pair_sent_us, references.pair_came_us) = (None, None);
    }
    let micros = |all: &Collection, stage| all.median(stage).map(|nanos| nanos as f64 / 1e3);
    let own_in = [Stage::StackIn, Stage::WakeUp, Stage::Take].map(|stage| micros(&spaced, stage));
    // Few of them may have been traced; the program has measured all.
    let others = Stage::ALL.into_iter().filter(|stage| *stage != Stage::Far);
    let own_us: f64 = others.filter_map(|stage| micros(&spaced, stage)).sum();
    let far = match spaced.is_empty() {
        false => {
            let far_us = (references.spaced_us - own_us).max(0.0);
            let far_busy_us = micros(&far_busy, Stage::Far);
            let own_in_us = own_in.into_iter().flatten().sum();
            let times = evidence::Times { far_us, far_busy_us, own_in_us };
            match evidence::far(times, &references, &own_hold) {
                // The loopback has no NIC to hold anything.
                evidence::Far::WayOrHold if device.as_deref() == Some("lo") => evidence::Far::Way,
                far => far,
            }
        }
        true => evidence::Far::Unknown,
    };
    let transport = if settings.udp { "UDP" } else { "TCP" };
    let explained = spaced.summary().map(|summary| {
        let case = VerdictInput {
            summary: &summary,
            far,
            own_hold: &own_hold,
            device: device.as_deref(),
            handshakes: references.handshake_us.is_some(),
            packets_per_s: account.packets as f64 / account.traced_s.max(1e-9),
        };
        let verdict = case.verdict();
        let subject = format!("{transport} requests to {to}");
        Explained { subject, role: Role::Asks, verdict, summary }
    });
    let mut left_out = LeftOut::default();
    if explained.is_none() && !spaced.is_empty() {
        left_out.add(spaced.len());
    }
    Explanation {
        device,
        own_hold,
        references: Some(references),
        sum_error,
        account,
        explained: explained.into_iter().collect(),
        left_out,
        program: None,
    }
}

struct Matched {
    spaced: Collection,
    back_to_back: Collection,
    sum_error: Option<SumError>,
}

/// Finds the request of each path, and what the program measured of it.
fn matched(record: &RequestRecord, paths: &[Path]) -> Matched {
    let (mut spaced, mut back_to_back) = (Collection::default(), Collection::default());
    let mut errors = Vec::new();
    for path in paths {
        let Some(departure) = path.departure else { continue };
        let after = record.asked.partition_point(|asked| asked.to < departure.enter);
        let Some(asked) = record.asked.get(after).filter(|asked| asked.from <= departure.enter)
        else {
            continue;
        };
        let Some(mut lengths) = stages::lengths(path) else { continue };
        let outside = account_for(&mut lengths, asked, departure.enter);
        match asked.kind {
            RequestKind::Spaced => {
                let whole = (asked.to - asked.from).max(1);
                errors.push(outside * 1_000_000 / whole);
                spaced.add(lengths);
            }
            RequestKind::BackToBack => back_to_back.add(lengths),
            RequestKind::Pair => {}
        }
    }
    errors.sort_unstable();
    let share = |per_mille| Some(nearest_rank(&errors, per_mille)? as f64 / 1e6);
    let sum_error = share(500).zip(share(990)).map(|(p50, p99)| SumError { p50, p99 });
    Matched { spaced, back_to_back, sum_error }
}

/// Gives the program's way into the kernel to the first stage, and that out of it to the last;
/// what no stage has is in one of its own. How much of the request no event of the kernel covers.
fn account_for(lengths: &mut Lengths, asked: &RequestTimes, enter: u64) -> u64 {
    let whole = asked.to - asked.from;
    let outside = whole.saturating_sub(lengths.total());
    let before = (enter - asked.from).min(outside);
    lengths.add(Stage::StackOut, before);
    lengths.add(Stage::Take, outside - before);
    outside
}

/// Addresses of a host, at least one; those of IPv4 first.
fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    let found = (host, port)
        .to_socket_addrs()
        .with_context(|| format!("look up {host}; is the name right?"))?;
    let mut found: Vec<SocketAddr> = found.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.truncate(MAX_ADDRESSES);
    ensure!(!found.is_empty(), "{host} has no address");
    Ok(found)
}

/// Connects to the first of `addresses` where an echo answers: it may listen on one of them alone.
fn connect(addresses: &[SocketAddr], manner: Manner) -> Result<Requester> {
    let mut first_error = None;
    for &to in addresses {
        match Requester::connect(Manner { to, ..manner }) {
            Ok(requester) => return Ok(requester),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.unwrap_or_else(|| anyhow!("there is no address to connect to")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Arrival, Departure};

    fn path(enter: u64, exit: u64) -> Path {
        Path {
            socket: 1,
            fd: 1,
            task: 1,
            role: Role::Asks,
            departure: Some(Departure { enter, ..Departure::default() }),
            arrival: Arrival { received: Some(exit - 10), ..Arrival::default() },
            take: (enter + 1, exit),
        }
    }

    #[test]
    fn paths_find_their_requests_and_what_is_outside_of_the_kernel() {
        let asked = |kind, from, to| RequestTimes { kind, from, to };
        let record = RequestRecord {
            asked: vec![
                asked(RequestKind::Spaced, 1_000, 2_000),
                asked(RequestKind::BackToBack, 2_100, 3_000),
                asked(RequestKind::Spaced, 4_000, 5_000),
            ],
            ..RequestRecord::default()
        };
        let paths = [path(1_005, 1_995), path(2_110, 2_990), path(3_500, 3_600)];
        let matched = matched(&record, &paths);
        assert_eq!((matched.spaced.len(), matched.back_to_back.len()), (1, 1));
        assert_eq!(matched.sum_error, Some(SumError { p50: 0.01, p99: 0.01 }));
        let stages = Stage::ALL.into_iter().filter_map(|stage| matched.spaced.median(stage));
        assert_eq!(stages.sum::<u64>(), 1_000);
        assert_eq!(matched.spaced.median(Stage::StackOut), Some(5));
    }
}

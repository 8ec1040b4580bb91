//! `earmark explain HOST`: requests of our own, followed in the kernel.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use base::quantiles::nearest_rank;
use flows::follower::{FlowDetail, FlowScope};
use flows::record::{FlowRole, FlowStage, TracedRequest};

use super::both::FAR;
use super::cause::{Facts, Ranked};
use super::evidence::{self, Far, OwnHold, References};
use super::far::{FarHost, FarLook};
use super::following::{Account, Following};
use super::report::{Explained, Explanation, LeftOut, SumError, WayOfLength};
use super::traffic::{Manner, RequestKind, RequestRecord, Requester};
use super::{hold, stamped, surroundings};
use netdev::routes;
use probe::echo::PORT;
use report::progress::Progress;
use sys::address::host_and_port;

/// The name of the thread that asks.
const ASKS: &str = "earmark-asks";

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

/// Asks, and explains, with what a far host follows of it; `each` gets every request's nanoseconds
/// in each stage that occurs.
pub fn explain(
    settings: &Settings,
    far: Option<FarHost>,
    progress: &Progress,
    each: impl FnMut(FlowStage, u64),
) -> Result<Explanation> {
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
        let _ = sender.send((requester.local()?, requester.remote()));
        // If following is refused, no one reads the result.
        let Ok(stamps) = ready.recv() else { return Ok(RequestRecord::default()) };
        if stamps {
            // Some echoes take no second connection; then there are no stamps.
            let _ = requester.stamp();
        }
        requester.run()
    })?;
    let Ok((local, to)) = receiver.recv() else {
        client.join().map_err(|_| anyhow!("the thread that asks has panicked"))??;
        return Err(anyhow!("the thread that asks has ended"));
    };
    let device = routes::device(local.ip(), to.ip());
    let packets = || device.as_deref().and_then(surroundings::packets);
    let detail = FlowDetail { by_calls: settings.udp, stacks: false };
    let mut following = Following::start(&FlowScope::Processes, Some(std::process::id()), detail)?;
    let before = packets();
    let mut requests = Vec::new();
    let _ = go.send(device.as_deref().is_some_and(stamped::can));
    progress.start(settings.seconds.ceil() as u64);
    let mut shown = 0;
    while !client.is_finished() {
        following.step(|request| requests.push(request));
        let second = (following.elapsed_s() as u64).min(settings.seconds as u64);
        if second > shown {
            shown = second;
            progress.step(&format!("{} requests to {to}", requests.len()));
        }
    }
    progress.finish();
    let record = client.join().map_err(|_| anyhow!("the thread that asks has panicked"))??;
    let account = following.finish(|request| requests.push(request));
    let packets = before.zip(packets()).map_or(0, |(before, now)| now.saturating_sub(before));
    let own_hold = device.as_deref().map_or(OwnHold::Unknown, hold::of).or_stamped(&record.kept);
    let far = far.map(FarLook::end);
    let findings = Findings { device, own_hold, record, requests, account, packets, far };
    Ok(report(settings, &manner, to, findings, each))
}

struct Findings {
    device: Option<String>,
    own_hold: OwnHold,
    record: RequestRecord,
    requests: Vec<TracedRequest>,
    account: Account,
    /// Packets that the device has received meanwhile.
    packets: u64,
    /// The same requests, as the far host has followed them.
    far: Option<FarLook>,
}

fn report(
    settings: &Settings,
    manner: &Manner,
    to: SocketAddr,
    findings: Findings,
    each: impl FnMut(FlowStage, u64),
) -> Explanation {
    let Findings { device, own_hold, record, requests, account, packets, far: look } = findings;
    let Matched { mut spaced, mut other, mut back_to_back, sum_error } = matched(&record, requests);
    for kind in [&mut spaced, &mut other, &mut back_to_back] {
        hold::split(kind, &own_hold);
    }
    spaced.each(each);
    let mut references = References::of(&record);
    let is_loopback = device.as_deref() == Some("lo");
    if is_loopback {
        // Nothing holds packets there; answers that come together were written together.
        (references.pair_sent_us, references.pair_came_us) = (None, None);
        (references.close_sent_us, references.close_came_us) = (None, None);
    }
    let far = far(&spaced, &back_to_back, &references, &own_hold, is_loopback);
    let facts = Facts {
        device: device.as_deref(),
        own_hold: &own_hold,
        far: Some(far),
        far_hold_up_to_us: None,
        throttled_us: None,
        slow_start_after_idle: surroundings::slow_start_after_idle(),
        frequency: surroundings::frequency(),
        packets_per_s: packets as f64 / account.elapsed_s.max(1e-9),
    };
    let name = if settings.udp { "UDP" } else { "TCP" };
    let explain = |subject: String, ranked: &Ranked, facts: &Facts| {
        Explained::new(subject, FlowRole::Asks, ranked, facts, look.as_ref())
    };
    let explained = explain(format!("{name} requests to {to}"), &spaced, &facts);
    // Losses are rare, and most requests are references.
    let all = spaced.with([&other, &back_to_back]);
    let with_losses = (all.has_losses() && !spaced.has_losses()).then(|| {
        let subject = format!("{name} requests to {to}, references included");
        explain(subject, &all, &Facts { far: None, ..facts.clone() })
    });
    let mut left_out = LeftOut::default();
    if explained.is_none() && !spaced.is_empty() {
        left_out.add(spaced.len());
    }
    let ways = [(manner.size, &spaced), (manner.other_size(), &other)];
    let ways = ways.into_iter().filter_map(|(bytes, all)| {
        let far_us = median_us(all, &FAR)?;
        Some(WayOfLength { bytes, requests: all.len(), far_us })
    });
    Explanation {
        ways: ways.collect(),
        device,
        own_hold,
        references: Some(references),
        sum_error,
        account,
        explained: explained.into_iter().chain(with_losses.flatten()).collect(),
        left_out,
        program: None,
        with: look.map(|look| look.summary),
    }
}

/// What references say of the far side.
fn far(
    spaced: &Ranked,
    back_to_back: &Ranked,
    references: &References,
    own_hold: &OwnHold,
    is_loopback: bool,
) -> Far {
    let Some(far_us) = median_us(spaced, &FAR) else { return Far::Unknown };
    let own = [FlowStage::StackIn, FlowStage::WakeUp, FlowStage::Read, FlowStage::Elsewhere];
    let times = evidence::Times {
        far_us,
        far_busy_us: median_us(back_to_back, &FAR),
        least_rtt_us: spaced.least_rtt_us(),
        own_in_us: median_us(spaced, &own).unwrap_or(0.0),
    };
    match evidence::far(times, references, own_hold) {
        // The loopback has no NIC to hold anything.
        Far::WayOrHold if is_loopback => Far::Way,
        far => far,
    }
}

/// The median of what requests take in some stages together, in microseconds.
fn median_us(requests: &Ranked, stages: &[FlowStage]) -> Option<f64> {
    let sum = |all: &flows::record::Stages| stages.iter().map(|stage| all.of(*stage)).sum();
    Some(requests.median_of(sum)? as f64 / 1e3)
}

struct Matched {
    spaced: Ranked,
    other: Ranked,
    back_to_back: Ranked,
    sum_error: Option<SumError>,
}

/// Finds what the program measured of each request.
fn matched(record: &RequestRecord, requests: Vec<TracedRequest>) -> Matched {
    let (mut spaced, mut other, mut back_to_back) = (Vec::new(), Vec::new(), Vec::new());
    let mut errors = Vec::new();
    for request in requests {
        let after = record.asked.partition_point(|asked| asked.to < request.begin);
        let asked = record.asked.get(after).filter(|asked| asked.from <= request.begin);
        let Some(asked) = asked else { continue };
        match asked.kind {
            RequestKind::Spaced => {
                let whole = (asked.to - asked.from).max(1);
                errors.push(whole.saturating_sub(request.length()) * 1_000_000 / whole);
                spaced.push(request);
            }
            RequestKind::OtherLength => other.push(request),
            RequestKind::BackToBack => back_to_back.push(request),
            RequestKind::Pair => {}
        }
    }
    errors.sort_unstable();
    let share = |per_mille| Some(nearest_rank(&errors, per_mille)? as f64 / 1e6);
    let sum_error = share(500).zip(share(990)).map(|(p50, p99)| SumError { p50, p99 });
    let [spaced, other, back_to_back] = [spaced, other, back_to_back].map(Ranked::new);
    Matched { spaced, other, back_to_back, sum_error }
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
    use crate::cause::checks;
    use crate::traffic::RequestTimes;

    #[test]
    fn requests_are_matched_with_what_the_program_measured() {
        let asked = |kind, from, to| RequestTimes { kind, from, to };
        let record = RequestRecord {
            asked: vec![
                asked(RequestKind::Spaced, 1_000_000, 2_000_000),
                asked(RequestKind::BackToBack, 2_100_000, 3_000_000),
                asked(RequestKind::OtherLength, 4_000_000, 5_000_000),
            ],
            ..RequestRecord::default()
        };
        let at = |begin_us: u64, us: u64| {
            let mut request = checks::request(1, &[(FlowStage::FarUnacked, us)]);
            (request.begin, request.end) = (begin_us * 1_000, (begin_us + us) * 1_000);
            request
        };
        let requests = vec![at(1_005, 990), at(2_110, 880), at(3_500, 100), at(4_010, 980)];
        let matched = matched(&record, requests);
        let counts = [matched.spaced, matched.back_to_back, matched.other].map(|all| all.len());
        assert_eq!(counts, [1, 1, 1]);
        assert_eq!(matched.sum_error, Some(SumError { p50: 0.01, p99: 0.01 }));
    }
}

//! What `earmark serve` plays for a paired host: our own workloads over TCP, against that host
//! alone, within bounds.
//!
//! No datagrams: over TCP no byte of a workload is sent to an address that has not answered, so a
//! forged one gets nothing.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use workload::{Transport, WorkloadSpec};

use bench::agent::AgentSpec;
use explain::far::FollowOrder;

/// The longest run, in milliseconds.
const MAX_RUN_MS: u64 = 3_600_000;

/// Ports below are for services of the system.
const FIRST_PORT: u16 = 1_024;

/// The longest request and the longest answer, in bytes.
const MAX_MESSAGE: usize = 65_536;

/// The longest write of a bulk flow, and the longest value of memcached, in bytes.
const MAX_CHUNK: usize = 1 << 20;

/// The most connections of one agent, which is also the most of `tune --clients`.
const MAX_CONNECTIONS: usize = 1_000;

/// The most CPU time for one request, in microseconds.
const MAX_COMPUTE_US: u64 = 100_000;

/// What is started for another host, as it may be.
#[derive(Debug)]
pub(super) struct Allowed {
    /// The command of this program: `agent`, or `follow`.
    pub(super) command: &'static str,
    pub(super) json: String,
    /// From *go* to the end.
    pub(super) run: Duration,
}

/// The look at requests that `order` asks for, if it may be had: of connections with `asker`.
pub(super) fn followed(
    order: FollowOrder,
    explains: bool,
    asker: IpAddr,
    own: IpAddr,
) -> Result<Allowed> {
    ensure!(
        explains,
        "requests are followed for other hosts only by `earmark serve --explain`, started as root"
    );
    let order = order.bounded(asker, own)?;
    let run = Duration::from_secs_f64(order.follow_s);
    Ok(Allowed { command: "follow", json: serde_json::to_string(&order)?, run })
}

/// The agent that `text` asks for, if it may be played: against `asker`, served at `own`.
pub(super) fn allowed(text: &[u8], asker: IpAddr, own: IpAddr) -> Result<Allowed> {
    let text = std::str::from_utf8(text)?;
    let mut spec = AgentSpec::parse(text.trim()).map_err(|why| anyhow!("{why}"))?;
    let (kind, transport) = (spec.workload.kind(), spec.transport().name());
    ensure!(
        spec.transport() == Transport::Tcp,
        "{kind} over {transport} is not played for other hosts"
    );
    bounded(&spec.workload)?;
    ensure!(
        !spec.spin && !spec.series && spec.poll.is_epoll(),
        "spin, poll and series are not for other hosts"
    );
    let run_ms = spec.warmup_ms.saturating_add(spec.duration_ms);
    ensure!(run_ms <= MAX_RUN_MS, "a run of {run_ms} ms is too long: at most {MAX_RUN_MS}");
    let port = spec.socket_address().map_err(|why| anyhow!("{why}"))?.port();
    ensure!(port >= FIRST_PORT, "port {port} is not for other hosts: {FIRST_PORT} or above");
    let host = if spec.workload.is_server() { own } else { asker };
    spec.address = Some(SocketAddr::new(host, port).to_string());
    spec.for_host = Some(asker);
    let json = serde_json::to_string(&spec)?;
    Ok(Allowed { command: "agent", json, run: Duration::from_millis(run_ms) })
}

/// Refuses workloads that are not for other hosts, and numbers that are too large.
fn bounded(workload: &WorkloadSpec) -> Result<()> {
    let kind = workload.kind();
    let at_most = |name: &str, value: u64, most: u64| {
        ensure!(value <= most, "{kind} for other hosts: {name} is {value}, and at most {most}");
        Ok(())
    };
    let bytes = |name: &str, value: usize, most: usize| at_most(name, value as u64, most as u64);
    match workload {
        WorkloadSpec::RrClient(spec) => {
            bytes("request_bytes", spec.request_bytes, MAX_MESSAGE)?;
            bytes("response_bytes", spec.response_bytes, MAX_MESSAGE)?;
            bytes("connections", spec.connections, MAX_CONNECTIONS)
        }
        WorkloadSpec::RrServer(spec) => {
            bytes("request_bytes", spec.request_bytes, MAX_MESSAGE)?;
            bytes("response_bytes", spec.response_bytes, MAX_MESSAGE)?;
            at_most("compute_us", spec.compute_us, MAX_COMPUTE_US)
        }
        WorkloadSpec::BulkSender(spec) => bytes("chunk_bytes", spec.chunk_bytes, MAX_CHUNK),
        WorkloadSpec::MemcachedClient(spec) => bytes("value_bytes", spec.value_bytes, MAX_CHUNK),
        WorkloadSpec::BulkReceiver(_) => Ok(()),
        WorkloadSpec::NtpClient(_)
        | WorkloadSpec::NtpServer(_)
        | WorkloadSpec::PpsSender(_)
        | WorkloadSpec::PpsReceiver(_)
        | WorkloadSpec::FrameSender(_) => Err(anyhow!("{kind} is not played for other hosts")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(spec: &str) -> Result<String> {
        let ips = ["10.0.0.7", "10.0.0.9"].map(|text| text.parse().unwrap());
        allowed(spec.as_bytes(), ips[0], ips[1]).map(|allowed| allowed.json)
    }

    #[test]
    fn requests_are_followed_where_that_is_allowed_and_of_the_asker_alone() {
        let ips = ["10.0.0.7", "10.0.0.9"].map(|text| text.parse().unwrap());
        let text = r#"{"follow_s":10.0,"host":"10.0.0.1"}"#;
        let order = || FollowOrder::parse(text).unwrap();
        let refusal = followed(order(), false, ips[0], ips[1]).unwrap_err().to_string();
        assert!(refusal.contains("serve --explain"), "{refusal}");
        let allowed = followed(order(), true, ips[0], ips[1]).unwrap();
        assert_eq!((allowed.command, allowed.run), ("follow", Duration::from_secs(10)));
        assert!(allowed.json.contains(r#""host":"10.0.0.7""#), "{}", allowed.json);
        let long = FollowOrder { follow_s: 1e9, ..order() };
        assert!(followed(long, true, ips[0], ips[1]).is_err());
    }

    #[test]
    fn what_is_not_played_for_others_is_refused() {
        let client = |more: &str| {
            format!(r#"{{"workload":{{"kind":"rr-client"}},"address":"1.2.3.4:5000"{more}}}"#)
        };
        let server = |more: &str| {
            format!(r#"{{"workload":{{"kind":"rr-server"{more}}},"address":"0.0.0.0:5000"}}"#)
        };
        for (spec, words) in [
            ("nonsense".to_owned(), "agent specification"),
            // The reflector: one datagram of a forged address, and 60000 bytes to that address.
            (
                r#"{"workload":{"kind":"rr-server","response_bytes":60000},"transport":"udp","address":"0.0.0.0:19"}"#
                    .to_owned(),
                "over udp is not played",
            ),
            (r#"{"workload":{"kind":"frame-sender"},"interface":"eth0"}"#.to_owned(), "not played"),
            (r#"{"workload":{"kind":"pps-sender"},"address":"1.2.3.4:5"}"#.to_owned(), "not played"),
            (client(r#","transport":"icmp""#), "not played"),
            (client(r#","duration_ms":9999999"#), "too long"),
            (client(r#","spin":true"#), "not for other hosts"),
            (client(r#","poll":{"mode":"busy","usecs":9}"#), "not for other hosts"),
            (client("").replace(":5000", ":19"), "port 19 is not for other hosts"),
            (client("").replace(":5000", ":0"), "port 0 is not for other hosts"),
            (client("").replace(r#""kind""#, r#""connections":1001,"kind""#), "at most 1000"),
            (server(r#","response_bytes":2500000000"#), "at most 65536"),
            (server(r#","request_bytes":65537"#), "at most 65536"),
            (server(r#","compute_us":100001"#), "at most 100000"),
            (r#"{"workload":{"kind":"rr-client"}}"#.to_owned(), "needs an address"),
        ] {
            let refusal = ask(&spec).unwrap_err().to_string();
            assert!(refusal.contains(words), "{spec}: {refusal}");
        }
    }
}

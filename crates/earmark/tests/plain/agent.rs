//! Agents as processes, over real sockets on loopback. Counts and sanity only: never timing.

use std::net::UdpSocket;
use std::process::{Command, Stdio};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};
use std::io::Write;

use crate::support::{EARMARK, HeldPort, Running};

/// A running agent.
struct Agent(Running);

impl Agent {
    fn start(spec: &Value) -> Self {
        let mut command = Command::new(EARMARK);
        command.args(["agent", &spec.to_string()]);
        Self(Running::start(command.stdin(Stdio::piped())))
    }

    /// Starts an agent and waits until it is ready; also returns its address.
    fn ready(spec: &Value) -> (Self, String) {
        let mut agent = Self::start(spec);
        let ready = agent.line();
        assert_eq!(ready["event"], "ready", "{ready}");
        let address = ready["address"].as_str().unwrap().to_owned();
        (agent, address)
    }

    fn line(&mut self) -> Value {
        let line = self.0.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn order(&mut self, command: &str) {
        writeln!(self.0.input(), "{command}").unwrap();
    }

    /// Reads the record and waits for a clean exit.
    fn record(mut self) -> Value {
        let record = self.line();
        assert_eq!(record["event"], "record", "{record}");
        self.0.end().output();
        record
    }
}

/// Windows in which nothing may happen: threads that come before others may keep an agent from its
/// processor for as long as one takes.
const STARVED_WINDOWS: usize = 10;

/// Runs a server and a client against each other; returns both records.
fn play(transport: &str, server: &Value, client: &Value) -> (Value, Value) {
    let side = |workload: &Value, address: &str| {
        json!({"transport": transport, "warmup_ms": 100, "duration_ms": 1000, "seed": 1,
               "series": true, "workload": workload, "address": address})
    };
    let window = || {
        let (mut to, address) = Agent::ready(&side(server, "127.0.0.1:0"));
        let (mut from, _) = Agent::ready(&side(client, &address));
        to.order("go");
        from.order("go");
        let from = from.record();
        to.order("stop");
        (to.record(), from)
    };
    let counts = |record: &Value| record["counters"] != json!({});
    let (server, client) = std::iter::repeat_with(window)
        .take(STARVED_WINDOWS + 1)
        .find(|(server, client)| counts(server) && counts(client))
        .expect("an agent that runs counts what it does");
    // Buckets add up to their count and lie between the extremes.
    for (name, distribution) in client["distributions"].as_object().unwrap() {
        let buckets = distribution["buckets"].as_array().unwrap();
        let total: u64 = buckets.iter().map(|bucket| bucket[1].as_u64().unwrap()).sum();
        assert_eq!(total, distribution["count"], "{name}");
        assert!(distribution["min_ns"].as_i64() <= distribution["max_ns"].as_i64(), "{name}");
    }
    (server, client)
}

fn counter(record: &Value, name: &str) -> u64 {
    record["counters"][name].as_u64().unwrap_or_default()
}

fn count(record: &Value, distribution: &str) -> u64 {
    record["distributions"][distribution]["count"].as_u64().unwrap_or_default()
}

#[test]
fn tcp_request_response() {
    let server = json!({"kind": "rr-server", "request_bytes": 100, "response_bytes": 100_000,
                        "compute_us": 200});
    let client = json!({"kind": "rr-client", "request_bytes": 100, "response_bytes": 100_000,
                        "connections": 3, "think_us_max": 50});
    let (server, client) = play("tcp", &server, &client);
    let transactions = counter(&client, "transactions");
    assert!(transactions > 0);
    assert_eq!(count(&client, "latency"), transactions);
    assert_eq!(client["series"]["rows"].as_array().unwrap().len() as u64, transactions);
    assert_eq!(client["window_ns"], 1_000_000_000);
    // What the server computes is CPU time.
    let work_ns = counter(&server, "transactions").saturating_sub(1) * 200_000;
    assert!(server["cpu_ns"].as_u64().unwrap() >= work_ns, "{server}");
    assert!(client["distributions"]["latency"]["min_ns"].as_u64().unwrap() >= 200_000);
}

#[test]
fn udp_request_response_open_loop() {
    let server = json!({"kind": "rr-server", "request_bytes": 8, "response_bytes": 8});
    let client = json!({"kind": "rr-client", "request_bytes": 8, "response_bytes": 8,
                        "connections": 2, "rate_per_s": 1000, "timeout_ms": 60_000});
    let (_, client) = play("udp", &server, &client);
    let transactions = counter(&client, "transactions");
    // 1000 are due in the window; a stalled machine may leave some unanswered, and answer some of
    // the 100 of the warm-up.
    assert!((1..=1100).contains(&transactions), "{transactions}");
    assert_eq!([count(&client, "latency"), count(&client, "service")], [transactions; 2]);
    assert_eq!(counter(&client, "lost") + counter(&client, "stray"), 0);
}

#[test]
fn bulk_unpaced_and_paced() {
    let receiver = json!({"kind": "bulk-receiver"});
    let (server, client) = play("tcp", &receiver, &json!({"kind": "bulk-sender"}));
    assert!(counter(&client, "bytes_sent") > 0 && counter(&server, "bytes_received") > 0);
    let paced = json!({"kind": "bulk-sender", "rate_mbit": 80, "chunk_bytes": 10_000});
    let (_, client) = play("tcp", &receiver, &paced);
    // Chunks, of which 1000 are due in the window; it may make up for what the warm-up's 100 lack.
    let sent = counter(&client, "bytes_sent");
    assert!((1..=11_000_000).contains(&sent) && sent.is_multiple_of(10_000), "{client}");
}

#[test]
fn packets_are_counted_and_numbered() {
    // The loopback keeps the order of what one processor sends; agents inherit this.
    let all = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap());
    sched_setaffinity(None, &one).unwrap();
    let sender = json!({"kind": "pps-sender", "rate_per_s": 5000});
    let (server, client) = play("udp", &json!({"kind": "pps-receiver"}), &sender);
    // 5500 are due by the end, 5000 of them in the window.
    assert!((1..=5500).contains(&counter(&client, "datagrams_sent")), "{client}");
    assert!((1..=5500).contains(&counter(&server, "datagrams_received")), "{server}");
    assert_eq!(counter(&server, "out_of_order"), 0);
}

#[test]
fn ntp_on_an_unprivileged_port() {
    let client = json!({"kind": "ntp-client", "interval_us": 5000});
    let (server, client) = play("udp", &json!({"kind": "ntp-server"}), &client);
    let transactions = counter(&client, "transactions");
    // One is due each 5 ms of warm-up and window.
    assert!((1..=220).contains(&transactions) && counter(&server, "transactions") > 0);
    for name in ["round_trip", "request_half", "response_half", "offset"] {
        assert_eq!(count(&client, name), transactions, "{name}");
    }
}

#[test]
fn what_is_wrong_is_an_error_that_names_the_next_step() {
    let refused = |mut agent: Agent| {
        let error = agent.line();
        assert_eq!(error["event"], "error", "{error}");
        assert_eq!(agent.0.end().code, 1);
        error["message"].as_str().unwrap().to_owned()
    };
    // The kernel assigns it to no other socket, and its owner takes datagrams from port 1 alone.
    let owner = UdpSocket::bind("127.0.0.1:0").unwrap();
    owner.connect("127.0.0.1:1").unwrap();
    let free = owner.local_addr().unwrap();
    let (mut agent, _) = Agent::ready(&json!({"workload": {"kind": "rr-client", "timeout_ms": 10},
        "transport": "udp", "address": free.to_string(), "duration_ms": 2000}));
    agent.order("go");
    let hint = "Connection refused; is the server agent up?";
    assert_eq!(refused(agent), format!("ask {free}: {hint}"));

    let held = HeldPort::new();
    let free = format!("127.0.0.1:{}", held.number);
    let agent = Agent::start(&json!({"workload": {"kind": "rr-client"}, "address": free}));
    assert_eq!(refused(agent), format!("connect to {free}: {hint}"));

    let unknown = json!({"workload": {"kind": "rr-client", "bytes": 1}});
    assert!(refused(Agent::start(&unknown)).contains("unknown field `bytes`"));
    let frames = json!({"workload": {"kind": "frame-sender"}});
    assert!(refused(Agent::start(&frames)).contains("needs an interface"));
}

#[test]
fn a_parent_that_leaves_ends_its_agents() {
    let spec = json!({"workload": {"kind": "rr-server"}, "address": "127.0.0.1:0"});
    let (server, address) = Agent::ready(&spec);
    let (client, _) = Agent::ready(&json!({"workload": {"kind": "rr-client"}, "address": address}));
    let ready = client.0.end();
    assert_eq!(ready.output().lines().count(), 1, "a client that never went leaves quietly");
    let ended = server.0.end();
    let record: Value = serde_json::from_str(ended.output().lines().last().unwrap()).unwrap();
    assert_eq!((&record["event"], &record["window_ns"]), (&"record".into(), &0.into()));
}

//! Agents as processes, over real sockets on loopback. Counts and sanity only: never timing.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Command, Stdio};

#[path = "common/port.rs"]
mod port;
use port::HeldPort;

/// A running agent, killed if a test fails on the way.
struct Agent {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Agent {
    fn start(spec: &Value) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_earmark"))
            .args(["agent", &spec.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
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
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn say(&mut self, command: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{command}").unwrap();
    }

    /// Reads the record and waits for a clean exit.
    fn record(mut self) -> Value {
        let record = self.line();
        assert_eq!(record["event"], "record", "{record}");
        assert!(self.child.wait().unwrap().success());
        record
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Windows in which nothing may happen: threads that come before others may keep an agent from its
/// processor for as long as one takes.
const STARVED_WINDOWS: usize = 10;

/// Runs a server and a client against each other; returns both records.
fn run(server: &Value, client: &Value, transport: &str) -> (Value, Value) {
    run_as(
        &json!({"transport": transport, "warmup_ms": 100, "seed": 1, "series": true}),
        [server, client],
    )
}

/// The same, with other settings.
fn run_as(settings: &Value, workloads: [&Value; 2]) -> (Value, Value) {
    let side = |workload: &Value, address: &str| {
        let mut spec = settings.clone();
        spec["workload"] = workload.clone();
        spec["address"] = address.into();
        spec["duration_ms"] = 1000.into();
        spec
    };
    let window = || {
        let (mut server, address) = Agent::ready(&side(workloads[0], "127.0.0.1:0"));
        let (mut client, _) = Agent::ready(&side(workloads[1], &address));
        server.say("go");
        client.say("go");
        let client = client.record();
        server.say("stop");
        (server.record(), client)
    };
    let counts = |record: &Value| record["counters"] != json!({});
    std::iter::repeat_with(window)
        .take(STARVED_WINDOWS + 1)
        .find(|(server, client)| counts(server) && counts(client))
        .expect("an agent that runs counts what it does")
}

fn counter(record: &Value, name: &str) -> u64 {
    record["counters"][name].as_u64().unwrap_or_default()
}

fn count(record: &Value, distribution: &str) -> u64 {
    record["distributions"][distribution]["count"].as_u64().unwrap_or_default()
}

/// Every distribution's buckets add up to its count and lie between its extremes.
fn check_distributions(record: &Value) {
    for (name, distribution) in record["distributions"].as_object().unwrap() {
        let buckets = distribution["buckets"].as_array().unwrap();
        let total: u64 = buckets.iter().map(|bucket| bucket[1].as_u64().unwrap()).sum();
        assert_eq!(total, distribution["count"], "{name}");
        assert!(distribution["min_ns"].as_i64() <= distribution["max_ns"].as_i64(), "{name}");
    }
}

#[test]
fn tcp_request_response() {
    let server = json!({"kind": "rr-server", "request_bytes": 100, "response_bytes": 100_000});
    let client = json!({"kind": "rr-client", "request_bytes": 100, "response_bytes": 100_000,
                        "connections": 3, "think_us_max": 50});
    let (server, client) = run(&server, &client, "tcp");
    let transactions = counter(&client, "transactions");
    assert!(transactions > 0);
    assert_eq!(count(&client, "latency"), transactions);
    assert_eq!(client["series"]["rows"].as_array().unwrap().len() as u64, transactions);
    assert_eq!(client["window_ns"], 1_000_000_000);
    assert!(counter(&server, "transactions") > 0);
    check_distributions(&client);
}

#[test]
fn udp_request_response_open_loop() {
    let server = json!({"kind": "rr-server", "request_bytes": 8, "response_bytes": 8});
    let client = json!({"kind": "rr-client", "request_bytes": 8, "response_bytes": 8,
                        "connections": 2, "rate_per_s": 1000,
                        "timeout_ms": 60_000});
    let (_, client) = run(&server, &client, "udp");
    let transactions = counter(&client, "transactions");
    // 1000 are due in the window; a stalled machine may leave some unanswered, and answer some of
    // the 100 of the warm-up.
    assert!((1..=1100).contains(&transactions), "{transactions}");
    assert_eq!(count(&client, "latency"), transactions);
    assert_eq!(count(&client, "service"), transactions);
    assert_eq!(counter(&client, "lost") + counter(&client, "stray"), 0);
}

#[test]
fn server_work_is_cpu_time() {
    let server = json!({"kind": "rr-server", "compute_us": 200});
    let (server, client) = run(&server, &json!({"kind": "rr-client"}), "tcp");
    assert!(counter(&client, "transactions") > 0);
    let work_ns = counter(&server, "transactions").saturating_sub(1) * 200_000;
    assert!(server["cpu_ns"].as_u64().unwrap() >= work_ns, "{server}");
    assert!(client["distributions"]["latency"]["min_ns"].as_u64().unwrap() >= 200_000);
}

#[test]
fn bulk_unpaced_and_paced() {
    let receiver = json!({"kind": "bulk-receiver"});
    let (server, client) = run(&receiver, &json!({"kind": "bulk-sender"}), "tcp");
    assert!(counter(&client, "bytes_sent") > 0);
    assert!(counter(&server, "bytes_received") > 0);
    let paced = json!({"kind": "bulk-sender", "rate_mbit": 80, "chunk_bytes": 10_000});
    let (_, client) = run(&receiver, &paced, "tcp");
    // Chunks, of which 1000 are due in the window; it may make up for what the warm-up's 100 lack.
    // That no chunk is early or left out is tested beside the workload, in made-up time.
    let sent = counter(&client, "bytes_sent");
    assert!((1..=11_000_000).contains(&sent) && sent.is_multiple_of(10_000), "{client}");
}

#[test]
fn packets_are_counted_and_numbered() {
    let sender = json!({"kind": "pps-sender", "rate_per_s": 5000});
    // The loopback keeps the order of what one processor sends; agents inherit this.
    let all = sched_getaffinity(None).unwrap();
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap());
    sched_setaffinity(None, &one).unwrap();
    let (server, client) = run(&json!({"kind": "pps-receiver"}), &sender, "udp");
    // 5500 are due by the end, 5000 of them in the window.
    assert!((1..=5500).contains(&counter(&client, "datagrams_sent")), "{client}");
    assert!((1..=5500).contains(&counter(&server, "datagrams_received")), "{server}");
    assert_eq!(counter(&server, "out_of_order"), 0);
}

#[test]
fn ntp_on_an_unprivileged_port() {
    let client = json!({"kind": "ntp-client", "interval_us": 5000});
    let (server, client) = run(&json!({"kind": "ntp-server"}), &client, "udp");
    let transactions = counter(&client, "transactions");
    // One is due each 5 ms of warm-up and window.
    assert!((1..=220).contains(&transactions), "{transactions}");
    assert!(counter(&server, "transactions") > 0);
    for name in ["round_trip", "request_half", "response_half", "offset"] {
        assert_eq!(count(&client, name), transactions, "{name}");
    }
    // One clock on both sides: neither half can be negative unless the clock was set meanwhile.
    assert_eq!(client["series"]["columns"].as_array().unwrap().len(), 5);
    check_distributions(&client);
}

#[test]
fn a_refused_datagram_is_an_error_that_asks_for_the_server() {
    // The kernel assigns it to no other socket, and its owner takes datagrams from port 1 alone.
    let owner = UdpSocket::bind("127.0.0.1:0").unwrap();
    owner.connect("127.0.0.1:1").unwrap();
    let free = owner.local_addr().unwrap();
    let spec = json!({"workload": {"kind": "rr-client", "timeout_ms": 10}, "transport": "udp",
                      "address": free.to_string(), "duration_ms": 2000});
    let (mut agent, _) = Agent::ready(&spec);
    agent.say("go");
    let error = agent.line();
    assert_eq!(error["event"], "error", "{error}");
    let expected = format!("ask {free}: Connection refused; is the server agent up?");
    assert_eq!(error["message"], expected);
    assert_eq!(agent.child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_refused_connection_is_an_error_after_five_seconds() {
    let held = HeldPort::new();
    let free = format!("127.0.0.1:{}", held.number);
    let mut agent = Agent::start(&json!({"workload": {"kind": "rr-client"}, "address": free}));
    let error = agent.line();
    let expected = format!("connect to {free}: Connection refused; is the server agent up?");
    assert_eq!(error, json!({"event": "error", "message": expected}));
    assert_eq!(agent.child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_parent_that_leaves_ends_its_agents() {
    let spec = json!({"workload": {"kind": "rr-server"}, "address": "127.0.0.1:0"});
    let (mut server, address) = Agent::ready(&spec);
    let spec = json!({"workload": {"kind": "rr-client"}, "address": address});
    let (mut client, _) = Agent::ready(&spec);
    drop(client.child.stdin.take());
    assert!(client.child.wait().unwrap().success());
    let mut rest = String::new();
    client.output.read_line(&mut rest).unwrap();
    assert_eq!(rest, "", "a client that never went leaves quietly");
    drop(server.child.stdin.take());
    assert_eq!(server.record()["window_ns"], 0);
}

#[test]
fn a_specification_with_a_mistake_is_refused() {
    let mut agent = Agent::start(&json!({"workload": {"kind": "rr-client", "bytes": 1}}));
    let error = agent.line();
    assert!(error["message"].as_str().unwrap().contains("unknown field `bytes`"), "{error}");
}

#[test]
fn frames_need_an_interface() {
    let mut agent = Agent::start(&json!({"workload": {"kind": "frame-sender"}}));
    let error = agent.line();
    assert!(error["message"].as_str().unwrap().contains("needs an interface"), "{error}");
}

#[test]
fn spinning_agents_measure_the_same_things() {
    let [server, client] = ["rr-server", "rr-client"].map(|kind| json!({"kind": kind}));
    let (_, client) = run_as(&json!({"spin": true}), [&server, &client]);
    assert!(counter(&client, "transactions") > 0);
}

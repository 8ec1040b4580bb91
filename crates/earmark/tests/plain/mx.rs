//! `earmark mx` on one machine: measurements between two processes, and what runs.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{
    Directory, EARMARK, Ended, Running, earmark, needs, output, refuses, run, run_line,
};

/// `mx perf` that waits at a port of the loopback interface that is free.
struct Server {
    running: Running,
    address: String,
}

impl Server {
    #[track_caller]
    fn start(options: &[&str]) -> Self {
        let base = ["mx", "perf", "--port", "udp:127.0.0.1", "--endpoint", "7"];
        let arguments = [&base[..], options].concat();
        let mut running = Running::start(earmark(&arguments).stdin(Stdio::null()));
        let line = running.line();
        let address = line.strip_prefix("waiting at ").and_then(|rest| rest.split(';').next());
        let address = address.unwrap_or_else(|| panic!("it prints {line}")).to_owned();
        assert!(address.starts_with("127.0.0.1:") && address.ends_with("/7"), "{line}");
        Self { running, address }
    }

    #[track_caller]
    fn ask(&self, line: &str) -> Ended {
        run_line(&format!("mx {line} --port udp:127.0.0.1 --peer {}", self.address))
    }
}

fn above_zero(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number > 0.0)
}

#[test]
fn round_trips_of_each_size_are_measured() {
    let server = Server::start(&["--once"]);
    let ended = server.ask("perf --start 0 --end 100000 --multiply 100 --iterations 20 --json");
    let json = ended.json();
    let rows = json["results"].as_array().unwrap();
    let sizes: Vec<_> = rows.iter().map(|row| row["size"].clone()).collect();
    assert_eq!(sizes, [0, 1, 100, 10_000]);
    for row in rows {
        assert!(
            ["p50", "p99"].iter().all(|of| above_zero(&row["half_round_trip_us"][of])),
            "{row}"
        );
        assert_eq!(row["iterations"], 20);
    }
    // The first client has gone.
    assert_eq!(server.running.end().code, 0);
}

#[test]
fn every_way_of_sending_is_measured() {
    let server = Server::start(&["--wait", "hybrid"]);
    for options in [
        "--unidirectional",
        "--synchronous --wait spin",
        "--unidirectional --synchronous --wait hybrid --warmup 0",
        "--faults drop:small:5,delay:7",
    ] {
        let ended = server.ask(&format!("perf --size 100 --iterations 20 {options}"));
        let line = ended.output().lines().last().unwrap();
        assert!(line.trim_start().starts_with("100 "), "{ended:?}");
        let is_faulty = options.contains("--faults");
        assert_eq!(ended.stderr.contains("faults made: drop"), is_faulty, "{ended:?}");
    }
    for (size, count) in [("0", "500"), ("1000", "500"), ("200000", "20")] {
        let rate =
            server.ask(&format!("stream --size {size} --count {count} --depth 16 --json")).json();
        assert_eq!(rate["count"].to_string(), count);
        assert!(above_zero(&rate["messages_per_s"]), "{rate}");
        assert_eq!(above_zero(&rate["mb_per_s"]), size != "0", "{rate}");
    }
    server.ask("stream --size 1000000000").refused(&["64 messages of", "1 GiB"]);
    server.running.signal(Signal::INT);
    assert_eq!(server.running.end().code, 0);
}

#[test]
fn messages_travel_over_a_nic_of_ours() {
    let directory = Directory::new();
    let [a, b] = ["a.sock", "b.sock"].map(|name| directory.file(name));
    let serve = ["nic", "serve", &a, &b, "--strategy", "marked:75"];
    let mut nic = Running::start(earmark(&serve).stdin(Stdio::null()));
    assert!(nic.line().contains("Port a0 is"));
    let port = format!("virtio:{b}");
    let server = ["mx", "perf", "--port", &port, "--endpoint", "200", "--once"];
    let mut server = Running::start(earmark(&server).stdin(Stdio::null()));
    let line = server.line();
    let peer = line.trim_start_matches("waiting at ").split(';').next().unwrap();
    let client = format!(
        "mx perf --port virtio:{a} --peer {peer} --end 50000 --multiply 50 --iterations 20"
    );
    assert!(run_line(&client).output().lines().any(|line| line.starts_with("2500 ")));
    assert_eq!(server.end().code, 0);
    nic.signal(Signal::INT);
    assert_eq!(nic.end().code, 0);
}

#[test]
fn running_endpoint_shows_what_it_does() {
    let server = Server::start(&[]);
    server.ask("perf --size 64 --iterations 30 --warmup 0").output();
    let json = run(&["mx", "counters", &server.address, "--json"]).json();
    let endpoint = &json["endpoints"][0];
    assert_eq!(endpoint["pid"], server.running.pid());
    let counters = endpoint["counters"].as_array().unwrap();
    let counter = |name| counters.iter().find(|it| it[0] == name).unwrap()[1].as_u64().unwrap();
    // Messages, and the order.
    assert_eq!(counter("messages-received"), 31);
    assert!(counter("received-small") >= 31 && counter("port-frames-in") >= 31);
    assert_eq!(counter("dropped-malformed"), 0);
    run(&["mx", "counters", "--dump"]).says(&["received-small: ", "/7: 0 peers"]);

    server.running.signal(Signal::USR1);
    // It is printed by another thread than the one that ends.
    server.running.await_error("messages-received: 31");
    server.running.signal(Signal::TERM);
    let ended = server.running.end();
    assert_eq!(ended.code, 0);
    assert!(ended.stderr.contains("/7: 0 peers"), "{ended:?}");
    run(&["mx", "counters", &server.address]).refused(&["look at MX endpoint", "does not run"]);
}

#[test]
fn missing_right_is_named_with_its_remedy() {
    needs!("root", "setpriv");
    let mut info = Command::new("setpriv");
    info.args(["--bounding-set", "-net_raw", EARMARK, "mx", "info", "--port", "packet:lo"]);
    output(&mut info).says(&["can be opened: no", "CAP_NET_RAW", "sudo setcap cap_net_raw+ep "]);
}

#[test]
fn bad_input_is_refused_with_the_next_step() {
    refuses(&[
        ("mx perf --port eth0", &["no kind of port is called `eth0`", "packet:IFACE"]),
        ("mx perf --port packet:no-such", &["read link no-such", "ip address"]),
        ("mx perf --port udp:192.0.2.1:5", &["192.0.2.1:5", "ip -4 -brief address"]),
        ("mx perf --port virtio:/no/such", &["/no/such"]),
        ("mx perf --port udp:127.0.0.1 --peer b", &["`b`", "HOST/ENDPOINT"]),
        ("mx perf --port udp:127.0.0.1 --start 9 --end 8", &["swap them"]),
        ("mx perf --port udp:127.0.0.1 --json", &["--peer"]),
        ("mx stream --port udp:127.0.0.1 --depth 0", &["--depth", "1..=4096"]),
        (
            "mx perf --port udp:127.0.0.1 --faults drop",
            &["how often is missing", "drop:medium:100"],
        ),
        ("mx info", &["--port"]),
        ("mx counters eth0", &["`eth0`", "which endpoint"]),
        (
            "mx perf --port udp:127.0.0.1 --peer 127.0.0.1:9/1",
            &["127.0.0.1", "earmark mx perf --port PORT", "timeout"],
        ),
    ]);
}

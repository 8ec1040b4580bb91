//! `earmark mx`: measurements between two processes, torment, and a look at what runs.

use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

mod common;
use common::{Directory, EARMARK, Ended, Running, earmark, lab_run, needs, output, run};

/// Somebody who answers at a port of the loopback interface that is free.
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
        let address = address.unwrap_or_else(|| panic!("it says {line}")).to_owned();
        assert!(address.starts_with("127.0.0.1:") && address.ends_with("/7"), "{line}");
        Self { running, address }
    }

    #[track_caller]
    fn ask(&self, command: &str, options: &[&str]) -> Ended {
        let base = ["mx", command, "--port", "udp:127.0.0.1", "--peer", &self.address];
        run(&[&base[..], options].concat())
    }
}

fn above_zero(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number > 0.0)
}

#[test]
fn round_trips_of_each_size_are_measured() {
    let server = Server::start(&["--once"]);
    let range = ["--start", "0", "--end", "100000", "--multiply", "100", "--iterations", "20"];
    let rows = server.ask("perf", &[&range[..], &["--json"]].concat()).json();
    let sizes: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["size"].clone()).collect();
    assert_eq!(sizes, [0, 1, 100, 10_000]);
    for row in rows.as_array().unwrap() {
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
        &["--unidirectional"][..],
        &["--synchronous", "--wait", "spin"],
        &["--unidirectional", "--synchronous", "--wait", "hybrid", "--warmup", "0"],
        &["--faults", "drop:small:5,delay:7"],
    ] {
        let few = ["--size", "100", "--iterations", "20"];
        let ended = server.ask("perf", &[&few[..], options].concat());
        let line = ended.output().lines().last().unwrap();
        assert!(line.trim_start().starts_with("100 "), "{ended:?}");
        let faulty = options.contains(&"--faults");
        assert_eq!(ended.stderr.contains("faults made: drop"), faulty, "{ended:?}");
    }
    server.running.signal(Signal::INT);
    assert_eq!(server.running.end().code, 0);
}

#[test]
fn rates_are_measured() {
    let server = Server::start(&[]);
    for (size, count) in [("0", "500"), ("1000", "500"), ("200000", "20")] {
        let options = ["--size", size, "--count", count, "--depth", "16", "--json"];
        let rate = server.ask("stream", &options).json();
        assert_eq!(rate["count"].to_string(), count);
        assert!(above_zero(&rate["messages_per_s"]), "{rate}");
        assert_eq!(above_zero(&rate["mb_per_s"]), size != "0", "{rate}");
    }
    server.ask("stream", &["--size", "1000000000"]).refused(&["64 messages of", "1 GiB"]);
}

#[test]
fn messages_travel_over_ethernet() {
    let serve = format!("exec {EARMARK} mx perf --port packet:b0 --endpoint 3 --once");
    let ask = format!(
        "{EARMARK} mx info --port packet:a0 && exec {EARMARK} mx perf --port packet:a0 --peer \
         02:00:00:00:00:0b/3 --end 50000 --multiply 50 --iterations 20"
    );
    let ended = lab_run(&["--until", "all", "--on", "b", &serve, "--on", "a", &ask]);
    let text = ended.output();
    for part in ["waiting at 02:00:00:00:00:0b/3", "nic id: 02:00:00:00:00:0a", "mtu: 1500 bytes"] {
        assert!(text.contains(part), "no {part} in {ended:?}");
    }
    assert!(text.lines().any(|line| line.starts_with("2500 ")), "{ended:?}");
}

#[test]
fn endpoints_without_a_number_take_the_first_that_is_free() {
    let directory = Directory::new();
    let [first, second] = ["first", "second"].map(|name| directory.file(name));
    let serve = format!("{EARMARK} mx perf --port packet:b0");
    let script = format!(
        "{serve} >{first} & one=$!; until [ -s {first} ]; do sleep 0.02; done
         {serve} >{second} & two=$!; until [ -s {second} ]; do sleep 0.02; done
         kill -TERM $one $two; wait; cat {first} {second}"
    );
    let ended = lab_run(&["--on", "b", &script]);
    let said: Vec<_> = ended.output().lines().filter_map(|line| line.split(';').next()).collect();
    let expected = ["1", "2"].map(|number| format!("waiting at 02:00:00:00:00:0b/{number}"));
    assert_eq!(said, expected, "{ended:?}");
}

#[test]
fn messages_travel_over_a_nic_of_ours() {
    let directory = Directory::new();
    let sockets = ["a.sock", "b.sock"].map(|name| directory.file(name));
    let [a, b] = sockets.clone().map(|path| format!("virtio:{path}"));
    let serve = ["nic", "serve", &sockets[0], &sockets[1], "--strategy", "marked:75"];
    let mut nic = Running::start(earmark(&serve).stdin(Stdio::null()));
    assert!(nic.line().contains("Port a0 is"));
    let server = ["mx", "perf", "--port", &b, "--endpoint", "200", "--once"];
    let mut server = Running::start(earmark(&server).stdin(Stdio::null()));
    let line = server.line();
    let peer = line.trim_start_matches("waiting at ").split(';').next().unwrap();
    let options = ["--end", "50000", "--multiply", "50", "--iterations", "20"];
    let client = [&["mx", "perf", "--port", &a, "--peer", peer][..], &options].concat();
    assert!(run(&client).output().lines().any(|line| line.starts_with("2500 ")));
    assert_eq!(server.end().code, 0);
    nic.signal(Signal::INT);
    assert_eq!(nic.end().code, 0);
}

#[test]
fn torment_finds_nothing() {
    for options in [
        &["--endpoints", "3"][..],
        &["--port", "udp:127.0.0.1", "--endpoints", "2"],
        &["--faults", "drop:50,duplicate:70,delay:30", "--wait", "hybrid"],
    ] {
        let base = ["mx", "stress", "--seconds", "1", "--json"];
        let found = run(&[&base[..], options].concat()).json();
        assert_eq!(found["faults"], 0, "{found}");
        for counter in ["messages", "synchronous", "truncated", "claimed"] {
            assert!(above_zero(&found[counter]), "{counter} {found}");
        }
        let made = found["faults_made"].as_array().unwrap();
        assert_eq!(made.len(), if options.contains(&"--faults") { 3 } else { 0 });
        assert!(made.iter().all(|fault| above_zero(&fault[1])), "{found}");
    }
}

#[test]
fn whatever_is_wrong_fails_the_torment() {
    // Small messages never come, though their receivers answer otherwise.
    let few = ["mx", "stress", "--seconds", "1", "--endpoints", "2", "--threads", "1"];
    let ended = run(&[&few[..], &["--faults", "drop:small:1"]].concat());
    assert_eq!(ended.code, 1, "{ended:?}");
    for part in ["Unreachable", "messages never came", "made on purpose: drop "] {
        assert!(ended.stdout.contains(part), "no `{part}` in {ended:?}");
    }
    assert!(!ended.stdout.contains("faults: 0"), "{ended:?}");
}

#[test]
fn running_endpoint_shows_what_it_does() {
    let server = Server::start(&[]);
    server.ask("perf", &["--size", "64", "--iterations", "30", "--warmup", "0"]).output();
    let reports = run(&["mx", "counters", &server.address, "--json"]).json();
    assert_eq!(reports[0]["pid"], server.running.pid());
    let counters = reports[0]["counters"].as_array().unwrap();
    let counter = |name| counters.iter().find(|it| it[0] == name).unwrap()[1].as_u64().unwrap();
    // Messages, and the order.
    assert_eq!(counter("messages-received"), 31);
    assert!(counter("received-small") >= 31 && counter("port-frames-in") >= 31);
    assert_eq!(counter("dropped-malformed"), 0);
    let all = run(&["mx", "counters", "--dump"]);
    assert!(all.output().contains("received-small: "), "{all:?}");
    assert!(all.output().contains("/7: 0 peers"), "{all:?}");

    server.running.signal(Signal::USR1);
    // It is printed by another thread than the one that ends.
    server.running.await_error("messages-received: 31");
    server.running.signal(Signal::TERM);
    let ended = server.running.end();
    assert_eq!(ended.code, 0);
    assert!(ended.stderr.contains("/7: 0 peers"), "{ended:?}");
    assert!(ended.stderr.contains("messages-received: 31"), "{ended:?}");
    run(&["mx", "counters", &server.address]).refused(&["look at MX endpoint", "does not run"]);
}

#[test]
fn missing_right_is_named_with_its_remedy() {
    let mut info = if rustix::process::geteuid().is_root() {
        needs("setpriv", "util-linux");
        let mut without = Command::new("setpriv");
        without.args(["--bounding-set", "-net_raw", EARMARK]);
        without
    } else {
        Command::new(EARMARK)
    };
    let ended = output(info.args(["mx", "info", "--port", "packet:lo"]));
    for part in ["can be opened: no", "CAP_NET_RAW", "sudo setcap cap_net_raw+ep "] {
        assert!(ended.output().contains(part), "{ended:?}");
    }
}

#[test]
fn bad_input_is_refused_with_the_next_step() {
    for (arguments, words) in [
        (
            &["perf", "--port", "eth0"][..],
            &["no kind of port is called `eth0`", "packet:IFACE"][..],
        ),
        (&["perf", "--port", "packet:no-such"], &["read link no-such", "ip address"]),
        (&["perf", "--port", "udp:192.0.2.1:5"], &["192.0.2.1:5", "ip -4 -brief address"]),
        (&["perf", "--port", "virtio:/no/such"], &["/no/such"]),
        (&["perf", "--port", "udp:127.0.0.1", "--peer", "b"], &["`b`", "HOST/ENDPOINT"]),
        (&["perf", "--port", "udp:127.0.0.1", "--start", "9", "--end", "8"], &["swap them"]),
        (&["perf", "--port", "udp:127.0.0.1", "--json"], &["--peer"]),
        (&["stream", "--port", "udp:127.0.0.1", "--depth", "0"], &["--depth", "1..=4096"]),
        (&["stress", "--faults", "drop"], &["how often is missing", "drop:medium:100"]),
        (&["stress", "--endpoints", "1"], &["--endpoints", "2..=64"]),
        (&["info"], &["--port"]),
        (&["counters", "eth0"], &["`eth0`", "which endpoint"]),
    ] {
        run(&[&["mx"], arguments].concat()).refused(words);
    }
    let nobody = ["mx", "perf", "--port", "udp:127.0.0.1", "--peer", "127.0.0.1:9/1"];
    run(&nobody).refused(&["127.0.0.1", "earmark mx perf --port PORT", "timeout"]);
}

//! Agents as processes: what they refuse, and their end.

use std::net::UdpSocket;
use std::process::{Command, Stdio};

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

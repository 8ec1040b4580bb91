//! `earmark explain`: of a host, of a program, of a device. It takes the right to trace.
//!
//! Nothing here depends on how fast this machine is: stages have to be there, in order, and add up;
//! planted causes are far longer than anything that a busy machine does.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{
    Directory, EARMARK, HeldPort, Running, earmark, lab_run, needs, once_ready, run, udp_echo,
};

/// Tests that trace take turns: what another one sends uses up what tracing may cost.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A TCP and UDP echo on the same port of the loopback, as long as this process lives.
fn echo() -> u16 {
    let (listener, socket) = loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        if let Ok(socket) = UdpSocket::bind(listener.local_addr().unwrap()) {
            break (listener, socket);
        }
    };
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || {
                let mut bytes = [0; 4_096];
                while let Ok(length @ 1..) = stream.read(&mut bytes) {
                    if stream.write_all(&bytes[..length]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    std::thread::spawn(move || {
        let mut bytes = [0; 4_096];
        while let Ok((length, from)) = socket.recv_from(&mut bytes) {
            let _ = socket.send_to(&bytes[..length], from);
        }
    });
    port
}

fn stages(explained: &Value) -> Vec<(&str, f64)> {
    let rows = explained["stages"].as_array().unwrap();
    let row = |row: &'_ Value| row["typical_us"].as_f64().unwrap();
    rows.iter().map(|each| (each["stage"].as_str().unwrap(), row(each))).collect()
}

/// Stages are in order, none is negative, and their typical lengths add up to the total.
fn add_up(explained: &Value) {
    let stages = stages(explained);
    assert!(stages.iter().all(|(_, us)| *us >= 0.0), "{stages:?}");
    let sum: f64 = stages.iter().map(|(_, us)| us).sum();
    let total = explained["total"]["typical_us"].as_f64().unwrap();
    assert!((sum - total).abs() < 0.01 + total / 1e6, "{sum} {total}");
}

/// What `find` finds in a report, with ever more effort: on a machine whose other traffic uses up
/// what tracing may cost, a short time says nothing. What was traced without a gap has to be there.
#[track_caller]
fn with_effort(report: impl Fn(u32) -> Value, find: impl Fn(&Value) -> Option<&Value>) -> Value {
    let found = [1, 4, 16, 64].into_iter().find_map(|effort| {
        let report = report(effort);
        let one = find(&report).cloned();
        let account = &report["account"];
        let has_missed = account["untracked"]["lost_events"].as_u64() > Some(0)
            || report["left_out"]["requests"].as_u64() > Some(0)
            || account["gaps"].as_u64() > Some(0);
        assert!(one.is_some() || has_missed, "{report}");
        one
    });
    found.expect("packets within a window of tracing")
}

/// The first thing that a report explains.
fn first(report: &Value) -> Option<&Value> {
    report["explained"].get(0)
}

#[test]
fn host__over_tcp_and_udp__has_stages_that_add_up() {
    needs!("root");
    let _alone = alone();
    let port = echo().to_string();
    for udp in [false, true] {
        let report = |effort: u32| {
            let duration = effort.to_string();
            let words = ["explain", "127.0.0.1", "--port", &port, "--json", "--duration"];
            let words = [&words[..], &[&duration], if udp { &["--udp"] } else { &[] }].concat();
            let report = run(&words).json();
            assert_eq!(report["schema_version"], 2);
            assert_eq!(report["device"], "lo");
            report
        };
        let one = &with_effort(report, first);
        assert!(one["requests"].as_u64().unwrap() > 0, "{one}");
        add_up(one);
        let names: Vec<&str> = stages(one).iter().map(|(name, _)| *name).collect();
        for name in ["stack-out", "far", "stack-in", "take"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        // Loopback raises a software interrupt, but no interrupt.
        assert!(names.contains(&"softirq"), "{names:?}");
    }
}

#[test]
fn device__with_traffic__receives() {
    needs!("root");
    let _alone = alone();
    let port = echo();
    let all = std::thread::scope(|scope| {
        // The sender stops when this end is dropped, by a panic as well.
        let (_running, stopped) = mpsc::channel::<()>();
        scope.spawn(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(("127.0.0.1", port)).unwrap();
            while stopped.try_recv() == Err(TryRecvError::Empty) {
                socket.send(b"x").unwrap();
                let _ = socket.recv(&mut [0; 8]);
                // Often enough that a window of tracing has many of them.
                std::thread::sleep(Duration::from_micros(200));
            }
        });
        let report = |effort: u32| {
            let duration = (3 * effort).to_string();
            run(&["explain", "lo", "--duration", &duration, "--json"]).json()
        };
        with_effort(report, first)
    });
    assert!(all["subject"].as_str().unwrap().contains("lo receives"), "{all}");
    assert_eq!(all["role"], "receives");
    add_up(&all);
}

#[test]
fn program__is_run_and_its_sockets_are_explained() {
    needs!("root");
    let _alone = alone();
    let port = echo();
    let report = |effort: u32| {
        let script = format!(
            "exec 3<>/dev/tcp/127.0.0.1/{port}; for i in $(seq {}); do echo x >&3; read -r y <&3; \
             done; exit 7",
            300 * effort
        );
        let ended = run(&["explain", "--json", "--", "bash", "-c", &script]);
        assert_eq!(ended.code, 7, "the program's own status: {ended:?}");
        serde_json::from_str(&ended.stdout).unwrap()
    };
    let one = with_effort(report, first);
    assert_eq!(one["subject"], format!("TCP requests to 127.0.0.1:{port}"), "{one}");
    assert_eq!(one["role"], "asks");
    add_up(&one);
}

/// Connects to a server that is about to start.
fn connect(port: u16, server: &mut Running) -> TcpStream {
    loop {
        if let Ok(stream) = TcpStream::connect(("127.0.0.1", port)) {
            stream.set_nodelay(true).unwrap();
            return stream;
        }
        assert!(!server.has_ended(), "the server has ended");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn ask(stream: &mut TcpStream) {
    try_ask(stream).unwrap();
}

fn try_ask(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"x")?;
    stream.read_exact(&mut [0])
}

/// `earmark explain --json` with a program.
fn explaining(duration: &str, program: &[&str]) -> Running {
    let options = ["explain", "--json", "--duration", duration, "--"];
    Running::start(earmark(&[&options[..], program].concat()).stdin(Stdio::null()))
}

/// What a server was found to do, that was asked over one connection.
fn served(program: &str) -> Value {
    explained_server(program, |port, server, effort| {
        let mut stream = connect(port, server);
        for number in 0..100 * effort {
            if let Err(error) = try_ask(&mut stream) {
                let addresses = (stream.local_addr(), stream.peer_addr());
                let has_ended = server.has_ended();
                if !has_ended {
                    server.signal(Signal::TERM);
                }
                let said = server.errors();
                panic!("request {number}, {addresses:?}: {error}; ended: {has_ended}; {said}");
            }
        }
    })
}

/// What a server in Python was found to do.
fn explained_server(program: &str, ask: impl Fn(u16, &mut Running, u32)) -> Value {
    let _alone = alone();
    let held = HeldPort::new();
    let port = held.number;
    let program = format!("PORT = {port}\n{program}");
    let subject = format!("TCP requests from 127.0.0.1 to port {port}");
    let report = |effort| {
        let mut server = explaining("600", &["python3", "-c", &program]);
        ask(port, &mut server, effort);
        serde_json::from_str(server.end().output()).unwrap()
    };
    let one = with_effort(report, |report| {
        report["explained"].as_array().unwrap().iter().find(|it| it["subject"] == *subject)
    });
    assert_eq!(one["role"], "answers");
    add_up(&one);
    one
}

#[test]
fn server__at_the_end_of_the_duration_or_at_a_signal__is_reported_at_once() {
    needs!("root");
    let _alone = alone();
    for signal in [None, Some(Signal::INT), Some(Signal::TERM)] {
        let one = with_effort(|effort| report_of_server(signal, effort), first);
        assert_eq!(one["role"], "answers", "{one}");
    }
}

/// What is reported of a server at a signal, or at the end of the duration.
fn report_of_server(signal: Option<Signal>, effort: u32) -> Value {
    let held = HeldPort::new();
    let port = held.number;
    let duration = if signal.is_some() { "600".to_owned() } else { (4 * effort).to_string() };
    let program = [EARMARK, "echo", "--port", &port.to_string()];
    let mut server = explaining(&duration, &program);
    let mut stream = connect(port, &mut server);
    (0..1_000 * effort).for_each(|_| {
        ask(&mut stream);
        std::thread::sleep(Duration::from_millis(2));
    });
    if let Some(signal) = signal {
        server.signal(signal);
    }
    let mut json = String::new();
    while !json.ends_with("\n}\n") {
        let line = server.line();
        if line == "{" || !json.is_empty() {
            json += &format!("{line}\n");
        }
    }
    let report: Value = serde_json::from_str(&json).unwrap();
    let end = if signal.is_some() { "signal" } else { "duration" };
    assert_eq!(report["program"]["end"], end, "{report}");
    if signal.is_none() {
        // It runs on, and gets what comes later.
        ask(&mut stream);
        server.signal(Signal::TERM);
    }
    let expected = if signal == Some(Signal::INT) { 130 } else { 143 };
    assert_eq!(server.end().code, expected, "the program's own end, {signal:?}");
    report
}

#[test]
fn server__that_computes_or_is_late_to_read__is_named_so() {
    needs!("root", "python3");
    for (program, cause, what) in [
        (
            "end = time.monotonic() + 0.03
    while time.monotonic() < end: pass",
            "work",
            "",
        ),
        (
            "select.select([c], [], []); time.sleep(0.03)",
            "busy",
            "waits until the program reads it",
        ),
    ] {
        // A server that works does so when it has read, one that is late before that.
        let (early, late) = if cause == "busy" { (program, "") } else { ("", program) };
        let one = served(&format!(
            "import select, socket, time
s = socket.create_server(('127.0.0.1', PORT))
c, _ = s.accept()
while True:
    {early}
    d = c.recv(64)
    if not d: break
    {late}
    c.sendall(d)"
        ));
        assert_eq!(one["verdict"]["cause"]["own"], cause, "{one}");
        assert!(one["verdict"]["what"].as_str().unwrap().contains(what), "{one}");
    }
}

#[test]
fn lab__that_holds_packets_on_this_side__is_named_with_the_command() {
    needs!("root");
    let _alone = alone();
    // The hold is 30 ms: no wake-up takes as long.
    let report = |effort: u32| {
        let directory = Directory::new();
        let ready = directory.file("ready");
        let explain = format!(
            "{EARMARK} explain b --udp --port 7 --size 8 --duration {} --rate 20 --json",
            2 * effort
        );
        let (server, client) = (udp_echo(7, &ready), once_ready(&ready, &explain));
        let hosts = ["--ports", "a", "--on", "b", &server, "--on", "a", &client];
        let ended = lab_run(&[&["--strategy", "delay:30000"], &hosts[..]].concat());
        ended.json()
    };
    let one = &with_effort(report, first);
    assert_eq!(one["verdict"]["cause"]["own"], "hold", "{one}");
    assert_eq!(one["verdict"]["side"], "mine");
    assert!(one["verdict"]["takes"].as_str().unwrap().contains("set a0 rx-usecs 0"), "{one}");
    let hold = stages(one).iter().find(|(name, _)| *name == "hold").unwrap().1;
    assert!(hold >= 25_000.0, "{hold}");
    add_up(one);
}

//! `earmark explain`: of a host, of a program, of a device. It takes the right to trace.
//!
//! Nothing here depends on how fast this machine is: stages have to be there, in order, and add up;
//! planted causes are far longer than anything that a busy machine does.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, TryRecvError};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{
    Directory, EARMARK, HeldPort, Running, earmark, lab_run, needs, once_ready, output, run,
    udp_echo,
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

/// The first thing that a report explains. All requests are followed, so it is there.
#[track_caller]
fn first(report: &Value) -> Value {
    assert_eq!(report["account"]["lost_records"], 0, "{report}");
    let one = &report["explained"][0];
    assert!(one["requests"].as_u64() > Some(0), "{report}");
    one.clone()
}

/// The largest cause of typical requests, which the data does not confuse with another one.
#[track_caller]
fn cause(explained: &Value) -> &Value {
    let causes = explained["verdict"]["typical"]["causes"][0]["causes"].as_array().unwrap();
    assert_eq!(causes.len(), 1, "{explained}");
    &causes[0]
}

#[test]
fn host__over_tcp_and_udp__has_stages_that_add_up() {
    needs!("root");
    let _alone = alone();
    let port = echo().to_string();
    for udp in [false, true] {
        let words = ["explain", "127.0.0.1", "--port", &port, "--json", "--duration", "2"];
        let words = [&words[..], if udp { &["--udp"] } else { &[] }].concat();
        let report = run(&words).json();
        assert_eq!((&report["schema_version"], &report["device"]), (&2.into(), &"lo".into()));
        let one = first(&report);
        add_up(&one);
        let names: Vec<&str> = stages(&one).iter().map(|(name, _)| *name).collect();
        for name in ["stack-out", "far-unacked", "stack-in"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        let bytes = |at: usize| report["ways"][at]["bytes"].as_u64();
        assert_eq!((bytes(0), bytes(1)), (Some(64), Some(1_400)), "{report}");
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
        first(&run(&["explain", "lo", "--duration", "3", "--json"]).json())
    });
    assert_eq!(all["subject"], "All that lo receives", "{all}");
    assert_eq!(all["role"], "receives");
    add_up(&all);
}

#[test]
fn program__is_run_and_its_sockets_are_explained() {
    needs!("root");
    let _alone = alone();
    let port = echo();
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; for i in $(seq 300); do echo x >&3; read -r y <&3; \
         done; exit 7"
    );
    let ended = run(&["explain", "--json", "--", "bash", "-c", &script]);
    assert_eq!(ended.code, 7, "the program's own status: {ended:?}");
    let one = first(&serde_json::from_str(&ended.stdout).unwrap());
    assert_eq!(one["subject"], format!("TCP requests to 127.0.0.1:{port}"), "{one}");
    assert_eq!(one["role"], "asks");
    add_up(&one);
}

/// A script that asks an echo again and again, in one process.
fn asker(port: u16) -> String {
    format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; while echo x >&3 && read -r y <&3; do sleep 0.005; done"
    )
}

/// What `explain` says in a script whose `$asker` is a process that asks the echo at `port`, and
/// `$other` one that asks another one.
fn explained_in(unshared: &[&str], before: &str, words: &str) -> (u16, Value) {
    let _alone = alone();
    let (port, other, directory) = (echo(), echo(), Directory::new());
    let script = format!(
        "set -e; cd {at}; {before}
         (echo $BASHPID >me; cat me >$group; {asker}) & asker=$!
         ({other}) & other=$!
         trap 'kill $asker $other || true' EXIT; until [ -s me ]; do sleep 0.02; done; sleep 0.2
         {EARMARK} explain --json --duration 2 {words}",
        at = directory.path().display(),
        asker = asker(port),
        other = asker(other),
    );
    let words = [&["--mount"], unshared, &["bash", "-c", &script]].concat();
    let report = output(Command::new("unshare").args(words)).json();
    (port, report)
}

#[track_caller]
fn asks_only(port: u16, report: &Value) {
    let one = first(report);
    assert_eq!(one["subject"], format!("TCP requests to 127.0.0.1:{port}"), "{report}");
    assert_eq!(report["explained"].as_array().map(Vec::len), Some(1), "{report}");
    assert_eq!(one["role"], "asks");
    add_up(&one);
}

#[test]
fn process__by_its_number_here_and_in_a_pid_namespace__is_explained_alone() {
    needs!("root", "unshare");
    let inside = ["--pid", "--fork", "--mount-proc"];
    for unshared in [&[][..], &inside] {
        let (port, report) = explained_in(unshared, "group=/dev/null", "--pid $asker");
        asks_only(port, &report);
    }
}

#[test]
fn cgroup__wherever_it_is_mounted__is_explained_alone() {
    needs!("root", "unshare");
    let before = "mkdir all; mount -t cgroup2 none all
        mkdir all/explained-$$; group=all/explained-$$/cgroup.procs";
    // What the asker has started may outlive it for a moment.
    let words = "--cgroup $PWD/all/explained-$$; kill $asker; wait $asker || true; \
                 until rmdir all/explained-$$; do sleep 0.02; done";
    let (port, report) = explained_in(&[], before, words);
    asks_only(port, &report);
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
    explained_server(program, |port, server| {
        let mut stream = connect(port, server);
        for number in 0..100 {
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
fn explained_server(program: &str, ask: impl Fn(u16, &mut Running)) -> Value {
    let _alone = alone();
    let held = HeldPort::new();
    let port = held.number;
    let program = format!("PORT = {port}\n{program}");
    let subject = format!("TCP requests from 127.0.0.1 to port {port}");
    let mut server = explaining("600", &["python3", "-c", &program]);
    ask(port, &mut server);
    let report: Value = serde_json::from_str(server.end().output()).unwrap();
    let all = report["explained"].as_array().unwrap();
    let one = all.iter().find(|it| it["subject"] == *subject);
    let one = one.unwrap_or_else(|| panic!("{report}")).clone();
    assert_eq!(one["role"], "answers");
    add_up(&one);
    one
}

#[test]
fn server__at_the_end_of_the_duration_or_at_a_signal__is_reported_at_once() {
    needs!("root");
    let _alone = alone();
    for signal in [None, Some(Signal::INT), Some(Signal::TERM)] {
        let one = first(&report_of_server(signal));
        assert_eq!(one["role"], "answers", "{one}");
    }
}

/// What is reported of a server at a signal, or at the end of the duration.
fn report_of_server(signal: Option<Signal>) -> Value {
    let held = HeldPort::new();
    let port = held.number;
    let duration = if signal.is_some() { "600" } else { "4" };
    let program = [EARMARK, "echo", "--port", &port.to_string()];
    let mut server = explaining(duration, &program);
    let mut stream = connect(port, &mut server);
    (0..300).for_each(|_| {
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
    for (before, after, expected) in [
        ("", "spin()", "computes"),
        ("select.select([c], [], []); spin()", "", "elsewhere"),
        ("", "time.sleep(0.03)", "sleep"),
    ] {
        let one = served(&format!(
            "import select, socket, time
def spin():
    end = time.thread_time() + 0.03
    while time.thread_time() < end: pass
s = socket.create_server(('127.0.0.1', PORT))
c, _ = s.accept()
while True:
    {before}
    d = c.recv(64)
    if not d: break
    {after}
    c.sendall(d)"
        ));
        let of_stage = stages(&one).into_iter().find(|(name, _)| *name == expected);
        assert!(of_stage.is_some_and(|(_, us)| us >= 29_000.0), "{expected}: {one}");
        // Others may have the processor for longer than that.
        let named = [expected, "preempted", "wake-up"];
        assert!(named.iter().any(|it| cause(&one) == it), "{expected}: {one}");
    }
}

#[test]
fn lab__that_holds_packets_on_this_side__is_named_with_the_command() {
    needs!("root");
    let _alone = alone();
    // The hold is 30 ms: no wake-up takes as long.
    let directory = Directory::new();
    let ready = directory.file("ready");
    let explain =
        format!("{EARMARK} explain b --udp --port 7 --size 8 --duration 2 --rate 20 --json");
    let (server, client) = (udp_echo(7, &ready), once_ready(&ready, &explain));
    let hosts = ["--ports", "a", "--on", "b", &server, "--on", "a", &client];
    let one = first(&lab_run(&[&["--strategy", "delay:30000"], &hosts[..]].concat()).json());
    assert_eq!(cause(&one), "hold", "{one}");
    let group = &one["verdict"]["typical"]["causes"][0];
    assert_eq!(group["side"], "mine");
    let takes = group["advice"][0]["takes"].as_str().unwrap();
    assert!(takes.contains("set a0 rx-usecs 0"), "{one}");
    let hold = stages(&one).iter().find(|(name, _)| *name == "hold").unwrap().1;
    assert!(hold >= 25_000.0, "{hold}");
    add_up(&one);
}

/// A server that waits for a lock before it answers, which another of its threads has for 40 ms.
const LOCKED: &str = "import socket, sys, threading, time
lock, asked = threading.Lock(), threading.Semaphore(0)
def hold():
    while True:
        with lock:
            asked.release(); time.sleep(0.04)
        held.acquire()
held = threading.Semaphore(0)
threading.Thread(target=hold, daemon=True).start()
door = socket.create_server((\"\", int(sys.argv[1])))
open(sys.argv[2], \"w\").write(\"ready\")
c, _ = door.accept()
while True:
    asked.acquire()
    d = c.recv(64)
    if not d: break
    with lock: pass
    c.sendall(d); held.release()
";

#[test]
fn far_lock__with_the_far_host__is_a_lock_there() {
    needs!("root", "python3");
    let _alone = alone();
    let directory = Directory::new();
    let (program, ready, listens) =
        (directory.file("locked.py"), directory.file("ready"), directory.file("listens"));
    std::fs::write(&program, LOCKED).unwrap();
    // The code is in the environment of both.
    let code = "EARMARK_CODE=0123456789ABCDEFGHJK";
    let serve = format!(
        "{code} {EARMARK} serve --listen 0.0.0.0 --explain >{listens} & \
         exec python3 {program} 7008 {ready}"
    );
    let client = "import socket
s = socket.create_connection((\"b\", 7008))
for _ in range(60):
    s.sendall(b\"x\"); s.recv(64)";
    let explain = format!(
        "until [ -s {listens} ]; do sleep 0.02; done; {code} {EARMARK} explain --json --with b \
         --duration 600 -- python3 -c '{client}'"
    );
    let (serve, explain) = (serve, once_ready(&ready, &explain));
    let hosts = ["--until", "a", "--on", "b", &serve, "--on", "a", &explain];
    let ended = lab_run(&[&["--strategy", "disabled"], &hosts[..]].concat());
    let report = ended.json();
    let one = first(&report);
    add_up(&one);
    assert_eq!(report["with"]["failed"], Value::Null, "{report}");
    let joined = one["joined"].as_object().unwrap_or_else(|| panic!("{report}"));
    assert_eq!((&joined["host"], one["requests"].as_u64()), (&"b".into(), Some(60)), "{report}");
    // Both hosts are this machine, and have one clock.
    let wire = |name: &str| joined["wire"][name].as_f64().unwrap();
    assert!(wire("offset_from_us") <= 0.0 && wire("offset_to_us") >= 0.0, "{report}");
    let rows = one["stages"].as_array().unwrap();
    let lock = rows.iter().find(|row| row["stage"] == "lock" && row["far"] == true);
    assert!(lock.is_some_and(|row| row["typical_us"].as_f64().unwrap() > 20_000.0), "{one}");
    let group = &one["verdict"]["typical"]["causes"][0];
    assert_eq!((&group["causes"][0], &group["side"]), (&"lock".into(), &"theirs".into()), "{one}");
    let takes = group["advice"][0]["takes"].as_str().unwrap();
    assert!(takes.starts_with("on the far host: "), "{takes}");
}

#[test]
fn far_host__that_does_not_explain__says_so() {
    needs!("root");
    let _alone = alone();
    let directory = Directory::new();
    let listens = directory.file("listens");
    let code = "EARMARK_CODE=0123456789ABCDEFGHJK";
    let serve = format!("exec env {code} {EARMARK} serve --listen 0.0.0.0 >{listens}");
    let explain = format!("{code} {EARMARK} explain --with b -- true");
    let explain = once_ready(&listens, &explain);
    let hosts = ["--until", "a", "--on", "b", &serve, "--on", "a", &explain];
    let ended = lab_run(&[&["--strategy", "disabled"], &hosts[..]].concat());
    assert_ne!(ended.code, 0, "{ended:?}");
    assert!(ended.stderr.contains("earmark serve --explain"), "{ended:?}");
}

//! `earmark explain`: of a host, of a program, of a device. Whoever may not trace is told so.
//!
//! Nothing here depends on how fast this machine is: stages have to be there, in order, and add up;
//! planted causes are far longer than anything that a busy machine does.
#![allow(non_snake_case, reason = "test names are subject__condition__result")]

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

mod common;
use common::{Ended, lab_run, run, udp_echo};

/// What was printed as JSON; `None` after a look at the refusal, for whoever may not trace.
fn explained(ended: &Ended) -> Option<Value> {
    if !rustix::process::geteuid().is_root() {
        assert_ne!(ended.code, 0);
        assert!(ended.stderr.contains("run as root"), "{ended:?}");
        return None;
    }
    assert_eq!(ended.code, 0, "{ended:?}");
    Some(serde_json::from_str(ended.output()).unwrap())
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

#[test]
fn host__over_tcp_and_udp__has_stages_that_add_up() {
    let port = echo().to_string();
    for udp in [false, true] {
        let mut words = vec!["explain", "127.0.0.1", "--port", &port, "--duration", "1", "--json"];
        words.extend(udp.then_some("--udp"));
        let Some(report) = explained(&run(&words)) else { return };
        assert_eq!(report["schema"], "earmark-explain/1");
        assert_eq!(report["device"], "lo");
        let one = &report["explained"][0];
        assert!(one["requests"].as_u64().unwrap() > 0, "{report}");
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
fn host__that_nobody_echoes_on__is_an_error_with_a_next_step() {
    let ended = run(&["explain", "127.0.0.1", "--port", "1", "--duration", "1"]);
    ended.refused(&["TCP echo at 127.0.0.1:1", "--port"]);
    run(&["explain"]).refused(&["HOST"]);
    run(&["explain", "lo", "--duration", "0"]).refused(&["--duration"]);
}

#[test]
fn device__with_traffic__tells_who_receives() {
    let port = echo();
    let has_ended = AtomicBool::new(false);
    let ended = std::thread::scope(|scope| {
        scope.spawn(|| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect(("127.0.0.1", port)).unwrap();
            while !has_ended.load(Ordering::Relaxed) {
                socket.send(b"x").unwrap();
                let _ = socket.recv(&mut [0; 8]);
                // Often enough that a window of tracing has many of them.
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
        });
        let ended = run(&["explain", "lo", "--duration", "3", "--json"]);
        has_ended.store(true, Ordering::Relaxed);
        ended
    });
    let Some(report) = explained(&ended) else { return };
    let all = &report["explained"][0];
    let subject = all["subject"].as_str().unwrap_or_else(|| panic!("{report}"));
    assert!(subject.contains("lo receives"), "{report}");
    assert_eq!(all["role"], "receives");
    add_up(all);
}

#[test]
fn program__is_run_and_its_sockets_are_explained() {
    let port = echo();
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; for i in $(seq 300); do echo x >&3; read -r y <&3; \
         done; exit 7"
    );
    let ended = run(&["explain", "--json", "--", "bash", "-c", &script]);
    if rustix::process::geteuid().is_root() {
        assert_eq!(ended.code, 7, "the program's own status: {ended:?}");
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        let one = &report["explained"][0];
        let subject = format!("TCP requests to 127.0.0.1:{port}");
        assert_eq!(one["subject"], subject.as_str(), "{report}");
        assert_eq!(one["role"], "asks");
        add_up(one);
    } else {
        explained(&ended);
    }
}

#[test]
fn lab__that_holds_packets_on_this_side__is_named_with_the_command() {
    // The hold is 30 ms: no wake-up takes as long.
    let command = env!("CARGO_BIN_EXE_earmark");
    let explain =
        format!("{command} explain b --udp --port 7 --size 8 --duration 2 --rate 20 --json");
    let ended = lab_run(&[
        "--strategy",
        "delay:30000",
        "--ports",
        "a",
        "--on",
        "b",
        &udp_echo(7),
        "--on",
        "a",
        &explain,
    ]);
    let Some(report) = explained(&ended) else { return };
    let one = &report["explained"][0];
    assert_eq!(one["verdict"]["cause"]["own"], "hold", "{report}");
    assert_eq!(one["verdict"]["side"], "mine");
    assert!(one["verdict"]["takes"].as_str().unwrap().contains("set a0 rx-usecs 0"), "{report}");
    let hold = stages(one).iter().find(|(name, _)| *name == "hold").unwrap().1;
    assert!(hold >= 25_000.0, "{hold}");
    add_up(one);
}

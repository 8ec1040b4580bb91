//! `predict`: captures in, figures out.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{Directory, has, run};

#[path = "../../../core/capture/tests/support/written.rs"]
#[allow(dead_code, reason = "another crate uses the rest")]
mod written;

use written::{Order, enhanced, interface, pcap, section, udp};

/// A packet to host 2 each 10 us for a tenth of a second, one to port 123 in each 100, and an
/// answer to each tenth.
fn packets() -> Vec<(u64, Vec<u8>)> {
    let mut packets = Vec::new();
    for number in 0..10_000 {
        let port = if number % 100 == 0 { 123 } else { 5_001 };
        packets.push((number * 10_000, udp(1, 2, port, 200)));
        if number % 10 == 0 {
            packets.push((number * 10_000 + 3_000, udp(2, 1, 40_000, 60)));
        }
    }
    packets
}

fn capture(directory: &Directory) -> String {
    let packets = packets();
    let written: Vec<_> = packets.iter().map(|(at, it)| (*at, &it[..], it.len() as u32)).collect();
    let path = directory.file("a.pcap");
    fs::write(&path, pcap(Order::Little, true, 1, &written)).unwrap();
    path
}

fn predicted(arguments: &[&str]) -> Value {
    let ended = run(&[&["predict"], arguments, &["--json"]].concat());
    serde_json::from_str(ended.output()).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

#[test]
fn a_capture_has_its_answer() {
    let directory = Directory::new();
    let path = capture(&directory);
    let json =
        predicted(&[&path, "--host", "10.0.0.2", "--compare", "disabled,delay:75", "--grid"]);
    assert_eq!((&json["arrivals"], &json["packets"]), (&10_000.into(), &11_000.into()));
    let [disabled, delay] = &json["settings"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!((&disabled["interrupts"], &delay["interrupts"]), (&10_000.into(), &1_250.into()));
    assert_eq!((&delay["hold_us"]["p50"], &delay["hold_us"]["max"]), (&35.0.into(), &75.0.into()));
    assert_eq!(delay["groups"][0]["name"], "udp 5001");
    assert!(
        json["schema_version"].is_u64() && json["grid"]["points"].as_array().unwrap().len() > 50
    );
    let rules = json["proposals"].as_array().unwrap();
    assert!(rules.iter().any(|it| it["lane"] == "udp-port=123"), "{rules:?}");

    let ended = run(&["predict", &path, "--by", "flow", "--report", &directory.file("a.html")]);
    has(ended.output(), &["delay:20", "udp 10.0.0.1:40000 > 10.0.0.2:5001", "earmark lane DEV"]);
    let page = fs::read_to_string(directory.file("a.html")).unwrap();
    has(&page, &["hold, 99th percentile", "a.pcap", "<svg"]);
}

#[test]
fn compressed_and_other_formats_say_the_same() {
    let directory = Directory::new();
    let plain = capture(&directory);
    let mut pcapng = section(Order::Big);
    pcapng.extend(interface(Order::Big, 1, "eth0", 9));
    for (at, frame) in packets() {
        let flags = if frame.len() == 60 { 2 } else { 1 };
        let packet = (at, &frame[..], frame.len() as u32);
        pcapng.extend(enhanced(Order::Big, 0, packet, (flags, "")));
    }
    let other = directory.file("a.pcapng");
    fs::write(&other, pcapng).unwrap();
    let settings = |path: &str, more: &[&str]| {
        predicted(&[&[path, "--compare", "delay:75,throttle:50"], more].concat())["settings"]
            .clone()
    };
    let expected = settings(&plain, &["--host", "10.0.0.2"]);
    for program in ["gzip", "bzip2", "xz", "zstd"] {
        let packed = Command::new(program).args(["-c", &plain]).output().unwrap();
        let path = directory.file("a.packed");
        fs::write(&path, packed.stdout).unwrap();
        assert_eq!(settings(&path, &["--host", "10.0.0.2"]), expected, "{program}");
    }
    assert_eq!(settings(&other, &[]), expected, "directions say what has arrived");
}

#[test]
fn costs_keep_a_processor_busy() {
    let directory = Directory::new();
    let path = capture(&directory);
    let host = [&path, "--host", "10.0.0.2", "--compare", "disabled"];
    let json =
        predicted(&[&host[..], &["--interrupt-cost", "2000", "--packet-cost", "1000"]].concat());
    let outcome = &json["settings"][0];
    assert!((outcome["host_busy"].as_f64().unwrap() - 0.3).abs() < 0.01, "{outcome}");
    assert_eq!(outcome["taken_us"]["p50"], 3.0);
}

#[test]
fn what_is_no_capture_is_refused_with_what_to_do() {
    let directory = Directory::new();
    let text = directory.write("a.txt", "Coalesce parameters for eth0:\n");
    let path = capture(&directory);
    let missing = directory.file("none.pcap");
    run(&["predict", &text]).refused(&["tcpdump"]);
    run(&["predict", &missing]).refused(&["tcpdump"]);
    run(&["predict", &path, "--host", "10.0.0.9"]).refused(&["10.0.0.9"]);
    run(&["predict", &path, "--interface", "eth7"]).refused(&["no interface eth7"]);
    run(&["predict", &path, "--compare", "driver"]).refused(&["driver"]);
}

//! Virtual time: the same seed is the same run, to the byte.

use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::support::{Directory, needs, run_line};

/// What is compared. Bulk flows, and a server with threads and a clock of its own, are where runs
/// would differ first; think times are drawn at random.
const RUNS: [&str; 5] = [
    "tcp-rr --strategy throttle:125 --think 200",
    "memcached --strategy periodic:128 --value-bytes 4000",
    "mixed --strategy marked:75 --bulk-rate 500 --link-loss 1 --costs paper",
    "tcp-rr --nic e1000e --think 200",
    "tcp-rr --nic iavf --think 200 --poll defer",
];

/// The figures, and the capture, of an experiment of 50 ms.
#[track_caller]
fn bench(experiment: &str, seed: &str) -> (Value, Vec<u8>) {
    let directory = Directory::new();
    let capture = directory.file("run.pcapng");
    let always = "--world virtual --json --warmup 0.01 --duration 0.05";
    let more = format!("--seed {seed} --pcap {capture}");
    let mut outcome = run_line(&format!("bench {experiment} {always} {more}")).json();
    let result = &mut outcome["results"][0];
    // When it was made, under which load, and into which file.
    let environment = result.as_object_mut().unwrap().remove("environment").unwrap();
    assert_eq!(environment["world"], "virtual");
    (outcome, std::fs::read(capture).unwrap())
}

#[track_caller]
fn assert_same(experiment: &str, one: &(Value, Vec<u8>), other: &(Value, Vec<u8>)) {
    assert_eq!(one.0, other.0, "{experiment:?}: figures");
    let first = one.1.iter().zip(&other.1).position(|(one, other)| one != other);
    assert_eq!((one.1.len(), first), (other.1.len(), None), "{experiment:?}: captures");
}

/// Programs that only take time from others, until this is dropped.
struct Load(Vec<Child>);

impl Load {
    /// Two for each processor.
    fn start() -> Self {
        let count = 2 * thread::available_parallelism().map_or(1, usize::from);
        let spin = |_| {
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap()
        };
        Self((0..count).map(spin).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_seed_is_a_run_whatever_else_the_machine_does() {
    needs!("guests", "memcached");
    for experiment in RUNS {
        let first = bench(experiment, "7");
        assert!(first.1.len() > 10_000, "{experiment:?}: nothing was captured");
        assert_same(experiment, &first, &bench(experiment, "7"));
        let load = Load::start();
        assert_same(experiment, &first, &bench(experiment, "7"));
        drop(load);
        assert!(first.1 != bench(experiment, "8").1, "{experiment:?}: seeds make no difference");
    }
}

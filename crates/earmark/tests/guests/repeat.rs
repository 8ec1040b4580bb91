//! Virtual time: the same seed is the same run, to the byte.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::support::{Directory, EARMARK, needs, output, run_line, unique};

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

#[test]
fn a_run_is_the_same_wherever_the_program_is() {
    needs!("guests");
    let line = "bench tcp-rr --world virtual --json --compare disabled,quiet:20/75 --costs paper \
                --warmup 0.02 --duration 0.05";
    let words: Vec<&str> = line.split_whitespace().collect();
    let figures = |program: &str| {
        let mut outcome = output(Command::new(program).args(&words)).json();
        for result in outcome["results"].as_array_mut().unwrap() {
            result.as_object_mut().unwrap().remove("environment").unwrap();
        }
        outcome
    };
    let here = figures(EARMARK);
    // Beside it: a guest has a `/tmp` of its own, and mounts a program that is there once more.
    let target = Path::new(EARMARK).parent().unwrap();
    for place in ["place", "a-place-whose-name-is-longer", "a-place-whose-name-is-longer-by-some"] {
        let directory = target.join(unique(place));
        std::fs::create_dir(&directory).unwrap();
        let elsewhere = directory.join("earmark");
        std::fs::copy(EARMARK, &elsewhere).unwrap();
        let there = figures(elsewhere.to_str().unwrap());
        std::fs::remove_dir_all(directory).unwrap();
        assert_eq!(there, here, "{}", elsewhere.display());
    }
}

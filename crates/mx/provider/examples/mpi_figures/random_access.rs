//! RandomAccess of the HPC Challenge: many tiny messages in all directions. hpcc checks its own
//! results.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::hosts::{Hosts, run as run_command};

/// What hpcc reads: the smallest problem that is not over at once, on two ranks.
const INPUT: &str = include_str!("hpccinf.txt");

pub(crate) fn require() {
    let found = Command::new("sh").args(["-c", "command -v hpcc"]).output();
    let is_there = found.is_ok_and(|output| output.status.success());
    assert!(is_there, "no hpcc on $PATH; on Debian: apt-get install hpcc");
}

/// Runs hpcc as `start` says; its giga-updates per second of `MPIRandomAccess`.
pub(crate) fn run(hosts: &Hosts, start: impl Fn(&Path) -> Command) -> f64 {
    let directory = hosts.path("hpcc");
    fs::create_dir_all(&directory).expect("a directory for hpcc");
    let output = directory.join("hpccoutf.txt");
    let _ = fs::remove_file(&output);
    fs::write(directory.join("hpccinf.txt"), INPUT).expect("input for hpcc");
    run_command(start(Path::new("hpcc")).current_dir(&directory));
    let text = fs::read_to_string(&output).expect("what hpcc has written");
    let value = |name: &str| {
        let line = text.lines().rfind(|line| line.starts_with(name));
        let (_, value) = line.and_then(|line| line.split_once('=')).expect(name);
        value.parse::<f64>().expect("a number")
    };
    assert!((value("Success") - 1.0).abs() < f64::EPSILON, "hpcc found a mistake: {text}");
    value("MPIRandomAccess_GUPs")
}

//! Shards of a command, and what `earmark merge` makes of them.

use serde_json::Value;

use super::results::without;
use super::{Directory, Ended, run, run_line};

/// Fields that differ from run to run: dates, loads, durations.
const OF_RUN: [&str; 6] =
    ["date", "load_average", "wall_s", "cpu_s", "seeds_per_s", "peak_rss_kib"];

/// `value` without what differs from run to run.
pub(crate) fn lasting(value: Value) -> Value {
    without(value, &OF_RUN)
}

/// Runs the shards of a command; their files.
#[track_caller]
pub(crate) fn shards(directory: &Directory, line: &str, of: u32) -> Vec<String> {
    let shard = |index: u32| {
        let printed = run_line(&format!("{line} --json --shard {index}/{of}"));
        directory.write(&format!("{index}-of-{of}.json"), printed.output())
    };
    (1..=of).map(shard).collect()
}

pub(crate) fn merge(files: &[String], options: &[&str]) -> Ended {
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    run(&[&["merge"], options, &files].concat())
}

/// Requires that the shards of a command have the result of one run, in these numbers of shards.
#[track_caller]
pub(crate) fn assert_merges(line: &str, numbers: &[u32]) {
    let directory = Directory::new();
    let whole = lasting(run_line(&format!("{line} --json")).json());
    for of in numbers {
        let files = shards(&directory, line, *of);
        let path = directory.file("merged.json");
        let merged = merge(&files, &["--json", "--output", &path]).json();
        let written: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(written, merged);
        assert_eq!(lasting(merged), whole, "{of} shards of {line}");
    }
}

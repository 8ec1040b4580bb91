//! `--shard` and `earmark merge`: the result of all shards is that of one run.

use serde_json::Value;

mod common;
use common::{Directory, Ended, run};

/// What differs from run to run: dates, loads, durations.
const OF_RUN: [&str; 6] =
    ["date", "load_average", "wall_s", "cpu_s", "seeds_per_s", "peak_rss_kib"];

/// `value` without what differs from run to run.
fn lasting(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|name, _| !OF_RUN.contains(&name.as_str()));
                fields.values_mut().for_each(strip);
            }
            Value::Array(values) => values.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

/// Runs the shards of a command; their files.
#[track_caller]
fn shards(directory: &Directory, words: &[&str], of: u32) -> Vec<String> {
    let shard = |index: u32| {
        let shard = format!("{index}/{of}");
        let printed = run(&[words, &["--json", "--shard", &shard]].concat());
        directory.write(&format!("{index}-of-{of}.json"), printed.output())
    };
    (1..=of).map(shard).collect()
}

fn merge(files: &[String], options: &[&str]) -> Ended {
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    run(&[&["merge"], options, &files].concat())
}

/// Requires that two and three shards of a command have the result of one run.
#[track_caller]
fn assert_merges(words: &[&str]) {
    assert_merges_in(words, &[2, 3]);
}

/// The same for these numbers of shards.
#[track_caller]
fn assert_merges_in(words: &[&str], numbers: &[u32]) {
    let directory = Directory::new();
    let whole = lasting(run(&[words, &["--json"]].concat()).json());
    for of in numbers {
        let files = shards(&directory, words, *of);
        let path = directory.file("merged.json");
        let merged = merge(&files, &["--json", "--output", &path]).json();
        let written: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(written, merged);
        assert_eq!(lasting(merged), whole, "{of} shards of {words:?}");
    }
}

const SHORT: [&str; 6] = ["--world", "virtual", "--warmup", "0.01", "--duration", "0.05"];

#[test]
fn a_comparison_in_virtual_time_is_that_of_its_shards() {
    let compared = ["bench", "tcp-rr", "--compare", "disabled,delay:75", "--clients", "1..2"];
    assert_merges(&[&compared[..], &["--think", "100"], &SHORT].concat());
}

#[test]
fn a_scenario_is_that_of_its_shards_without_its_file() {
    let directory = Directory::new();
    let file = directory.write(
        "scenario.toml",
        "title = 'two'\nstory = ''\nworld = 'virtual'\n\
         [[experiment]]\nrun = 'tcp-rr'\n\
         options = { compare = ['delay:75', 'throttle:125'], warmup = 0.01, duration = 0.05 }\n\
         [[experiment]]\nrun = 'ntp'\nnic = { strategy = 'delay:300' }\n\
         options = { change-to = 'disabled', warmup = 0.01, duration = 0.1 }\n",
    );
    let words = ["bench", "--scenario", &file];
    let whole = lasting(run(&[&words[..], &["--json"]].concat()).json());
    let files = shards(&directory, &words, 2);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(lasting(merge(&files, &["--json"]).json()), whole);
    let table = merge(&files, &["--ratios"]);
    for text in ["tcp-rr in the virtual world", "ntp in the virtual world", "the offset that NTP"] {
        assert!(table.output().contains(text), "no {text} in {table:?}");
    }
    merge(&files, &["--svg", "a.svg"]).refused(&["--svg: a scenario has several pictures"]);
    // The first shard has the first and the last of three cases.
    let partial = merge(&files[..1], &["--json", "--partial"]).json();
    assert_eq!(partial["partial"]["missing"], serde_json::json!([2]));
    let first = &partial["outcomes"][0]["results"];
    assert!(first[0]["latency_us"]["p50"].is_number() && first[1]["latency_us"].is_null());
    assert_eq!(partial["outcomes"][1], whole_with_moment(&whole, &partial)["outcomes"][1]);
}

/// `whole` as `partial` would have it: with date and load of its own.
fn whole_with_moment(whole: &Value, partial: &Value) -> Value {
    let mut whole = whole.clone();
    let result = &mut whole["outcomes"][1]["results"][0]["environment"];
    result.clone_from(&partial["outcomes"][1]["results"][0]["environment"]);
    whole
}

#[test]
fn in_real_time_each_shard_compares_whole_rounds() {
    let directory = Directory::new();
    let words = ["bench", "ping", "--compare", "disabled,delay:200", "--rounds", "2"];
    let words = [&words[..], &["--warmup", "0.05", "--duration", "0.2"]].concat();
    let files = shards(&directory, &words, 2);
    for (index, file) in files.iter().enumerate() {
        let file: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let cases = &file["results"][0]["cases"];
        assert_eq!((cases.as_array().unwrap().len(), &cases[0]["case"]), (1, &index.into()));
        assert_eq!(cases[0]["turns"].as_array().unwrap().len(), 2, "a round has both settings");
    }
    let merged = merge(&files, &["--json"]).json();
    for result in merged["results"].as_array().unwrap() {
        assert_eq!(result["rounds"].as_array().unwrap().len(), 2, "{merged:#}");
        assert!(!result["environment"]["command"].as_str().unwrap().contains("--shard"));
    }
    let ratio = &merged["ratios"][0];
    assert!(ratio["median"].as_f64() >= ratio["min"].as_f64(), "{ratio}");
}

#[test]
fn numbers_of_documents_are_those_of_their_shards() {
    assert_merges(&["reproduce", "e1000/round-trip", "--quick"]);
}

#[test]
fn a_missing_shard_of_a_document_leaves_its_numbers_open() {
    let directory = Directory::new();
    let files = shards(&directory, &["reproduce", "e1000/round-trip", "--quick"], 2);
    let report = directory.file("report.html");
    let partial = merge(&files[1..], &["--partial", "--json", "--report", &report]).json();
    assert_eq!(partial["partial"], serde_json::json!({"shards": 2, "missing": [1]}));
    let numbers = partial["seeds"][0]["parts"][0]["numbers"].as_array().unwrap();
    let open = numbers.iter().filter(|number| number["verdict"] == "not-made");
    assert!(open.clone().count() > 0, "{partial:#}");
    assert!(
        open.clone().all(|number| number["note"] == "Not made: a shard of its run is missing.")
    );
    assert!(std::fs::read_to_string(&report).unwrap().contains("a shard of its run is missing"));
}

#[test]
fn blind_tests_are_scored_as_without_shards() {
    assert_merges(&["probe-blind", "--world", "model", "--cases", "7"]);
    assert_merges(&["probe-blind", "--world", "hindered", "--cases", "4"]);
}

#[test]
fn blind_tests_in_virtual_time_are_scored_as_without_shards() {
    assert_merges_in(&["probe-blind", "--world", "virtual", "--cases", "2"], &[2]);
}

#[test]
fn simulated_networks_are_counted_as_without_shards() {
    assert_merges(&["mx", "soak", "--seeds", "40", "--first-seed", "70"]);
}

#[test]
fn a_seed_is_the_same_run_in_any_shard_and_with_any_number_of_threads() {
    let soak = |options: &[&str]| run(&[&["mx", "soak", "--json"], options].concat()).json();
    let one = soak(&["--seeds", "12", "--jobs", "1"]);
    let other = soak(&["--seeds", "12", "--jobs", "5"]);
    assert_eq!(one["digest"], other["digest"]);
    assert_ne!(one["digest"], soak(&["--seeds", "12", "--first-seed", "1"])["digest"]);
    assert!(one["messages"].as_u64() > Some(100) && one["failed"] == 0, "{one:#}");
}

#[test]
fn what_cannot_be_merged_is_refused_with_what_would_help() {
    let directory = Directory::new();
    let files = shards(&directory, &["mx", "soak", "--seeds", "5"], 3);
    merge(&files[..2], &[]).refused(&["of 3 shards, 3 is missing", "--partial"]);
    merge(&files, &["--histogram"]).refused(&["--histogram, --ratios and --svg", "drop them"]);
    merge(&files, &["--report", "a.html"]).refused(&["--report is for shards of reproduce"]);
    let text = std::fs::read_to_string(&files[1]).unwrap();
    let changed = |name: &str, from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        directory.write(name, &text.replace(from, to))
    };
    let with = |second: String| merge(&[files[0].clone(), second, files[2].clone()], &[]);
    with(changed("a", r#""--seeds","5""#, r#""--seeds","6""#))
        .refused(&["different command lines"]);
    with(changed("b", r#""seeds":2"#, r#""seeds":1"#)).refused(&["shard 2/3 has not the seeds"]);
    with(changed("c", r#""messages":"#, r#""letters":"#)).refused(&["results of shard", "letters"]);
    let twice = [files.clone(), vec![changed("d", r#""failed":0"#, r#""failed":1"#)]].concat();
    merge(&twice, &[]).refused(&["are both shard 2/3, with different results"]);
    let again = [&files[..], &files[1..2]].concat();
    let seeds = merge(&again, &["--json"]).json();
    assert_eq!((&seeds["seeds"], seeds.get("partial")), (&5.into(), None));
    let other = changed("e", r#"["mx","soak","--seeds","5","--json"]"#, r#"["nic","labs"]"#);
    merge(&[other], &["--partial"]).refused(&["its command has no shards"]);
    let other = changed("f", r#"["mx","soak","--seeds","5","--json"]"#, r#"["--help"]"#);
    merge(&[other], &["--partial"]).refused(&["this Earmark cannot read `--help`"]);
    merge(&["/dev/zero".to_owned()], &[]).refused(&["read shard /dev/zero", "no file"]);
}

#[test]
fn a_shard_writes_no_file_and_prints_json_alone() {
    let bench = ["bench", "ping", "--shard", "1/2"];
    run(&bench).refused(&["--json"]);
    for (option, value) in [("--pcap", "a.pcap"), ("--svg", "a.svg")] {
        run(&[&bench[..], &["--json", option, value]].concat())
            .refused(&["a shard writes neither"]);
    }
    run(&["bench", "ping", "--json", "--shard", "3/2"]).refused(&["counted from 1 to N"]);
    run(&["reproduce", "--json", "--shard", "1/2", "--report", "a"]).refused(&["--report"]);
}

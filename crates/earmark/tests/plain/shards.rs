//! `--shard` and `earmark merge`, of commands that need neither hosts nor guests.

use crate::support::shards::{assert_merges, merge, shards};
use crate::support::{Directory, run_line};

#[test]
fn what_is_computed_alone_is_that_of_its_shards() {
    assert_merges("probe-blind --world model --cases 7", &[2, 3]);
    assert_merges("probe-blind --world hindered --cases 4", &[2]);
    assert_merges("mx soak --seeds 40 --first-seed 70", &[2, 3]);
}

#[test]
fn a_seed_is_the_same_run_in_any_shard_and_with_any_number_of_threads() {
    let soak = |options: &str| run_line(&format!("mx soak --json {options}")).json();
    let one = soak("--seeds 12 --jobs 1");
    assert_eq!(one["digest"], soak("--seeds 12 --jobs 5")["digest"]);
    assert_ne!(one["digest"], soak("--seeds 12 --first-seed 1")["digest"]);
    assert!(one["messages"].as_u64() > Some(100) && one["failed"] == 0, "{one:#}");
}

#[test]
fn what_cannot_be_merged_is_refused_with_what_would_help() {
    let directory = Directory::new();
    let files = shards(&directory, "mx soak --seeds 5", 3);
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
    let soak = r#"["mx","soak","--seeds","5","--json"]"#;
    let alone = |name, words: &str| merge(&[changed(name, soak, words)], &["--partial"]);
    alone("e", r#"["nic","labs"]"#).refused(&["its command has no shards"]);
    alone("f", r#"["--help"]"#).refused(&["this Earmark cannot read `--help`"]);
}

//! What the command says of itself: its help, and the completions that shells get.

use std::fs;
use std::path::Path;

mod common;
use common::run;

/// The words after `earmark` in the examples of a page.
fn subcommands(page: &str) -> Vec<String> {
    let examples = page.split("```").skip(1).step_by(2);
    let lines = examples.flat_map(str::lines);
    let words = lines.filter_map(|line| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "earmark").skip(1);
        words.next().map(str::to_owned)
    });
    words.filter(|word| word.bytes().all(|letter| letter.is_ascii_lowercase())).collect()
}

#[test]
fn every_subcommand_in_an_example_is_in_the_help() {
    let help = run(&["--help"]).output().to_owned();
    let listed: Vec<&str> =
        help.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    let mut seen = 0;
    for page in pages.chain([root.join("README.md")]) {
        for word in subcommands(&fs::read_to_string(&page).unwrap()) {
            seen += 1;
            assert!(listed.contains(&word.as_str()), "`{word}` of {} is hidden", page.display());
        }
    }
    assert!(seen > 50, "{seen} examples");
}

#[test]
fn completions_offer_strategies_and_scenarios() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).output().to_owned();
        let words: Vec<&str> = script.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        // several options take a strategy, and one a scenario; no help has these words.
        for (offered, least) in [("periodic", 4), ("bge", 1), ("openmx", 1)] {
            let count = words.iter().filter(|word| **word == offered).count();
            assert!(count >= least, "{shell}: {offered} {count} times");
        }
    }
}

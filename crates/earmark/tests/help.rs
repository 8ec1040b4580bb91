//! What the command says of itself: its help, and the completions that shells get.

use std::fs;
use std::path::Path;
use std::process::Command;

mod common;
use common::{Directory, output, run};

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

#[test]
fn the_long_version_names_the_commit_and_the_short_one_does_not() {
    let number = env!("CARGO_PKG_VERSION");
    assert_eq!(run(&["-V"]).output().trim_end(), format!("earmark {number}"));
    let long = run(&["--version"]).output().trim_end().to_owned();
    let commit =
        long.strip_prefix(&format!("earmark {number} (")).and_then(|it| it.split_once(' '));
    let (hash, date) = commit.unwrap_or_else(|| panic!("no commit in {long}"));
    assert!(hash.len() >= 10 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{long}");
    assert!(date.ends_with(')') && date.starts_with("20"), "{long}");
}

#[test]
fn every_command_has_a_manual_page() {
    let directory = Directory::new();
    run(&["man", "--all", directory.path().to_str().unwrap()]).output();
    let help = run(&["--help"]).output().to_owned();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let names = commands.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let names: Vec<&str> = names.filter(|name| !name.is_empty() && *name != "help").collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let page = directory.path().join(format!("earmark-{name}.1"));
        let page = fs::read_to_string(&page).unwrap_or_else(|e| panic!("{}: {e}", page.display()));
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
    }
}

#[test]
fn a_kernel_that_is_too_old_is_named_before_anything_is_tried() {
    // Linux says that it is 2.6 to programs that want to hear that (personality(2), UNAME26).
    let old = |words: &[&str]| {
        let mut command = Command::new("setarch");
        output(command.args(["--uname-2.6", env!("CARGO_BIN_EXE_earmark")]).args(words))
    };
    old(&["lab", "run", "--on", "a", "true"]).refused(&["needs 5.11 or newer"]);
    old(&["show", "lo"]).output();
}

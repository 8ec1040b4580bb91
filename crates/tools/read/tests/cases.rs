//! What people paste and send, a file each in `cases/`, with the answer beside it.
//!
//! The first line of an answer is the command; the others are what it prints. A directory is a
//! report.

use std::fs;
use std::path::{Path, PathBuf};

use read::{Input, Options, read, screen};
use report::terminal::Width;

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

fn files(path: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
    found.sort();
}

/// A file, or those of a report.
fn inputs(name: &str) -> Vec<Input> {
    let path = cases().join(name);
    let one = |path: &Path, is_of_report| Input {
        name: path.strip_prefix(cases()).unwrap().display().to_string(),
        bytes: fs::read(path).unwrap(),
        is_of_report,
        left_off: 0,
    };
    if !path.is_dir() {
        return vec![one(&path, false)];
    }
    let mut all = Vec::new();
    files(&path, &mut all);
    all.iter().map(|path| one(path, true)).collect()
}

fn options(words: &[&str]) -> Options {
    let value = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1).map(|word| (*word).to_owned())
    };
    Options {
        driver: value("--driver"),
        device: value("--device"),
        seconds: value("--seconds").map(|text| text.parse().unwrap()),
    }
}

#[test]
fn each_case_has_its_answer() {
    let mut names: Vec<String> = fs::read_dir(cases())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".answer"))
        .collect();
    names.sort();
    assert!(names.len() > 25, "{names:?}");
    let mut wrong = String::new();
    for name in names {
        let path = cases().join(format!("{name}.answer"));
        let expected = fs::read_to_string(&path).unwrap_or_default();
        let first = expected.lines().next().unwrap_or_default();
        let command =
            if first.is_empty() { format!("$ earmark read {name}") } else { first.into() };
        let words: Vec<&str> = command.split_whitespace().collect();
        let answer = read(&inputs(&name), &options(&words));
        report::json::checks::conforms(&answer);
        let now = format!("{command}\n{}\n", screen(&answer, Width::columns(100)));
        if std::env::var_os("EARMARK_WRITE_ANSWERS").is_some() {
            fs::write(&path, &now).unwrap();
        } else if now != expected {
            wrong += &format!("== {}\n{now}\n", path.display());
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

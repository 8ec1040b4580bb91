//! The man pages: well-formed, and about everything that the header declares.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::{here, run};

fn pages() -> Vec<PathBuf> {
    let directory = here("../../../man");
    let mut pages: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    pages
}

#[test]
fn pages_are_well_formed() {
    assert!(!pages().is_empty());
    for page in pages() {
        // Pages of others are none of these; where a page comes from is no matter of style here.
        let mut lint = Command::new("mandoc");
        let said = lint.args(["-T", "lint", "-W", "warning"]).arg(&page);
        assert_eq!(run(said), "", "{}", page.display());
    }
}

#[test]
fn every_function_has_a_page() {
    let header = fs::read_to_string(here("include/earmark_mx.h")).unwrap();
    let all: String = pages().iter().map(|page| fs::read_to_string(page).unwrap()).collect();
    let mut count = 0;
    for line in header.lines() {
        // Declarations begin at the margin, and comments do not.
        if line.starts_with([' ', '#', '/', '}']) || !line.contains('(') {
            continue;
        }
        let before = line.split('(').next().unwrap();
        let name = before.rsplit([' ', '*']).next().unwrap();
        assert!(all.contains(&format!(".Fn {name}")), "{name} has no `.Fn` on a page in man/");
        count += 1;
    }
    assert!(count > 30, "{count} functions: is the header what it was?");
}

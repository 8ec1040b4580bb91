//! Files and functions that ARCHITECTURE and the promises name in backticks: they exist.

use super::problem::Problem;

/// The pages that are checked.
pub(super) const PAGES: [&str; 2] = ["ARCHITECTURE.md", "docs/promises.md"];

/// Checks a page; `files` are paths from the root of the repository, `code` is all Rust.
pub(super) fn check(page: &str, text: &str, files: &[String], code: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        for name in content.split('`').skip(1).step_by(2).flat_map(alternatives) {
            let is_there = if is_path(&name) {
                files.iter().any(|file| format!("/{file}").contains(&format!("/{name}")))
            } else if is_function(&name) {
                code.contains(&format!("fn {name}("))
            } else {
                continue;
            };
            if !is_there {
                let what = format!("`{name}` does not exist; name what is there now");
                problems.push(Problem { file: page.into(), line, what });
            }
        }
    }
    problems
}

/// `a/{b,c}.rs` names two files.
fn alternatives(name: &str) -> Vec<String> {
    let parts =
        name.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (inside, after))) = parts else { return vec![name.into()] };
    inside.split(',').map(|one| format!("{before}{one}{after}")).collect()
}

/// A file of Rust, or a directory with such files in it.
fn is_path(name: &str) -> bool {
    let is_directory = name.starts_with("crates/") || name.contains("/src/");
    !name.contains([' ', '*']) && (name.ends_with(".rs") || (is_directory && name.ends_with('/')))
}

/// The name of a test has more words than that of a system call.
fn is_function(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.chars().all(fits) && name.matches('_').count() > 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_found() {
        let files = [
            "crates/core/nic/src/link.rs".to_owned(),
            "crates/core/nic/src/old_port.rs".to_owned(),
        ];
        let text = "`nic/src/link.rs` and `nic/src/` and `nic/src/{link,port}.rs`\n\
                    `a_test_that_is` and `a_test_that_was`, `fi_cq_read`, `cargo xtask tidy`\n";
        let found: Vec<_> = check(PAGES[0], text, &files, "fn a_test_that_is() {}")
            .into_iter()
            .map(|problem| (problem.line, problem.what.split(' ').next().unwrap().to_owned()))
            .collect();
        assert_eq!(found, [(1, "`nic/src/port.rs`".into()), (2, "`a_test_that_was`".into())]);
    }
}

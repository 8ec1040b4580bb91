//! The list of fuzzers: each file that parses what others write is in it, with its target or with
//! the reason to have none.
//!
//! A file is taken to parse if it calls a decoder of serde, makes numbers of bytes, or has a
//! function that says it parses or decodes, outside of its tests.

use super::problem::Problem;
use super::source::Source;

/// The page with the list.
pub(super) const PAGE: &str = "fuzz/README.md";
/// The targets as cargo knows them.
pub(super) const MANIFEST: &str = "fuzz/Cargo.toml";

/// Code that parses.
const SIGNS: [&str; 8] = [
    "serde_json::from_",
    "toml::from_str",
    "postcard::from_bytes",
    "::from_be_bytes",
    "::from_le_bytes",
    "::from_ne_bytes",
    "fn parse",
    "fn decode",
];

/// How the two tables begin: of targets, and of files that have none.
const TARGETS: &str = "| target | files |";
const OTHERS: &str = "| files | why |";

/// Files that parse, with the first line that does, and targets that a test replays.
#[derive(Debug, Default)]
pub(super) struct Parsers {
    files: Vec<(String, usize)>,
    replayed: Vec<String>,
}

/// A row of the list: its line, its target, if it is of the first table, and its files.
type Row<'a> = (usize, Option<&'a str>, Vec<&'a str>);

impl Parsers {
    /// Looks at a file of Rust.
    pub(super) fn look(&mut self, source: &Source) {
        let calls = source.text.split("replay_corpus(\"").skip(1);
        self.replayed.extend(calls.filter_map(|call| Some(call.split_once('"')?.0.to_owned())));
        let is_test = ["tests.rs", "checks.rs"].iter().any(|end| source.name.ends_with(end));
        if is_test || !source.name.starts_with("crates/") || !source.name.contains("/src/") {
            return;
        }
        let code = source.code.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let first = code.lines().position(|line| SIGNS.iter().any(|sign| line.contains(sign)));
        self.files.extend(first.map(|line| (source.name.clone(), line + 1)));
    }

    /// Holds the page and the manifest against the code; `names` are all files, and `has_corpus`
    /// knows whether there are inputs of a target.
    pub(super) fn check(
        &self,
        page: &str,
        manifest: &str,
        names: &[String],
        has_corpus: impl Fn(&str) -> bool,
    ) -> Vec<Problem> {
        let rows = rows(page);
        let mut problems = Vec::new();
        let mut problem =
            |file: &str, line, what| problems.push(Problem { file: file.into(), line, what });
        let built = manifest
            .lines()
            .filter_map(|line| line.strip_prefix("path = \"fuzz_targets/")?.strip_suffix(".rs\""));
        let built: Vec<&str> = built.collect();
        for target in built.iter().filter(|it| !rows.iter().any(|row| row.1 == Some(**it))) {
            problem(PAGE, 1, format!("target {target} is missing; add a row with its files"));
        }
        for (line, target, files) in &rows {
            for file in files.iter().filter(|file| !names.iter().any(|it| is_of(it, file))) {
                problem(PAGE, *line, format!("{file} does not exist; name what is there now"));
            }
            let Some(target) = target else { continue };
            let is_replayed = self.replayed.iter().any(|replayed| replayed == target);
            for (is_so, what) in [
                (built.contains(target), format!("{target} is no target of {MANIFEST}")),
                (has_corpus(target), format!("{target} has no inputs in fuzz/corpus")),
                (is_replayed, format!("no test calls replay_corpus(\"{target}\", ...)")),
            ] {
                if !is_so {
                    problem(PAGE, *line, what);
                }
            }
        }
        let is_listed = |file: &str| rows.iter().flat_map(|row| &row.2).any(|it| is_of(file, it));
        for (file, line) in self.files.iter().filter(|(file, _)| !is_listed(file)) {
            let what = format!("it parses; name its fuzzer, or why it has none, in {PAGE}");
            problem(file, *line, what);
        }
        problems
    }
}

/// Whether a file is the one that is named, or is in the directory that is.
fn is_of(file: &str, named: &str) -> bool {
    file == named || named.ends_with('/') && file.starts_with(named)
}

/// The rows of both tables.
fn rows(page: &str) -> Vec<Row<'_>> {
    let (mut rows, mut is_first) = (Vec::new(), None);
    for (line, text) in (1..).zip(page.lines()) {
        if text.starts_with(TARGETS) || text.starts_with(OTHERS) {
            is_first = Some(text.starts_with(TARGETS));
        } else if !text.starts_with('|') {
            is_first = None;
        }
        let cells: Vec<&str> = text.split('|').map(str::trim).collect();
        let (target, files) = match (is_first, &cells[..]) {
            (Some(true), [_, target, files, ..]) => (Some(target.trim_matches('`')), *files),
            (Some(false), [_, files, ..]) => (None, *files),
            _ => continue,
        };
        let files: Vec<&str> = files.split('`').skip(1).step_by(2).collect();
        if !files.is_empty() {
            rows.push((line, target, files));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "| target | files | input |\n|---|---|---|\n";
    const MADE: &str = "[[bin]]\nname = \"a\"\npath = \"fuzz_targets/a.rs\"\n";
    const PARSER: &str = "fn f() {\n u16::from_be_bytes(b)\n}\n";

    /// What is wrong with a page, where there is a target `a`, replayed, and a parser `x/b.rs`.
    fn wrong(page: &str) -> Vec<String> {
        let mut parsers = Parsers::default();
        parsers.look(&Source::new("crates/x/src/b.rs", PARSER));
        parsers.look(&Source::new("crates/x/src/c.rs", "// fn parse\n#[cfg(test)]\nmod tests {}"));
        parsers.look(&Source::new("crates/x/tests/t.rs", "replay_corpus(\"a\", b); fn parse() {}"));
        let names = ["crates/x/src/b.rs".to_owned(), "crates/x/src/c.rs".to_owned()];
        let problems = parsers.check(page, MADE, &names, |target| target != "empty");
        problems.into_iter().map(|problem| format!("{}: {}", problem.line, problem.what)).collect()
    }

    #[test]
    fn a_complete_list_is_fine() {
        assert!(wrong(&format!("{HEAD}| `a` | `crates/x/src/b.rs` | |\n")).is_empty());
        let why = "| files | why |\n|---|---|\n| `crates/x/src/` | ours |\n";
        assert!(wrong(&format!("{HEAD}| `a` | `crates/x/src/c.rs` | |\n\n{why}")).is_empty());
    }

    #[test]
    fn what_is_missing_or_gone_is_found() {
        for (page, words) in [
            (String::new(), "1: target a is missing"),
            (format!("{HEAD}| `a` | `crates/x/src/c.rs` | |\n"), "2: it parses; name its fuzzer"),
            (format!("{HEAD}| `a` | `crates/x/src/d.rs` | |\n"), "3: crates/x/src/d.rs does not"),
            (format!("{HEAD}| `b` | `crates/x/src/` | |\n"), "3: b is no target"),
            (format!("{HEAD}| `b` | `crates/x/src/` | |\n"), "3: no test calls replay_corpus"),
            (format!("{HEAD}| `empty` | `crates/x/src/` | |\n"), "3: empty has no inputs"),
        ] {
            let problems = wrong(&page);
            assert!(problems.iter().any(|it| it.starts_with(words)), "{words}: {problems:?}");
        }
    }
}

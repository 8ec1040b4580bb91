//! Names of types: one of them stands in few crates, so that a word means one thing.

use std::collections::{BTreeMap, BTreeSet};

use super::problem::Problem;
use super::source::Source;

/// How many crates may have a type of the same name.
const MOST_CRATES: usize = 3;

/// What begins a type that has a name. An indented `type` belongs to a trait.
const KINDS: [&str; 5] = ["struct ", "enum ", "trait ", "union ", "type "];

/// The types of all files, by their names: the crate, the file and the line of each.
#[derive(Default)]
pub(super) struct Names(BTreeMap<String, Vec<(String, String, usize)>>);

impl Names {
    pub(super) fn look(&mut self, source: &Source) {
        let within = ["/src/", "/tests/", "/examples/", "/fuzz_targets/", "/benches/", "/build.rs"];
        let end = within.iter().filter_map(|part| source.name.find(part)).min();
        let Some(end) = end else { return };
        for (line, text) in (1..).zip(source.code.lines()) {
            if let Some(name) = type_name(text) {
                let place = (source.name[..end].to_owned(), source.name.clone(), line);
                self.0.entry(name.to_owned()).or_default().push(place);
            }
        }
    }

    pub(super) fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (name, places) in &self.0 {
            let crates: BTreeSet<&str> = places.iter().map(|(of, ..)| of.as_str()).collect();
            if crates.len() > MOST_CRATES {
                let all: Vec<&str> = crates.into_iter().collect();
                let what = format!(
                    "{name} is a type of {} crates, {MOST_CRATES} at most: {}",
                    all.len(),
                    all.join(", ")
                );
                let (_, file, line) = &places[0];
                problems.push(Problem { file: file.clone(), line: *line, what });
            }
        }
        problems
    }
}

/// The name of the type that a line declares.
fn type_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if let Some(visible) = rest.strip_prefix("pub") {
        rest = visible.trim_start();
        if rest.starts_with('(') {
            rest = rest.split_once(')')?.1.trim_start();
        }
    }
    rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let kind = KINDS.into_iter().find(|kind| rest.starts_with(kind))?;
    if kind == "type " && line.starts_with(' ') {
        return None;
    }
    let name = &rest[kind.len()..];
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    name.starts_with(char::is_uppercase).then(|| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_four_crates_is_found() {
        let mut names = Names::default();
        for (file, code) in [
            ("crates/core/nic/src/a.rs", "pub struct Port<F> {"),
            ("crates/core/nic/tests/b.rs", "struct Port;"),
            ("crates/mx/mx-io/src/c.rs", "    pub(crate) enum Port {"),
            ("fuzz/fuzz_targets/d.rs", "unsafe trait Port {}"),
        ] {
            names.look(&Source::new(file, code));
        }
        assert_eq!(names.check(), []);
        names.look(&Source::new(
            "xtask/src/e.rs",
            "impl A {\n    type Port = u8;\n}\n// struct Port",
        ));
        assert_eq!(names.check(), []);
        names.look(&Source::new("xtask/src/f.rs", "\ntype Port = u8;"));
        let problems = names.check();
        assert_eq!((problems.len(), problems[0].line), (1, 1));
        assert!(problems[0].what.starts_with("Port is a type of 4 crates, 3 at most: crates/core"));
    }
}

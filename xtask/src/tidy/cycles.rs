//! Files that import each other, so that neither can be read or moved without the other: none may.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;

use super::problem::Problem;
use crate::imports::{self, Cycle};

/// Checks every library and program of the workspace.
pub(super) fn check(metadata: &Value, root: &Path) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let packages = metadata["packages"].as_array().into_iter().flatten();
    for file in packages.flat_map(imports::roots) {
        let cycles = imports::cycles(&imports::read(&file)?);
        let directory = file.parent().unwrap_or(root);
        let directory = directory.strip_prefix(root).unwrap_or(directory).to_string_lossy();
        problems.extend(cycles.iter().filter_map(|cycle| problem(&directory, cycle)));
    }
    Ok(problems)
}

fn problem(directory: &str, cycle: &Cycle) -> Option<Problem> {
    let step = cycle.steps.first()?;
    let what = format!(
        "{} files import each other; move what one needs into a file of its own, below both:{}",
        cycle.files.len(),
        cycle.steps.iter().map(|step| format!("\n    {step}")).collect::<String>()
    );
    let line = step.names.values().min().copied().unwrap_or(1);
    Some(Problem { file: format!("{directory}/{}", step.from), line, what })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::imports::Step;

    #[test]
    fn a_cycle_is_a_problem_with_all_its_imports() {
        let names = BTreeMap::from([("Name".to_owned(), 7)]);
        let step =
            |from: &str, to: &str| Step { from: from.into(), to: to.into(), names: names.clone() };
        let files = ["w.rs", "x.rs"].map(str::to_owned).to_vec();
        let steps = vec![step("w.rs", "x.rs"), step("x.rs", "w.rs")];
        let found = problem("crates/a/src", &Cycle { files, steps, imports: Vec::new() }).unwrap();
        assert_eq!((&found.file[..], found.line), ("crates/a/src/w.rs", 7));
        for step in ["w.rs:7 imports Name of x.rs", "x.rs:7 imports Name of w.rs"] {
            assert!(found.what.contains(step), "{}", found.what);
        }
    }
}

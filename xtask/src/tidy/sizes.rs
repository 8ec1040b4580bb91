//! How wide and how long: what fits a screen and a head.

use super::problem::Problem;
use super::source::Source;

const MAX_COLUMNS: usize = 100;
const MAX_FILE: usize = 800;

/// Checks line width and file length; clippy checks the length of functions (`clippy.toml`).
pub(super) fn check(source: &Source) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut problem = |line, what| problems.push(Problem { file: source.name.clone(), line, what });
    for (line, text, prose) in lines(source) {
        // A string cannot be broken; what stands around it has to fit all the same.
        let columns = text.chars().count();
        let without_literals = prose.split_whitespace().map(|word| word.chars().count() + 1).sum();
        if columns > MAX_COLUMNS && (text == prose || MAX_COLUMNS < without_literals) {
            problem(line, format!("{columns} columns; break the line before {MAX_COLUMNS}"));
        }
    }
    let lines = source.text.lines().count();
    if lines > MAX_FILE {
        problem(1, format!("{lines} lines; split the file by subject, {MAX_FILE} at most"));
    }
    problems
}

fn lines(source: &Source) -> impl Iterator<Item = (usize, &str, &str)> {
    let pairs = source.text.lines().zip(source.prose.lines());
    (1..).zip(pairs).map(|(number, (text, prose))| (number, text, prose))
}

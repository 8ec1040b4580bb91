//! How wide and how long: what fits a screen and a head.

use super::problem::Problem;
use super::source::Source;

const MAX_COLUMNS: usize = 100;
const MAX_FUNCTION: usize = 70;
const MAX_FILE: usize = 800;

/// Checks line width, function length and file length.
pub(super) fn check(source: &Source) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut problem = |line, what| problems.push(Problem { file: source.name.clone(), line, what });
    for (line, text, prose) in lines(source) {
        // Nobody can break a string; whatever stands around it has to fit all the same.
        let columns = text.chars().count();
        let without_literals = prose.split_whitespace().map(|word| word.chars().count() + 1).sum();
        if columns > MAX_COLUMNS && (text == prose || MAX_COLUMNS < without_literals) {
            problem(line, format!("{columns} columns; break the line before {MAX_COLUMNS}"));
        }
    }
    for function in functions(&source.code) {
        if function.lines > MAX_FUNCTION {
            let Function { name, line, lines } = function;
            let what = format!("fn {name} has {lines} lines; split it, {MAX_FUNCTION} at most");
            problem(line, what);
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

#[derive(Debug, PartialEq, Eq)]
struct Function<'a> {
    name: &'a str,
    line: usize,
    lines: usize,
}

/// Every function with a body, nested ones included.
fn functions(code: &str) -> Vec<Function<'_>> {
    let starts = code.match_indices("fn ");
    starts.filter_map(|(at, _)| function(code, at)).collect()
}

fn function(code: &str, at: usize) -> Option<Function<'_>> {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    if code[..at].ends_with(in_name) {
        return None;
    }
    let signature = code[at + 3..].trim_start();
    let name = &signature[..signature.find(|c| !in_name(c)).unwrap_or(signature.len())];
    if name.is_empty() {
        return None; // the type of a function
    }
    let end = body_end(&code[at..])?;
    let line = 1 + code[..at].matches('\n').count();
    Some(Function { name, line, lines: 1 + code[at..at + end].matches('\n').count() })
}

/// Where the brace that closes the body is; a function without a body ends at a semicolon.
fn body_end(code: &str) -> Option<usize> {
    let (mut nested, mut braces) = (0_usize, 0_usize);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => nested += 1,
            ')' | ']' => nested = nested.saturating_sub(1),
            ';' if nested == 0 && braces == 0 => return None,
            '{' => braces += 1,
            '}' if braces <= 1 => return Some(at),
            '}' => braces -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<usize> {
        check(&Source::new("a.rs", text)).iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn wide_lines_are_found() {
        assert!(problems(&format!("// {}", "a".repeat(97))).is_empty());
        assert_eq!(problems(&format!("\n// {}", "a".repeat(98))), [2]);
        assert_eq!(problems(&format!("let {} = 1;", "a".repeat(98))), [1]);
        assert!(problems(&format!("let a = \"{}\";", "a".repeat(98))).is_empty());
        assert_eq!(problems(&format!("let a = \"b\"; // {}", "a".repeat(98))), [1]);
    }

    #[test]
    fn long_functions_are_found() {
        let body = |lines: usize| format!("\nfn a() {{\n{}}}\n", "b();\n".repeat(lines));
        assert!(problems(&body(68)).is_empty());
        assert_eq!(problems(&body(69)), [2]);
    }

    #[test]
    fn long_files_are_found() {
        assert!(problems(&"\n".repeat(800)).is_empty());
        assert_eq!(problems(&"\n".repeat(801)), [1]);
    }

    #[test]
    fn functions_are_counted_from_signature_to_brace() {
        let code = "trait A {\n fn b(&self) -> [u8; 2];\n fn c(d: fn (u8)) {\n {}\n }\n}\n";
        assert_eq!(functions(code), [Function { name: "c", line: 3, lines: 3 }]);
    }
}

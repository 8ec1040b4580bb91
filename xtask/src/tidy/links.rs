//! Links from one document to another.

use super::problem::Problem;

/// Checks the relative links of a Markdown file; `exists` knows whether there is such a file.
pub(super) fn check(name: &str, text: &str, exists: impl Fn(&str) -> bool) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut in_code = false;
    for (line, content) in (1..).zip(text.lines()) {
        if content.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for link in relative_links(content) {
            if !exists(link) {
                let what = format!("{link} does not exist; correct the link or add the file");
                problems.push(Problem { file: name.into(), line, what });
            }
        }
    }
    problems
}

/// Targets of Markdown links and HTML references in one line, without what follows `#`.
fn relative_links(line: &str) -> Vec<&str> {
    let mut links = Vec::new();
    for (start, end) in [("](", ')'), ("src=\"", '"'), ("href=\"", '"')] {
        for (at, _) in line.match_indices(start) {
            let target = &line[at + start.len()..];
            let target = &target[..target.find(end).unwrap_or(target.len())];
            let file = target.split([' ', '#']).next().unwrap_or_default();
            if !file.is_empty() && !file.contains(':') {
                links.push(file);
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dead_links_are_found() {
        let text = "[a](b.md#c) [d](https://e.f/g)\n[h](gone.md)\n<img src=\"lost.svg\">\n";
        let lines: Vec<_> = check("a.md", text, |link| link == "b.md")
            .iter()
            .map(|problem| (problem.line, problem.what.split(' ').next().unwrap().to_owned()))
            .collect();
        assert_eq!(lines, [(2, "gone.md".into()), (3, "lost.svg".into())]);
    }

    #[test]
    fn code_and_anchors_are_no_links() {
        assert!(check("a.md", "```text\n[a](b)\n```\n[c](#d)\n", |_| false).is_empty());
    }
}

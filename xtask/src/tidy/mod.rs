//! House rules that no compiler checks. Each problem names its place and what to do about it.

mod fuzzers;
mod layers;
mod links;
mod map;
mod names;
mod problem;
mod sizes;
mod source;
mod words;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::repo;
use fuzzers::Parsers;
use names::Names;
use problem::Problem;
use source::Source;

/// Fails with a list of all problems, if there are any.
pub(crate) fn run() -> Result<()> {
    let (files, problems) = check(repo::root())?;
    if problems.is_empty() {
        println!("{files} files are tidy");
        return Ok(());
    }
    for problem in &problems {
        println!("{problem}");
    }
    bail!("{} places are not tidy", problems.len());
}

/// Checks the repository at `root`: how many files there are, and what is wrong with them.
fn check(root: &Path) -> Result<(usize, Vec<Problem>)> {
    let metadata = repo::metadata()?;
    let mut problems = layers::check_directions(&metadata);
    let files = repo::files(root, &["rs", "md", "toml", "html", "css", "yml"])?;
    let (mut names, mut code, mut parsers) = (Vec::new(), String::new(), Parsers::default());
    let mut types = Names::default();
    for path in &files {
        let text = fs::read_to_string(path).with_context(|| format!("reading {path:?}"))?;
        let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
        problems.extend(words::check_paths(&name, &text));
        if name.ends_with(".rs") {
            let source = Source::new(&name, &text);
            problems.extend(layers::check(&source));
            problems.extend(sizes::check(&source));
            problems.extend(words::check(&source));
            if name != words::FILE {
                problems.extend(words::check_style(&name, &text, Some(&source)));
            }
            parsers.look(&source);
            types.look(&source);
            code += &source.code;
        } else if name.ends_with(".md") {
            problems.extend(words::check_style(&name, &text, None));
            problems.extend(links::check(&name, &text, |link| {
                path.parent().is_some_and(|directory| directory.join(link).exists())
            }));
        }
        names.push(name.into_owned());
    }
    problems.extend(types.check());
    let read = |name: &str| fs::read_to_string(root.join(name)).context(name.to_owned());
    for page in map::PAGES {
        problems.extend(map::check(page, &read(page)?, &names, &code));
    }
    let has_corpus = |target: &str| {
        let inputs = fs::read_dir(root.join("fuzz/corpus").join(target));
        inputs.is_ok_and(|mut inputs| inputs.next().is_some())
    };
    let (page, manifest) = (read(fuzzers::PAGE)?, read(fuzzers::MANIFEST)?);
    problems.extend(parsers.check(&page, &manifest, &names, has_corpus));
    Ok((files.len(), problems))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_is_tidy() {
        let (files, problems) = check(repo::root()).unwrap();
        assert!(files > 0);
        let list: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
        assert!(problems.is_empty(), "{} places are not tidy:\n{list}", problems.len());
    }
}

//! Words that must not appear, everywhere or somewhere.

use super::layers::core_of;
use super::problem::Problem;
use super::source::{Source, lines_with};

/// Words that make the core depend on a machine, a moment or a rounding.
const NOT_IN_THE_CORE: [(&str, &str); 8] = [
    ("Instant::now", "take `now` as an argument"),
    ("SystemTime", "take `now` as an argument"),
    ("HashMap", "its order differs from run to run; use a Vec or a BTreeMap"),
    ("HashSet", "its order differs from run to run; use a Vec or a BTreeSet"),
    ("f32", "decide with integers"),
    ("f64", "decide with integers"),
    ("static mut", "keep state in the type that it belongs to"),
    ("thread_rng", "take the generator as an argument"),
];

/// Words that say that something is not done; clippy knows more of them.
const NOT_ANYWHERE: [&str; 2] = ["#[ignore", "FIXME"];

/// Directories at the root of one machine or another.
const MACHINE_DIRECTORIES: [&str; 4] = ["work", "root", "home", "Users"];

/// The crates that may use `unsafe`, each block with its reason: those that ARCHITECTURE.md names.
const UNSAFE: [&str; 7] = [
    "crates/linux/sys/",
    "crates/linux/tracepoints/",
    "crates/hosts/vhost/",
    "crates/mx/mx-io/",
    "crates/hosts/lab/",
    "crates/mx/provider/",
    "crates/mx/capi/",
];

/// Checks the words of one file of Rust.
pub(super) fn check(source: &Source) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut look = |text: &str, word: &str, advice: &str| {
        for line in lines_with(text, word) {
            let what = format!("{word}: {advice}");
            problems.push(Problem { file: source.name.clone(), line, what });
        }
    };
    if core_of(&source.name).is_some() {
        for (word, advice) in NOT_IN_THE_CORE {
            look(&source.code, word, advice);
        }
    }
    if !UNSAFE.iter().any(|allowed| source.name.starts_with(allowed)) {
        look(
            &source.code,
            "unsafe",
            "only crates that talk to the system or to C use it; call it from one of them",
        );
    }
    for word in NOT_ANYWHERE {
        look(&source.prose, word, "finish it, or open an issue and take it out");
    }
    problems
}

/// Checks a file of any kind for paths that exist on one machine only.
pub(super) fn check_paths(name: &str, text: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        for directory in MACHINE_DIRECTORIES {
            if has_absolute_path(content, &format!("/{directory}/")) {
                let what = format!("a path of one machine (/{directory}); write it from the root");
                problems.push(Problem { file: name.into(), line, what });
            }
        }
    }
    problems
}

fn has_absolute_path(line: &str, start: &str) -> bool {
    line.match_indices(start).any(|(at, _)| {
        // Inside a longer path or an address it is nobody's root.
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-~}/*".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(name: &str, text: &str) -> Vec<String> {
        let problems = check(&Source::new(name, text));
        problems.iter().map(|problem| problem.what.split(": ").next().unwrap().into()).collect()
    }

    #[test]
    fn each_word_is_found_in_the_core() {
        for (word, _) in NOT_IN_THE_CORE {
            let text = format!("\nlet a = {word};");
            assert_eq!(words("crates/core/nic/src/a.rs", &text), [word]);
            assert!(words("crates/hosts/lab/src/a.rs", &text).is_empty());
            assert!(words("crates/core/nic/src/a.rs", &format!("// {word}")).is_empty());
        }
    }

    #[test]
    fn unsafe_outside_its_crate_is_found() {
        assert_eq!(words("crates/earmark/src/a.rs", "unsafe { a() }"), ["unsafe"]);
        assert!(words("crates/hosts/lab/src/a.rs", "unsafe { a() }").is_empty());
        assert!(words("crates/core/nic/src/lib.rs", "#![forbid(unsafe_code)]").is_empty());
    }

    #[test]
    fn unfinished_work_is_found() {
        for word in NOT_ANYWHERE {
            assert_eq!(words("xtask/src/a.rs", &format!("// {word}")), [word]);
            assert!(words("xtask/src/a.rs", &format!("let a = \"{word}\";")).is_empty());
        }
    }

    #[test]
    fn machine_paths_are_found() {
        for directory in MACHINE_DIRECTORIES {
            let text = format!("fine\nsee /{directory}/me/x\n");
            let problems = check_paths("README.md", &text);
            assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [2]);
            let inside = format!("https://host/{directory}/x and a/{directory}/b");
            assert!(check_paths("README.md", &inside).is_empty());
        }
    }
}

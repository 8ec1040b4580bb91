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

/// Floats may be in what is only printed.
const PRINTED: &str = "crates/core/base/src/quantiles.rs";

/// Words that say that something is not done; clippy knows more of them.
const NOT_ANYWHERE: [&str; 2] = ["#[ignore", "FIXME"];

/// The list of them, which is not checked for them.
pub(super) const FILE: &str = "xtask/src/tidy/words.rs";

/// Words with a manner, in text and in names, and what kernel and protocol engineers write.
const REJECTED: [(&str, &str); 10] = [
    ("told", "reported, printed, given"),
    ("whom", "the host, the caller, the peer"),
    ("whoever", "any process that"),
    ("nobody", "no process, no host, no user"),
    ("everybody", "all hosts, any user"),
    ("torment", "stress-test"),
    ("wishes", "options, requests"),
    ("mend", "repair, reconnect"),
    ("deed", "action"),
    ("deeds", "actions"),
];

/// The same, in names alone: a part of one, as it is written in `snake_case`, or in capitals.
const REJECTED_NAMES: [(&str, &str); 9] = [
    ("story", "what it is: sequence, narration, description"),
    ("stories", "what they are"),
    ("Life", "options, state, lifetime"),
    ("Said", "output, answer, reply"),
    ("Heard", "received, input"),
    ("DOUBT", "a penalty: of what?"),
    ("VAGUE", "a width: of what?"),
    ("TELLING", "a threshold: of what?"),
    ("SURER", "a margin: of what?"),
];

/// Directories at the root of one machine or another.
const MACHINE_DIRECTORIES: [&str; 4] = ["work", "root", "home", "Users"];

/// The crates that may use `unsafe`, each block with its reason: those that ARCHITECTURE.md names.
const UNSAFE: [&str; 9] = [
    "crates/linux/sys/",
    "crates/linux/preload/",
    "crates/linux/flows/tests/",
    "crates/hosts/vhost/",
    "crates/mx/mx-io/",
    "crates/hosts/lab/",
    "crates/mx/provider/",
    "crates/mx/capi/",
    "crates/tools/page/src/abi.rs",
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
    if core_of(&source.name).is_some() && source.name != PRINTED {
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

/// Checks the text of a file of Rust or of a document for [`REJECTED`] words, and a file of Rust
/// for such names and for doc comments that say nothing.
pub(super) fn check_style(name: &str, text: &str, source: Option<&Source>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut problem = |line, what| problems.push(Problem { file: name.into(), line, what });
    for (line, content) in (1..).zip(text.lines()) {
        let lower = content.to_lowercase();
        for (word, better) in REJECTED.iter().filter(|(word, _)| lower.contains(word)) {
            // Fields of JSON and users of Unix keep their names.
            let content = content.replace(&format!("\"{word}\""), "");
            if has_part(&content.replace(&format!("`{word}`"), ""), word) {
                problem(line, format!("{word}: write {better}"));
            }
        }
    }
    let Some(source) = source else { return problems };
    for (line, content) in (1..).zip(source.code.lines()) {
        let in_line = REJECTED_NAMES.iter().filter(|(word, _)| has_part(content, word));
        in_line.for_each(|(word, better)| problem(line, format!("{word} as a name: {better}")));
    }
    for (line, words) in docs(&source.prose) {
        if words.split_whitespace().count() < 3 {
            problem(line, format!("`{}`: say what it is, unit, range; or drop it", words.trim()));
        }
    }
    problems
}

/// Whether a word stands in a line, alone or as a part of a name: `ThisName` and `this_name` have
/// two parts each. One that is written with a capital is meant so.
fn has_part(line: &str, word: &str) -> bool {
    let is_exact = word.starts_with(char::is_uppercase);
    let text = if is_exact { line.to_owned() } else { line.to_lowercase() };
    // Where lengths differ the places do, too.
    text.len() == line.len()
        && text.match_indices(word).any(|(at, _)| {
            let (before, after) = (line[..at].chars().next_back(), &line[at + word.len()..]);
            let (first, next) = (line[at..].chars().next(), after.chars().next());
            let begins = first.is_some_and(char::is_uppercase)
                || before.is_none_or(|c| !c.is_alphanumeric());
            let ends = next.is_none_or(|c| !c.is_alphanumeric() || c.is_uppercase());
            begins && ends
        })
}

/// The first line of each doc comment, and its words.
fn docs(prose: &str) -> Vec<(usize, String)> {
    let (mut docs, mut is_open) = (Vec::<(usize, String)>::new(), false);
    for (line, content) in (1..).zip(prose.lines()) {
        let content = content.trim_start();
        let words = content.strip_prefix("///").or_else(|| content.strip_prefix("//!"));
        match (words, docs.last_mut()) {
            (Some(words), Some((_, all))) if is_open => {
                all.push(' ');
                all.push_str(words);
            }
            (Some(words), _) => docs.push((line, words.to_owned())),
            (None, _) => {}
        }
        is_open = words.is_some();
    }
    docs
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
        // Inside a longer path or an address it is no root.
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
    fn words_with_a_manner_and_docs_without_meaning_are_found() {
        let lines = |text: &str| -> Vec<usize> {
            let source = Source::new("a.rs", text);
            check_style("a.rs", text, Some(&source)).iter().map(|it| it.line).collect()
        };
        for (word, _) in REJECTED {
            for text in [format!("// a {word} b"), format!("fn is_{word}() {{}}")] {
                assert_eq!(lines(&text), [1], "{text}");
            }
            let others = format!("// a{word}b `{word}`\nlet a = \"{word}\";");
            assert!(lines(&others).is_empty(), "{word}");
        }
        for (word, _) in REJECTED_NAMES {
            assert_eq!(lines(&format!("struct A{{ {word}: u8 }}")), [1], "{word}");
            assert!(lines(&format!("// {word}\nlet a = \"{word}\";")).is_empty(), "{word}");
        }
        assert_eq!(lines("enum StoryLine {}\nstruct Lifetime;\nfn said() {}"), [1]);
        assert_eq!(lines("/// It.\nx: u8,\n    /// A frame.\n//! What it is.\n"), [1]);
        assert_eq!(lines("    /// A frame.\n\n/// Bytes of\n/// it.\n// It.\n"), [1]);
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

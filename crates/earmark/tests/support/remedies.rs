//! The command lines that Earmark prints in errors and hints, from the texts in its sources.
//!
//! One is what stands `like this`, or behind a colon, and begins with the name of a program; it
//! ends with its clause, as [`report::terminal::clause`] has it. What a text fills in is a value of
//! [`FILLED`] here.

use std::fs;
use std::path::{Path, PathBuf};

/// What stands for the fields of a text, and for its words in capitals.
const FILLED: &[(&str, &str)] = &[
    ("{name}", "eth0"),
    ("{device}", "eth0"),
    ("{interface}", "eth0"),
    ("--port {port}", "--port 7"),
    ("--port PORT", "--port packet:eth0"),
    ("--by-hash ADDRESS", "--by-hash 10.0.0.2"),
    ("{file}", "this.toml"),
    ("{what}", "apply eth0 rx-usecs 0"),
    ("{port}", "eth0"),
    ("{lab}", "lab"),
    ("{user}", "1000"),
    ("{flags}", ""),
    ("{flag}", ""),
    ("{adaptive}", "adaptive-rx off "),
    ("{off}", "rx-usecs 0 rx-frames 1"),
    ("{one}", " rx-frames 1"),
    ("{names}", "rx-usecs"),
    ("{named}", "&machine=server"),
    ("adaptive-rx off {setting}", "adaptive-rx off rx-usecs 25"),
    ("{setting}", "rx-usecs"),
    ("{key}", "rx-usecs"),
    ("{parameter}", "rx-usecs"),
    ("{wanted}", "25"),
    ("{usecs}", "25"),
    ("{value}", "25"),
    ("{ours}", "rx-usecs 25"),
    ("{directory}", "/run/earmark"),
    ("{PRIORITY}", "5"),
    ("{rules}", "tcp-port=11211"),
    ("{format}", "link"),
    ("{address}", "10.9.0.2"),
    ("{host}", "10.9.0.2"),
    ("{code}", "--code ABCD-EFGH-JKLM-NPQR"),
    ("{seed}", "7"),
    ("{mtu}", "1500"),
    ("{most}", "4"),
    ("{path}", "file"),
    ("{program}", "file"),
    ("{package}", "ethtool"),
    ("{switch}", "on"),
    ("{kind}", "tcp4"),
    ("{series}", "6.12"),
    ("--suite SUITE", "--suite trixie-backports"),
    ("IFACE", "eth0"),
    ("DEV", "eth0"),
];

/// The programs whose command lines are looked for.
const PROGRAMS: [&str; 8] =
    ["earmark", "ip", "ethtool", "sysctl", "chmod", "apt-get", "modprobe", "udevadm"];

/// A command line as a user would type it, and where it is from.
#[derive(Debug)]
pub(crate) struct Remedy {
    pub(crate) file: PathBuf,
    pub(crate) line: String,
    /// A sentence names it, and leaves out what does not matter to it.
    pub(crate) is_named: bool,
}

/// All of them.
pub(crate) fn remedies() -> Vec<Remedy> {
    let mut files = Vec::new();
    let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    collect(crates, false, &mut files);
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let source = source.split("#[cfg(test)]\nmod tests").next().unwrap();
        for text in literals(source) {
            let file = file.strip_prefix(crates).unwrap().to_owned();
            found.extend(commands(&text).map(|(line, is_named)| {
                let file = file.clone();
                Remedy { file, line: filled(line), is_named }
            }));
        }
    }
    found
}

fn collect(directory: &Path, is_source: bool, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            let is_source = is_source || name == "src";
            // The tests of a crate are beside its sources.
            if is_source || !["tests", "target", "examples"].contains(&name) {
                collect(&path, is_source, into);
            }
        } else if is_source && name.ends_with(".rs") && !name.ends_with("tests.rs") {
            into.push(path);
        }
    }
}

/// The commands of a text, and whether a sentence only names them.
fn commands(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let quoted = text.split('`').skip(1).step_by(2).map(|it| (it, true));
    let prose = text.split('`').step_by(2);
    let behind_colons = prose.flat_map(|part| {
        let clauses = part.split(": ").skip(1);
        clauses.map(|clause| (report::terminal::clause(clause), false))
    });
    let is_command = |line: &str| {
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        line.split_once(' ').is_some_and(|(program, _)| PROGRAMS.contains(&program))
    };
    quoted.chain(behind_colons).filter(move |(line, _)| is_command(line))
}

fn filled(line: &str) -> String {
    let filled = |line: String, (field, value): &(&str, &str)| line.replace(field, value);
    FILLED.iter().fold(line.trim().to_owned(), filled)
}

/// The string literals of a source, without comments; lines that go on are joined.
fn literals(source: &str) -> Vec<String> {
    let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = code.flat_map(|line| [line, "\n"]).collect::<String>().replace("'\"'", "");
    let mut texts = Vec::new();
    let mut rest = code.as_str();
    while let Some((_, behind)) = rest.split_once('"') {
        let (mut text, mut characters) = (String::new(), behind.char_indices());
        let end = loop {
            match characters.next() {
                None => break behind.len(),
                Some((at, '"')) => break at + 1,
                Some((_, '\\')) => match characters.next() {
                    Some((at, '\n')) => {
                        let indent = behind[at + 1..].len() - behind[at + 1..].trim_start().len();
                        characters.by_ref().take(indent).for_each(drop);
                    }
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, other)) => text.push(other),
                    None => break behind.len(),
                },
                Some((_, other)) => text.push(other),
            }
        };
        texts.push(text);
        rest = &behind[end..];
    }
    texts
}

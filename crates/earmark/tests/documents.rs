//! What the documents say one can type: the command takes it, and the settings of `nic set` work in
//! the printed order.

use std::path::{Path, PathBuf};

use clap::Parser;
use clap::error::ErrorKind;
use earmark::cli::Cli;

mod common;
use common::{EARMARK, Lab};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The documents for users, by name.
fn documents() -> Vec<(String, String)> {
    let root = repository();
    let pages = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        pages.filter(|path| path.extension().is_some_and(|ext| ext == "md")).collect();
    paths.extend(["README.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    paths.sort();
    paths
        .iter()
        .map(|path| (path.file_name().unwrap().to_str().unwrap().into(), read(path)))
        .collect()
}

/// The text without its code blocks, and the lines of these, continued ones joined.
fn divide(text: &str) -> (String, Vec<String>) {
    let (mut prose, mut blocks) = (String::new(), String::new());
    for (number, part) in text.split("```").enumerate() {
        if number % 2 == 0 { &mut prose } else { &mut blocks }.push_str(part);
    }
    (prose, blocks.replace("\\\n", " ").lines().map(str::to_owned).collect())
}

/// The command behind a prompt such as `$ ` or `peer$ `, or the line itself.
fn typed(line: &str) -> &str {
    match line.split_once("$ ") {
        Some((name, command)) if name.chars().all(char::is_alphanumeric) => command,
        _ => line,
    }
}

/// The words of the one `earmark` command of a line, without comment and redirections; what stands
/// for a pairing code is one.
fn words(line: &str) -> Option<Vec<String>> {
    let words = shlex::split(&line.replace("--code CODE", "--code ABCD-EFGH-JKLM-NPQR"))?;
    let words = words.strip_prefix(&["sudo".to_owned()]).unwrap_or(&words);
    let ends = |word: &String| ["|", ">", "&&", ";", "&"].contains(&word.as_str());
    let command: Vec<_> = words.iter().take_while(|word| !ends(word)).cloned().collect();
    (command.first()? == "earmark" && command.len() > 1).then_some(command)
}

#[test]
fn every_command_of_a_code_block_is_taken() {
    let (mut taken, mut wrong) = (0, Vec::new());
    for (name, text) in documents() {
        for command in divide(&text).1.iter().filter_map(|line| words(typed(line))) {
            match Cli::try_parse_from(&command) {
                Ok(_) => taken += 1,
                Err(error) if error.kind() == ErrorKind::DisplayVersion => taken += 1,
                Err(error) => wrong.push(format!("{name}: {}\n{error}", command.join(" "))),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(taken > 60, "only {taken} commands were found");
}

#[test]
fn every_command_in_a_sentence_is_known() {
    // Sentences leave out what does not matter to them, and use names for values.
    let fine = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::MissingSubcommand,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
        ErrorKind::InvalidValue,
        ErrorKind::ValueValidation,
        ErrorKind::TooFewValues,
    ];
    let (mut known, mut wrong) = (0, Vec::new());
    for (name, text) in documents() {
        let prose = divide(&text).0.replace('\n', " ");
        let spans = prose.split('`').skip(1).step_by(2);
        for command in
            spans.filter(|span| !span.contains('[') && !span.contains("COMMAND")).filter_map(words)
        {
            match Cli::try_parse_from(command.iter().filter(|word| *word != "...")) {
                Err(error) if !fine.contains(&error.kind()) => {
                    wrong.push(format!("{name}: {}\n{error}", command.join(" ")));
                }
                _ => known += 1,
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(known > 30, "only {known} commands were found");
}

/// The part of a page below a heading.
fn section(page: &str, heading: &str) -> String {
    let text = read(&repository().join("docs").join(page));
    let (_, rest) = text.split_once(&format!("{heading}\n")).expect("the page has the heading");
    rest.split("\n#").next().unwrap().to_owned()
}

#[test]
fn the_knobs_turn_in_the_order_printed_whatever_the_lab_began_with() {
    let settings = section("settings.md", "## Settings");
    let rows = settings.lines().skip_while(|line| !line.starts_with("| strategy"));
    let rows =
        rows.take_while(|line| line.starts_with('|')).filter_map(|line| line.split('`').nth(1));
    // A driver decides by the registers of a card, which these hosts have not.
    let is_strategy = |name: &&str| name.parse::<nic::moderation::Moderation>().is_ok();
    let strategies: Vec<_> = rows.filter(is_strategy).filter(|name| *name != "driver").collect();
    assert!(strategies.len() >= 8, "{strategies:?}");
    let knobs = section("lab.md", "## Change the NIC while traffic flows");
    let commands: Vec<_> = divide(&knobs).1.iter().filter_map(|line| words(typed(line))).collect();
    assert!(commands.len() >= 6, "{commands:?}");
    for strategy in strategies {
        let lane: &[&str] = match strategy {
            "lane" => &["--lane", "length<=512", "--queues", "2"],
            _ => &[],
        };
        let mut lab = Lab::start(&[&["--strategy", strategy], lane].concat());
        for command in &commands {
            let mut typed = vec![EARMARK];
            typed.extend(command[1..].iter().map(String::as_str));
            if command[2] == "watch" {
                typed.extend(["--count", "1", "--interval", "0.01"]);
            }
            let (status, text) = lab.ask(&shlex::try_join(typed).unwrap());
            assert_eq!(status, 0, "from {strategy}, {}: {text}", command.join(" "));
        }
        lab.end().output();
    }
}

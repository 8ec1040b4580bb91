//! Reading the command line: words that shells offer, and numbers that are none.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write, stderr, stdout};

use bench::suggestions::legible;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches};
use report::output;
use report::terminal::Width;

use crate::cli::Cli;
use crate::help;

/// The command line of this process; a wrong one ends it with a message, and so does `--help`.
#[must_use]
pub(crate) fn read() -> Cli {
    // Help, which errors have parts of, is made only if it is printed.
    let read = parse(std::env::args_os()).or_else(|_| {
        let complete = help::complete(command(), Width::of_output());
        read_by(help::unbroken(complete), std::env::args_os())
    });
    read.unwrap_or_else(|error| match print(&error) {
        Err(unwritten) if !error.use_stderr() => output::end(unwritten),
        _ => std::process::exit(error.exit_code()),
    })
}

/// A command line, from the program's name on.
pub(crate) fn parse<W: Into<OsString> + Clone>(
    words: impl Iterator<Item = W>,
) -> Result<Cli, clap::Error> {
    read_by(command(), words)
}

fn read_by<W: Into<OsString> + Clone>(
    command: Command,
    words: impl Iterator<Item = W>,
) -> Result<Cli, clap::Error> {
    let matches = command.try_get_matches_from(words);
    let read = matches.and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    read.map_err(legible)
}

/// Prints help or an error, in lines that fit.
fn print(error: &clap::Error) -> io::Result<()> {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    let (mut out, mut err) = (stdout(), stderr());
    let is_terminal = if error.use_stderr() { err.is_terminal() } else { out.is_terminal() };
    let text = error.render();
    let text = if is_terminal && may_have_colours() {
        help::plain(&text.ansi().to_string())
    } else {
        help::plain(&text.to_string())
    };
    // Help is wrapped already.
    let text = if is_help { text } else { Width::of_errors().fold(&text) };
    let to: &mut dyn Write = if error.use_stderr() { &mut err } else { &mut out };
    to.write_all(text.as_bytes())
}

/// Whether the environment lets a terminal have colours.
fn may_have_colours() -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    set("NO_COLOR").is_none() && set("TERM").is_some_and(|term| term != "dumb")
}

/// The command with all its help, for manual pages and completions.
pub(crate) fn documented() -> Command {
    help::complete(command(), Width::columns(100))
}

/// The command, with negative numbers as values everywhere: where they are wrong, the parser of the
/// value says so, and not that `-1` is an unknown option.
fn command() -> Command {
    with_negative_numbers(Cli::command())
}

fn with_negative_numbers(command: Command) -> Command {
    let names: Vec<String> =
        command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let command = command.mut_args(|arg| {
        let takes = arg.get_action().takes_values() && !arg.is_allow_hyphen_values_set();
        if takes { arg.allow_negative_numbers(true) } else { arg }
    });
    let each = |command: Command, name| command.mut_subcommand(name, with_negative_numbers);
    names.into_iter().fold(command, each)
}

#[cfg(test)]
#[path = "../tests/support/documents.rs"]
pub(crate) mod documents;

#[cfg(test)]
#[path = "../tests/support/remedies.rs"]
mod remedies;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use clap::Parser;
    use clap::error::ErrorKind;

    use super::documents::{divide, words};
    use super::*;

    #[test]
    fn the_command_is_a_sound_one() {
        command().debug_assert();
    }

    /// The standard library's own errors are for programmers.
    #[test]
    fn no_option_answers_in_words_of_the_standard_library() {
        fn each(command: &Command, path: &[String], wrong: &mut Vec<String>) {
            for arg in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
                let mut words = path.to_vec();
                words.extend(arg.get_long().map(|long| format!("--{long}=?")));
                if arg.get_long().is_none() {
                    words.push("?".to_owned());
                }
                let Err(error) = parse(words.iter()) else { continue };
                let text = error.to_string();
                let is_raw = ["invalid digit", "literal", "syntax", "provided string", "parse "];
                if is_raw.iter().any(|raw| text.contains(raw)) {
                    wrong.push(format!("{}: {text}", words.join(" ")));
                }
            }
            for below in command.get_subcommands() {
                each(below, &[path, &[below.get_name().to_owned()]].concat(), wrong);
            }
        }
        let mut wrong = Vec::new();
        each(&command(), &["earmark".to_owned()], &mut wrong);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn every_command_that_is_printed_is_taken() {
        let (mut taken, mut wrong) = (0, Vec::new());
        let is_ours = |it: &&remedies::Remedy| it.line.contains("earmark ");
        for remedy in remedies::remedies().iter().filter(is_ours) {
            let line = remedy.line.replace("earmark guest-init", "");
            let line = line.rsplit("| ").next().unwrap_or_default();
            let read = words(line).map(|words| parse(words.iter().filter(|word| *word != "...")));
            match read {
                Some(Ok(cli)) => {
                    taken += 1;
                    if let crate::cli::Command::Apply(args) = cli.command
                        && let Err(why) = tune::Change::parse(&args.settings)
                    {
                        wrong.push(format!("{}: {line}\n{why}", remedy.file.display()));
                    }
                }
                Some(Err(error)) if remedy.is_named && PARTIAL.contains(&error.kind()) => {
                    taken += 1;
                }
                Some(Err(error)) => {
                    wrong.push(format!("{}: {line}\n{error}", remedy.file.display()));
                }
                None => wrong.push(format!("{}: {line}", remedy.file.display())),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(taken > 80, "only {taken} commands were found");
    }

    /// Errors of commands that a sentence only names.
    const PARTIAL: [ErrorKind; 3] = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::MissingSubcommand,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];

    /// The documents for users, by name.
    fn documents() -> Vec<(String, String)> {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let pages =
            fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().file_name());
        let pages = pages.map(|name| format!("docs/{}", name.to_str().unwrap()));
        let mut paths: Vec<_> = pages.filter(|path| path.ends_with(".md")).collect();
        paths.extend(["README.md", "CONTRIBUTING.md"].map(str::to_owned));
        paths
            .into_iter()
            .map(|path| (path.clone(), fs::read_to_string(root.join(path)).unwrap()))
            .collect()
    }

    #[test]
    fn every_command_of_a_document_is_taken_and_is_in_the_help() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|it| !it.is_hide_set());
        let listed: Vec<&str> = shown.map(Command::get_name).collect();
        // Sentences leave out what does not matter to them, and use names for values.
        let fine = [
            ErrorKind::MissingRequiredArgument,
            ErrorKind::MissingSubcommand,
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
            ErrorKind::DisplayHelp,
            ErrorKind::InvalidValue,
            ErrorKind::ValueValidation,
            ErrorKind::TooFewValues,
        ];
        let (mut taken, mut wrong) = ([0, 0], Vec::new());
        for (name, text) in documents() {
            let (prose, blocks) = divide(&text);
            let prose = prose.replace('\n', " ");
            let spans = prose.split('`').skip(1).step_by(2);
            let spans = spans.filter(|span| !span.contains('[') && !span.contains("COMMAND"));
            let commands = blocks.iter().map(|line| (true, words(line)));
            let commands = commands.chain(spans.map(|span| (false, words(span))));
            for (whole, command) in commands.filter_map(|(whole, it)| Some((whole, it?))) {
                let is_command = command[1].bytes().all(|letter| letter.is_ascii_lowercase());
                if whole && is_command && !listed.contains(&command[1].as_str()) {
                    wrong.push(format!("{name}: {} is hidden", command[1]));
                }
                match Cli::try_parse_from(command.iter().filter(|word| *word != "...")) {
                    Err(error)
                        if error.kind() != ErrorKind::DisplayVersion
                            && (whole || !fine.contains(&error.kind())) =>
                    {
                        wrong.push(format!("{name}: {}\n{error}", command.join(" ")));
                    }
                    _ => taken[usize::from(whole)] += 1,
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(taken[0] > 30 && taken[1] > 60, "only {taken:?} commands were found");
    }
}

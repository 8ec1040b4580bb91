//! The help of commands: groups, examples, and the usual options.
//!
//! What a command and its options are for is said where they are declared ([`crate::cli`]). This
//! adds, for help and manual pages alike, the [`examples`] that tests run, and for `-h`, which has
//! to fit a screen, which options are usual; `--help` has all.

pub(crate) mod examples;
mod groups;

use clap::Command;
use clap::builder::StyledStr;
use report::terminal::{NO_BREAK, Width, commands_together};

use examples::Example;

/// The page of the command itself.
const MAIN: &str = "\
{about-with-newline}
{usage-heading} {usage}
{before-help}{options}";

/// Options that `-h` of a command shows if it does not show all. They are those of most calls.
const USUAL: [(&str, &str); 9] = [
    (
        "bench",
        "experiment world scenario compare strategy queues clients rate bulk_rate duration rounds \
         histogram svg json",
    ),
    ("lab run", "command on until time strategy mark queues pcap name"),
    ("lab shell", "on strategy mark ports hosts queues pcap name"),
    ("lane", "device packets queue rx_usecs rest_usecs dry_run confirm_within remove json"),
    ("mpirun", "ranks nodes mpi net compare repeat json print_env program strategy queues pcap"),
    ("mx perf", "port endpoint peer wait once size iterations unidirectional json"),
    ("nic serve", "a b strategy mark queues link_rate link_latency pcap name"),
    ("predict", "capture seconds compare mark grid by host costs report json"),
    (
        "tune",
        "device goal peer code world workload command duration dry_run confirm_within report json",
    ),
];

/// `command` with examples, usual options and groups, for a terminal of this width.
pub(crate) fn complete(command: Command, width: Width) -> Command {
    let command = described(command, "");
    let [short, long] =
        [true, false].map(|is_short| groups::listed(&command, width.prose(), is_short));
    let command = command
        .term_width(width.prose())
        .help_template(MAIN)
        .before_help(short)
        .before_long_help(long);
    // Manual pages list them in this order.
    let names: Vec<String> = names(&command);
    names.into_iter().fold(command, |command, name| {
        let place = groups::place(&name).unwrap_or(usize::MAX);
        command.mut_subcommand(name, |sub| sub.display_order(place))
    })
}

fn names(command: &Command) -> Vec<String> {
    command.get_subcommands().map(|command| command.get_name().to_owned()).collect()
}

/// A command, named by the words of `path`, and those below it.
fn described(command: Command, path: &str) -> Command {
    let below =
        |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path} {name}") };
    let names = names(&command);
    let command = names.into_iter().fold(command, |command, name| {
        let path = below(&name);
        command.mut_subcommand(name, |sub| described(sub, &path))
    });
    let usual = USUAL.iter().find(|(command, _)| *command == path);
    let command = command.mut_args(|arg| match usual {
        Some((_, usual)) if !usual.split(' ').any(|id| arg.get_id() == id) => {
            arg.hide_short_help(true)
        }
        _ => arg,
    });
    let examples: Vec<_> = examples::of_command(path).collect();
    if examples.is_empty() { command } else { with_examples(command, &examples) }
}

/// The examples come behind the line that says what the command is for.
fn with_examples(command: Command, examples: &[Example]) -> Command {
    let text = |it: Option<&StyledStr>| it.map(ToString::to_string).unwrap_or_default();
    let about = text(command.get_about());
    let long = text(command.get_long_about());
    let rest = long.strip_prefix(&about).unwrap_or(&long).trim_start_matches('.').trim();
    let lines = examples.iter().map(|it| format!("  # {}\n  {}\n\n", it.purpose, it.line));
    let long = format!("{about}\n\nExamples:\n{}{rest}", lines.collect::<String>());
    command.long_about(long.trim_end().to_owned())
}

/// The same with spaces inside of commands and examples at which no line is broken; they become
/// plain ones when the help is printed ([`plain`]).
pub(crate) fn unbroken(command: Command) -> Command {
    let names = names(&command);
    let command =
        names.into_iter().fold(command, |command, name| command.mut_subcommand(name, unbroken));
    let (about, long) = (command.get_about().cloned(), command.get_long_about().cloned());
    let joined = |text: StyledStr| joined(&text.to_string());
    let command = match about {
        Some(about) => command.about(joined(about)),
        None => command,
    };
    let command = match long {
        Some(long) => command.long_about(joined(long)),
        None => command,
    };
    command.mut_args(|arg| {
        let (help, long) = (arg.get_help().cloned(), arg.get_long_help().cloned());
        let arg = help.map_or(arg.clone(), |help| arg.help(joined(help)));
        long.map_or(arg.clone(), |long| arg.long_help(joined(long)))
    })
}

/// The longest command that is kept on one line of prose.
const LONGEST: usize = 60;

/// Text in which commands, and lines of examples, are not broken.
fn joined(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("  ") {
        Some(example) => format!("  {}", example.replace(' ', &NO_BREAK.to_string())),
        None => commands_together(line, LONGEST),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Text of help as it is printed.
pub(crate) fn plain(text: &str) -> String {
    text.replace(NO_BREAK, " ")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::command_line::{documents::words, parse};

    /// Lines of a terminal that `-h` leaves room for a prompt on.
    const SCREEN: usize = 40;

    /// Every command that help lists, with the words that name it, in a terminal of this width.
    fn commands(columns: usize) -> Vec<(String, Command)> {
        fn collect(command: &Command, path: &str, into: &mut Vec<(String, Command)>) {
            for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
                let path = format!("{path} {}", below.get_name()).trim().to_owned();
                into.push((path.clone(), below.clone()));
                collect(below, &path, into);
            }
        }
        let width = Width::columns(columns);
        let mut command = unbroken(complete(Cli::command(), width)).disable_help_subcommand(true);
        command.build();
        let mut all = vec![(String::new(), command.clone())];
        collect(&command, "", &mut all);
        all
    }

    #[test]
    fn every_command_is_in_one_group() {
        let listed: Vec<&str> =
            groups::GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let command = Cli::command();
        let known = command.get_subcommands().filter(|it| !it.is_hide_set()).map(Command::get_name);
        let known: BTreeSet<&str> = known.chain(["help"]).collect();
        assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(listed.len(), known.len(), "one is in two groups");
    }

    #[test]
    fn every_command_has_two_examples_that_are_its_own_and_can_be_typed() {
        let known: Vec<String> = commands(80).into_iter().skip(1).map(|(path, _)| path).collect();
        for Example { command: path, line, .. } in examples::all() {
            assert!(known.iter().any(|known| known == path), "there is no command {path}");
            let words = words(line).unwrap_or_else(|| panic!("no command: {line}"));
            let typed = words[1..].join(" ").replace("--lab switch ", "");
            assert!(typed.starts_with(path), "{line}");
            parse(words.iter()).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(line.len() <= 78, "{} columns: {line}", line.len());
        }
        for path in known {
            assert_eq!(examples::of_command(&path).count(), 2, "examples of {path}");
        }
    }

    #[test]
    fn the_short_help_of_a_command_fits_a_screen() {
        for (path, mut command) in commands(80) {
            let text = plain(&command.render_help().to_string());
            assert!(text.lines().count() <= SCREEN, "{path}: {}\n{text}", text.lines().count());
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{path}:\n{text}");
        }
        for (path, usual) in USUAL {
            let command = commands(80).into_iter().find(|(known, _)| known == path).unwrap().1;
            for id in usual.split(' ') {
                assert!(command.get_arguments().any(|arg| arg.get_id() == id), "{path}: {id}");
            }
        }
    }

    #[test]
    fn the_long_help_begins_with_examples_and_has_every_option_on_lines_that_fit() {
        for columns in [70, 80, 100] {
            for (path, mut command) in commands(columns) {
                let text = plain(&command.render_long_help().to_string());
                for line in text.lines().filter(|it| !it.starts_with("  ")) {
                    assert!(line.chars().count() <= columns, "{path}: {line}");
                    assert!(line.matches('`').count() % 2 == 0, "{path}: {line}");
                }
                for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                    assert!(arg.get_help().is_some(), "{path}: {} has no help", arg.get_id());
                    let long = arg.get_long().map(|long| format!("--{long}"));
                    assert!(long.is_none_or(|long| text.contains(&long)), "{path}: {text}");
                }
                let second = text.split("\n\n").nth(1).unwrap();
                assert!(path.is_empty() || second.starts_with("Examples:\n  # "), "{text}");
            }
        }
    }
}

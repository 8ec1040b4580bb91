//! Commands by what they are for, as `earmark --help` lists them.

use clap::Command;
use report::terminal::wrap;

/// Groups in order, each with its commands; those who have never used Earmark begin with the first.
pub(super) const GROUPS: [(&str, &[&str]); 8] = [
    ("The five jobs", &["show", "probe", "explain", "tune", "persist", "rollback"]),
    ("What you have", &["read", "predict", "page"]),
    ("Your devices", &["watch", "apply", "confirm", "lane"]),
    ("From outside", &["echo", "serve"]),
    ("Lab and bench", &["demo", "tour", "bench", "lab", "nic", "mpirun", "reproduce"]),
    ("Fleet", &["exporter"]),
    ("Messages", &["mx"]),
    (
        "More",
        &[
            "scenario",
            "kernel",
            "merge",
            "calibrate",
            "adaptive",
            "schema",
            "completions",
            "man",
            "help",
        ],
    ),
];

/// What `help` is for; clap adds it, and only when it parses.
const HELP: &str = "Print this, or the help of a command";

/// Columns of the longest name, and of what stands before and behind it.
const NAME: usize = "completions".len();
const INDENT: usize = 2 + NAME + 2;

/// The groups in lines of at most `width` columns; those of the last one in one paragraph, if the
/// list is to be short.
pub(super) fn listed(command: &Command, width: usize, is_short: bool) -> String {
    let header = command.get_styles().get_header();
    let literal = command.get_styles().get_literal();
    let mut text = String::new();
    // A line begins with the break before it: clap takes a style for a part of the line otherwise.
    for (number, (group, names)) in GROUPS.iter().enumerate() {
        let gap = if is_short || number == 0 { "" } else { "\n" };
        text += &format!("{gap}{header}\n{group}:{header:#}");
        if is_short && number + 1 == GROUPS.len() {
            text += &format!("\n{}", wrap("  ", 2, &names.join(", "), width).join("\n"));
            continue;
        }
        for name in *names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or_else(|| HELP.to_owned(), ToString::to_string);
            // Escapes of the name's style have no width.
            let lines = wrap(&" ".repeat(INDENT), INDENT, &about, width).join("\n");
            text += &format!("{literal}\n  {name}{literal:#}{}", &lines[2 + name.len()..]);
        }
    }
    text
}

/// The place of a command in the whole list.
pub(super) fn place(name: &str) -> Option<usize> {
    GROUPS.iter().flat_map(|(_, names)| *names).position(|known| *known == name)
}

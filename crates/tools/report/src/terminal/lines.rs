//! Lines of a screen: a title at the left, text beside it, broken at words.

use super::{Width, wrap};
use crate::svg::escape;

/// Where text begins.
const INDENT: usize = 13;

/// What is put below each other.
#[derive(Debug)]
enum LineEntry {
    /// Text beside a title; that of the entry before, if it is empty.
    Beside(String, String),
    /// Text after what further lines leave free.
    After(String, String),
    Gap,
}

/// Lines of a screen.
#[derive(Debug)]
pub struct Lines {
    entries: Vec<LineEntry>,
    width: usize,
}

impl Lines {
    /// None yet, as wide as prose may be.
    pub fn new(width: Width) -> Self {
        Self { entries: Vec::new(), width: width.prose() }
    }

    /// Appends text under a title; the title is printed once. Without text, nothing.
    pub fn group(&mut self, title: &str, texts: impl IntoIterator<Item = String>) {
        let mut title = title;
        for text in texts {
            self.entries.push(LineEntry::Beside(title.into(), text));
            title = "";
        }
    }

    /// Appends text from the left edge after `start`, which further lines leave free.
    pub fn text(&mut self, start: &str, text: &str) {
        self.entries.push(LineEntry::After(start.into(), text.into()));
    }

    /// An entry of a list; its further lines stand to the right of its start. In a pipe it is one
    /// line, for those who look for it.
    pub fn listed(text: &str, width: Width) -> String {
        wrap("", 2, text, width.table()).join("\n")
    }

    /// Appends an empty line.
    pub fn gap(&mut self) {
        self.entries.push(LineEntry::Gap);
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The lines so far, from the top.
    pub fn lines(&self) -> Vec<String> {
        let lines = |entry: &LineEntry| match entry {
            LineEntry::Beside(title, text) => {
                wrap(&format!("{title:<INDENT$}"), INDENT, text, self.width)
            }
            LineEntry::After(start, text) => wrap(start, start.chars().count(), text, self.width),
            LineEntry::Gap => vec![String::new()],
        };
        self.entries.iter().flat_map(lines).collect()
    }

    /// The same as markup: paragraphs, and lists of titles and descriptions.
    pub fn markup(&self) -> String {
        let (mut markup, mut is_list) = (String::new(), false);
        for entry in &self.entries {
            let is_beside = matches!(entry, LineEntry::Beside(..));
            if is_list && !is_beside {
                markup += "</dd></div></dl>";
            }
            match entry {
                LineEntry::Beside(title, text) if title.is_empty() && is_list => {
                    markup += &format!("<p>{}</p>", prose(text));
                }
                LineEntry::Beside(title, text) => {
                    markup += if is_list { "</dd></div>" } else { "<dl>" };
                    let (title, text) = (escape(title), prose(text));
                    markup += &format!("<div><dt>{title}</dt><dd><p>{text}</p>");
                }
                LineEntry::After(start, text) if start.trim().is_empty() => {
                    markup += &format!("<p>{}</p>", prose(text));
                }
                LineEntry::After(start, text) => {
                    let (start, text) = (escape(start.trim()), prose(text));
                    markup += &format!("<p><strong>{start}</strong> {text}</p>");
                }
                LineEntry::Gap => {}
            }
            is_list = is_beside;
        }
        if is_list {
            markup += "</dd></div></dl>";
        }
        markup
    }
}

/// How commands begin in prose.
const COMMANDS: [&str; 2] = ["earmark ", "ethtool -"];

/// What stands before the commands that get what is missing, up to the end of the text.
pub const NOT_HERE: &str = "not here; ";

/// A text as markup: its commands are code, up to the end of their clause.
pub(crate) fn prose(text: &str) -> String {
    if let Some((before, commands)) = text.split_once(NOT_HERE) {
        return format!("{}{NOT_HERE}<code>{}</code>", escape(before), escape(commands));
    }
    let mut markup = String::new();
    for (number, part) in text.split('`').enumerate() {
        if number % 2 == 1 {
            markup += &format!("<code>{}</code>", escape(part));
            continue;
        }
        let mut rest = part;
        while let Some(at) = COMMANDS.iter().filter_map(|it| rest.find(it)).min() {
            let (before, command) = rest.split_at(at);
            let (words, behind) = command.split_at(super::clause(command).len());
            markup += &format!("{}<code>{}</code>", escape(before), escape(words));
            rest = behind;
        }
        markup += &escape(rest);
    }
    markup
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_broken_at_words_under_its_start() {
        let mut lines = Lines::new(Width::columns(80));
        lines.group("title", ["word ".repeat(40).trim().to_owned(), "second".into()]);
        assert!(lines.lines().iter().all(|line| line.chars().count() <= 80));
        assert!(lines.lines()[0].starts_with("title        word word"));
        assert!(lines.lines()[1].starts_with("             word"));
        assert_eq!(lines.lines().last().unwrap(), "             second");
        lines.group("nothing", []);
        assert!(!lines.lines().iter().any(|line| line.contains("nothing")));
    }

    #[test]
    fn markup_says_what_the_lines_say() {
        let mut lines = Lines::new(Width::columns(80));
        lines.text("  Up to 9 us:", "a <hold>");
        lines.gap();
        lines.group("rings", ["one".into(), "type: earmark show eth0; or not".into()]);
        lines.group("softirq", ["two: not here; grep . a/{b,c}; cat d".into()]);
        assert_eq!(
            lines.markup(),
            "<p><strong>Up to 9 us:</strong> a &lt;hold&gt;</p>\
             <dl><div><dt>rings</dt><dd><p>one</p><p>type: <code>earmark show eth0</code>; or not</p>\
             </dd></div><div><dt>softirq</dt><dd><p>two: not here; <code>grep . a/{b,c}; cat d</code></p></dd></div></dl>"
        );
    }
}

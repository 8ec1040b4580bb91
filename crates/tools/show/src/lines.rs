//! Lines of a screen: a title at the left, text beside it, broken at words.

use report::terminal::{NO_BREAK, Width, wrap};

/// Where text begins.
const INDENT: usize = 13;

/// Lines of a screen.
#[derive(Debug)]
pub struct Lines {
    lines: Vec<String>,
    width: usize,
}

impl Lines {
    /// None yet, as wide as prose may be.
    pub fn new(width: Width) -> Self {
        Self { lines: Vec::new(), width: width.prose() }
    }

    /// Appends text under a title; the title is printed once. Without text, nothing.
    pub fn group(&mut self, title: &str, texts: impl IntoIterator<Item = String>) {
        let mut title = title;
        for text in texts {
            self.put(title, INDENT, &text);
            title = "";
        }
    }

    /// Appends text from the left edge after `start`, which further lines leave free.
    pub fn text(&mut self, start: &str, text: &str) {
        self.put(start, start.chars().count(), text);
    }

    fn put(&mut self, title: &str, indent: usize, text: &str) {
        let start = format!("{title:<indent$}");
        self.lines.extend(wrap(&start, indent, text, self.width));
    }

    /// An entry of a list; its further lines stand to the right of its start. In a pipe it is one
    /// line, for those who look for it.
    pub fn listed(text: &str, width: Width) -> String {
        wrap("", 2, text, width.table()).join("\n")
    }

    /// Appends an empty line.
    pub fn gap(&mut self) {
        self.lines.push(String::new());
    }

    /// The lines so far, from the top.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

/// A number of things: `1 queue`, `2 queues`.
pub fn count(number: usize, thing: &str) -> String {
    if number == 1 { format!("1 {thing}") } else { format!("{number} {thing}s") }
}

pub(super) fn together(text: &str) -> String {
    text.replace(' ', &NO_BREAK.to_string())
}

/// Microseconds with as many digits as they deserve.
pub fn us(microseconds: f64) -> String {
    if microseconds.fract() == 0.0 || microseconds >= 100.0 {
        format!("{microseconds:.0} us")
    } else {
        format!("{microseconds:.1} us")
    }
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
}

//! How text is laid out for a terminal: how wide it is, tables that fit, and prose in lines.
//!
//! A number is never broken, and stays on the line of its unit. The width is `COLUMNS` if the
//! environment has it, else that of the terminal. Output that goes to a file or a pipe, without
//! `COLUMNS`, has whole tables, however wide they are, because nothing wraps them there; prose has
//! at most `LINE` columns everywhere.

mod lines;
mod stream;
mod table;

use std::io::{IsTerminal, stderr, stdout};

use crate::numbers::rounded;
pub(crate) use lines::prose;
pub use lines::{Lines, NOT_HERE};
pub use stream::Stream;
pub use table::Table;

/// Columns of a line of prose, where there is room: longer ones are hard to read.
const LINE: usize = 100;

/// Fewer columns than this are no terminal.
const MIN_COLUMNS: usize = 20;

/// Columns of a terminal that does not say how many it has.
const USUAL: usize = 80;

/// A space at which no line is broken.
pub const NO_BREAK: char = '\u{a0}';

/// How many columns there are for a line; none means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(Option<usize>);

impl Width {
    /// The width of standard output.
    pub fn of_output() -> Self {
        Self::of(stdout().is_terminal(), &comfy_table::Table::new())
    }

    /// The width of standard error.
    pub fn of_errors() -> Self {
        let table = comfy_table::Table::new();
        #[cfg(not(target_family = "wasm"))]
        let table = {
            let mut table = table;
            table.use_stderr();
            table
        };
        Self::of(stderr().is_terminal(), &table)
    }

    fn of(is_terminal: bool, table: &comfy_table::Table) -> Self {
        let wanted = std::env::var("COLUMNS").ok();
        let seen = table.width().filter(|_| is_terminal).map(usize::from);
        Self::chosen(wanted.as_deref(), is_terminal, seen)
    }

    /// So many columns.
    pub fn columns(columns: usize) -> Self {
        Self(Some(columns))
    }

    fn chosen(wanted: Option<&str>, is_terminal: bool, seen: Option<usize>) -> Self {
        let usable = |columns: &usize| *columns >= MIN_COLUMNS;
        let wanted = wanted.and_then(|text| text.parse().ok()).filter(usable);
        let seen = is_terminal.then(|| seen.filter(usable).unwrap_or(USUAL));
        Self(wanted.or(seen))
    }

    /// Columns of a line of a table.
    pub fn table(self) -> usize {
        self.0.unwrap_or(usize::MAX)
    }

    /// Columns of a line of prose.
    pub fn prose(self) -> usize {
        self.table().min(LINE)
    }

    /// Columns of the longest bar of a histogram beside `text` columns, at most `most`.
    pub fn bar(self, text: usize, most: usize) -> usize {
        self.table().saturating_sub(text).clamp(1, most)
    }

    /// Text in lines; those that it has are kept apart.
    pub fn wrap(self, text: &str) -> String {
        let lines = text.split('\n').flat_map(|line| {
            let rest = line.trim_start_matches(' ');
            let indent = &line[..line.len() - rest.len()];
            wrap(indent, indent.len(), rest, self.prose())
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Text with its lines broken that are longer than a terminal's; what goes elsewhere stays as
    /// it is.
    pub fn fold(self, text: &str) -> String {
        let Some(columns) = self.0 else { return text.to_owned() };
        let lines = text.split('\n').flat_map(|line| match line.chars().count() > columns {
            true => {
                let rest = line.trim_start_matches(' ');
                let indent = &line[..line.len() - rest.len()];
                wrap(indent, indent.len(), rest, columns)
            }
            false => vec![line.to_owned()],
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// Breaks text at spaces; the first line begins with `start`, the others with `indent` spaces.
pub fn wrap(start: &str, indent: usize, text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = start.to_owned();
    let mut is_empty = true;
    for word in together(text, width.saturating_sub(indent)).split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    lines.push(line);
    lines.iter().map(|line| line.trim_end_matches(' ').replace(NO_BREAK, " ")).collect()
}

/// The text with a number and the word after it, which says what it counts, on one line, and so
/// with the words of a command of at most `width` columns.
fn together(text: &str, width: usize) -> String {
    let text = commands_together(text, width);
    let mut joined = String::with_capacity(text.len());
    let mut words = text.split(' ').peekable();
    while let Some(word) = words.next() {
        joined.push_str(word);
        let Some(next) = words.peek() else { break };
        let is_number =
            word.trim_start_matches(['(', '-']).starts_with(|c: char| c.is_ascii_digit())
                && word.ends_with(|c: char| c.is_ascii_digit());
        let has_unit = next.starts_with(|c: char| c.is_alphabetic() || c == '%');
        joined.push(if is_number && has_unit { NO_BREAK } else { ' ' });
    }
    joined
}

/// Text whose commands have no space at which a line may be broken: what stands `like this`, and
/// what begins with the word `earmark` and ends with its clause.
pub fn commands_together(text: &str, width: usize) -> String {
    let whole = |part: &str| match part.chars().count() <= width {
        true => part.replace(' ', NO_BREAK.encode_utf8(&mut [0; 2])),
        false => part.to_owned(),
    };
    let mut parts = Vec::new();
    for (number, part) in text.split('`').enumerate() {
        if number % 2 == 1 {
            parts.push(whole(part));
            continue;
        }
        // A product has a capital, and a crate or a file more than this word.
        let mut clauses = part.split("earmark ");
        let mut joined = clauses.next().unwrap_or_default().to_owned();
        for clause in clauses {
            let words = self::clause(clause);
            joined += &whole(&format!("earmark {words}"));
            joined += &clause[words.len()..];
        }
        parts.push(joined);
    }
    parts.join("`")
}

/// The command at the start of a text: what is before the end of its clause.
pub fn clause(text: &str) -> &str {
    let end = text.find([';', ',', '(', ')', '\n']).unwrap_or(text.len());
    let end = text[..end].find(": ").unwrap_or(end);
    text[..end].trim_end()
}

/// What stands where nothing was measured.
pub const NOTHING: &str = "-";

/// A number with so many digits behind the point, or a dash.
pub fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| NOTHING.into(), |value| rounded(value, digits))
}

/// What tests of layouts share.
#[cfg(any(test, feature = "checks"))]
pub mod checks {
    use super::Width;

    pub(crate) const WIDTHS: [usize; 5] = [60, 80, 100, 120, 200];

    /// The words of a text that have digits in them.
    pub(crate) fn numbers(text: &str) -> Vec<&str> {
        text.split_whitespace().filter(|it| it.contains(|c: char| c.is_ascii_digit())).collect()
    }

    /// At every width no line is longer, every word with a digit is one of the text without a
    /// limit, and all of `essential` is there.
    pub fn fits(draw: impl Fn(Width) -> String, essential: &[&str]) {
        let whole = draw(Width(None));
        let bare = |word: &str| word.trim_end_matches([',', '.', ';', ':', ')']).to_owned();
        let known: std::collections::HashSet<String> =
            numbers(&whole).into_iter().map(bare).collect();
        for columns in WIDTHS {
            let text = draw(Width::columns(columns));
            let longest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(longest <= columns, "{longest} columns of {columns}:\n{text}");
            let body = text.replace(&format!("Left out at {columns} columns"), "");
            for number in numbers(&body) {
                assert!(known.contains(&bare(number)), "{number} at {columns}:\n{text}\n{whole}");
            }
            for words in essential {
                assert!(text.contains(words), "no {words} at {columns} columns:\n{text}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::checks::{WIDTHS, numbers};
    use super::*;

    #[test]
    fn columns_come_before_the_terminal_and_a_pipe_has_no_limit() {
        let of = |wanted, is_terminal, seen| Width::chosen(wanted, is_terminal, seen).0;
        assert_eq!(of(Some("60"), true, Some(120)), Some(60));
        assert_eq!(of(Some("60"), false, None), Some(60));
        assert_eq!(of(None, true, Some(120)), Some(120));
        assert_eq!(of(None, true, Some(0)), Some(USUAL));
        assert_eq!(of(Some("wide"), false, Some(120)), None);
        assert_eq!(Width(None).prose(), LINE);
    }

    #[test]
    fn prose_is_broken_between_words_and_never_before_a_unit() {
        let text = "delay:75 answered in 28156 us, disabled in 236.5 us (medians), with 4667, 6175 \
                    and 5371 interrupts a second at 3.5 % of 2 cores";
        for columns in WIDTHS.into_iter().chain(20..60) {
            let wrapped = Width::columns(columns).wrap(text);
            assert!(wrapped.lines().all(|line| line.chars().count() <= columns), "{wrapped}");
            assert_eq!(numbers(&wrapped), numbers(text));
            assert_eq!(wrapped.replace('\n', " "), text);
            for line in wrapped.lines() {
                let parted = ["28156", "236.5", "5371", "3.5", "2"];
                assert!(!parted.iter().any(|it| line.ends_with(&format!(" {it}"))), "{wrapped}");
            }
        }
    }

    #[test]
    fn a_command_stays_on_a_line_that_has_room_for_it() {
        let text = "to keep it after a restart: earmark persist eth0 rx-usecs; or look at all of \
                    it with `ethtool -c eth0` first, or call: earmark rollback eth0";
        let commands =
            ["earmark persist eth0 rx-usecs", "`ethtool -c eth0`", "earmark rollback eth0"];
        for columns in 30..100 {
            let wrapped = Width::columns(columns).wrap(text);
            assert!(commands.iter().all(|it| wrapped.contains(it)), "{columns}: {wrapped}");
            assert!(wrapped.lines().all(|line| line.chars().count() <= columns), "{wrapped}");
            assert_eq!(Width::columns(columns).fold(text), wrapped);
        }
        assert!(Width::columns(20).wrap(text).lines().all(|line| line.chars().count() <= 20));
        assert_eq!(Width(None).fold(text), text);
    }

    #[test]
    fn lines_and_indents_are_kept() {
        let wrapped = Width::columns(20).wrap("one\n\n  two two two two two two");
        assert_eq!(wrapped, "one\n\n  two two two two\n  two two");
    }
}

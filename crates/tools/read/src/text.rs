//! Text as it comes out of terminals, mails and forums: without colours, quotes and returns.

/// No line has more characters; the rest is cut off.
const LONGEST: usize = 1 << 16;

/// The lines of a text.
pub(crate) fn clean_lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<String> = text.split('\n').map(plain).collect();
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    unquote(&mut lines);
    lines
}

/// A line without what a terminal does not print.
fn plain(line: &str) -> String {
    let mut plain = String::with_capacity(line.len().min(LONGEST));
    let mut rest = line.chars().take(LONGEST);
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{a0}' => plain.push(' '),
            '\u{8}' => {
                plain.pop();
            }
            c if c.is_control() && c != '\t' => {}
            c => plain.push(c),
        }
    }
    plain.truncate(plain.trim_end().len());
    plain
}

/// Control sequences end with a letter, titles of windows with a bell.
fn skip_escape(rest: &mut impl Iterator<Item = char>) {
    match rest.next() {
        Some('[') => {
            rest.find(|c| ('@'..='~').contains(c));
        }
        Some(']') => {
            rest.find(|c| *c == '\u{7}');
        }
        _ => {}
    }
}

/// Takes the marks of quoted mail away, where most lines have them.
fn unquote(lines: &mut [String]) {
    let filled = lines.iter().filter(|line| !line.is_empty()).count();
    let quoted = lines.iter().filter(|line| line.starts_with('>')).count();
    if quoted * 2 > filled && filled > 1 {
        for line in lines {
            let rest = line.strip_prefix('>').map(|rest| rest.strip_prefix(' ').unwrap_or(rest));
            if let Some(rest) = rest {
                *line = rest.to_owned();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_terminals_and_mails_add_is_taken_away() {
        let of = |text: &str| clean_lines(text.as_bytes());
        assert_eq!(
            of("\u{1b}[1;32mrx-usecs:\u{1b}[0m 3\r\n\u{1b}]0;t\u{7}b"),
            ["rx-usecs: 3", "b"]
        );
        assert_eq!(of("> a\n> b\n>\nc"), ["a", "b", "", "c"]);
        assert_eq!(of("> a\nb\nc"), ["> a", "b", "c"]);
        assert_eq!(of(""), [""; 0]);
    }
}

//! Rust text, divided into code, comments and literals.

/// What a character belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind {
    Code,
    Comment,
    Literal,
}

/// One file of Rust.
pub(super) struct Source {
    /// Path from the root of the repository.
    pub name: String,
    /// The text as it stands.
    pub text: String,
    /// The text with comments and literals blanked; every line and column stays where it is.
    pub code: String,
    /// The text with literals blanked only.
    pub prose: String,
}

impl Source {
    pub(super) fn new(name: &str, text: &str) -> Self {
        let characters: Vec<char> = text.chars().collect();
        let kinds = kinds(&characters);
        let keep = |wanted: &[TokenKind]| {
            let pairs = characters.iter().zip(&kinds);
            pairs
                .map(|(&c, kind)| if c == '\n' || wanted.contains(kind) { c } else { ' ' })
                .collect()
        };
        Self {
            name: name.into(),
            text: text.into(),
            code: keep(&[TokenKind::Code]),
            prose: keep(&[TokenKind::Code, TokenKind::Comment]),
        }
    }
}

fn kinds(text: &[char]) -> Vec<TokenKind> {
    let mut kinds = Vec::with_capacity(text.len());
    while kinds.len() < text.len() {
        let at = kinds.len();
        let (kind, length) = token(text, at);
        kinds.resize((at + length.max(1)).min(text.len()), kind);
    }
    kinds
}

/// What begins at `at`, and how many characters it has.
fn token(text: &[char], at: usize) -> (TokenKind, usize) {
    let rest = &text[at..];
    match rest {
        ['/', '/', ..] => (TokenKind::Comment, until(rest, |tail| tail[0] == '\n')),
        ['/', '*', ..] => (TokenKind::Comment, block_comment(rest)),
        ['"', ..] => (TokenKind::Literal, quoted(rest, '"')),
        ['\'', '\\', ..] | ['\'', _, '\'', ..] => (TokenKind::Literal, quoted(rest, '\'')),
        ['r', '"' | '#', ..] if !continues_a_name(text, at) => raw_string(rest),
        _ => (TokenKind::Code, 1),
    }
}

/// Whether the `r` at `at` ends a longer name; `br` and `cr` begin raw strings, too.
fn continues_a_name(text: &[char], at: usize) -> bool {
    let in_name = |at: usize| text[at].is_alphanumeric() || text[at] == '_';
    match at {
        0 => false,
        1 => in_name(0) && !matches!(text[0], 'b' | 'c'),
        _ if matches!(text[at - 1], 'b' | 'c') => in_name(at - 2),
        _ => in_name(at - 1),
    }
}

fn until(text: &[char], end: impl Fn(&[char]) -> bool) -> usize {
    (0..text.len()).find(|&at| end(&text[at..])).unwrap_or(text.len())
}

fn block_comment(text: &[char]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        match text[at..] {
            ['/', '*', ..] => (at, depth) = (at + 2, depth + 1),
            ['*', '/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(text: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < text.len() {
        match text[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

fn raw_string(text: &[char]) -> (TokenKind, usize) {
    let hashes = until(&text[1..], |tail| tail[0] != '#');
    let body = 1 + hashes;
    if text.get(body) != Some(&'"') {
        return (TokenKind::Code, 1); // a raw identifier, as r#type
    }
    let ends = |tail: &[char]| {
        tail[0] == '"' && tail.len() > hashes && tail[1..=hashes].iter().all(|&c| c == '#')
    };
    let length = body + 1 + until(&text[body + 1..], ends) + 1 + hashes;
    (TokenKind::Literal, length)
}

/// Where `word` stands in `text` as a word of its own: line numbers, counted from 1.
pub(super) fn lines_with(text: &str, word: &str) -> Vec<usize> {
    let lines = (1..).zip(text.lines());
    lines.filter(|(_, line)| has_word(line, word)).map(|(number, _)| number).collect()
}

fn has_word(line: &str, word: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    let open_start = !word.starts_with(in_name);
    let open_end = !word.ends_with(in_name);
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        (open_start || !before.is_some_and(in_name)) && (open_end || !after.is_some_and(in_name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> String {
        let source = Source::new("a.rs", text);
        assert_eq!(source.code.chars().count(), text.chars().count());
        source.code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_blanked() {
        assert_eq!(code("a // b\nc /* d /* e */ f */ g"), "a c g");
        assert_eq!(code(r#"let a = "b \" c"; d"#), "let a = ; d");
        assert_eq!(code(r##"(r#"a "b" c"#, br"d", 'e', '\'', b'"') f"##), "( , b , , , b ) f");
        assert_eq!(code("fn a<'b>(c: &'b str, r#type: u8)"), "fn a<'b>(c: &'b str, r#type: u8)");
        assert_eq!(code("for\"x\" never r\"open"), "for never");
    }

    #[test]
    fn prose_keeps_comments() {
        assert_eq!(Source::new("a.rs", "a \"b\" // c").prose, "a     // c");
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(lines_with("unsafe_code\nan unsafe {\n", "unsafe"), [2]);
        assert_eq!(lines_with("x::HashMap<\nmy_HashMap", "HashMap"), [1]);
        assert_eq!(lines_with("todo!()\nmy_todo!()", "todo!"), [1]);
    }
}

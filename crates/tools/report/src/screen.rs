//! What a command prints, for a terminal and for a page.

use std::fmt;

use askama::Template;

use super::palette::Palette;
use super::terminal::{Lines, Table, Width, prose};

/// A part of a screen.
pub enum ScreenPart {
    /// Sentences; each line is a paragraph of its own.
    Text(String),
    /// Titles and what stands beside them.
    Lines(Lines),
    /// Rows of cells.
    Table(Table),
}

/// Parts with an empty line between them; as text in so many columns.
pub struct Screen {
    parts: Vec<ScreenPart>,
    width: Width,
}

#[derive(Template)]
#[template(path = "screen.html")]
struct ScreenMarkup<'a> {
    parts: &'a [ScreenPart],
    /// A screen has no pictures whose colours its tables could have.
    palette: Option<&'a Palette>,
}

impl Screen {
    /// A screen of these parts.
    pub fn new(parts: Vec<ScreenPart>, width: Width) -> Self {
        Self { parts, width }
    }

    /// The same as markup, with the classes of [`STYLE`](super::STYLE).
    ///
    /// # Errors
    /// Fails only if the template engine does.
    pub fn markup(&self) -> Result<String, askama::Error> {
        ScreenMarkup { parts: &self.parts, palette: None }.render()
    }
}

impl fmt::Display for Screen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, part) in self.parts.iter().enumerate() {
            f.write_str(if number == 0 { "" } else { "\n\n" })?;
            match part {
                ScreenPart::Text(text) => f.write_str(&self.width.wrap(text))?,
                ScreenPart::Lines(lines) => f.write_str(&lines.lines().join("\n"))?,
                ScreenPart::Table(table) => f.write_str(&table.fit(self.width))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_what_a_terminal_has() {
        let mut table = Table::new([("setting", 0), ("hold\np99 us", 0)]);
        table.add_row(["delay:75", "74.0"]);
        let parts = vec![ScreenPart::Text("what `a` is\nand b".into()), ScreenPart::Table(table)];
        let screen = Screen::new(parts, Width::columns(80));
        assert!(screen.to_string().starts_with("what `a` is\nand b\n\n"));
        let markup = screen.markup().unwrap();
        for part in
            ["<p>what <code>a</code> is</p>", "<th scope=\"col\">hold p99 us</th>", ">74.0<"]
        {
            assert!(markup.contains(part), "{part} in {markup}");
        }
    }
}

//! A table that grows by the line: its columns are chosen before the first row is known.

use super::{Width, wrap};

/// Header, rank as in a [`Table`](super::Table), and columns that its values need.
type Column = (&'static str, u8, usize);

/// Lines under a header; the first column is text, the others are numbers.
pub struct Stream {
    columns: Vec<Column>,
    shown: Vec<usize>,
    width: Width,
}

impl Stream {
    /// The columns that fit.
    pub fn new(columns: impl IntoIterator<Item = Column>, width: Width) -> Self {
        let columns: Vec<Column> = columns.into_iter().collect();
        let mut shown: Vec<usize> = (0..columns.len()).collect();
        let needed = |shown: &[usize]| shown.iter().map(|it| columns[*it].2 + 1).sum::<usize>() - 1;
        while !shown.is_empty() && needed(&shown) > width.table() {
            let optional = shown.iter().copied().filter(|it| columns[*it].1 > 0);
            match optional.max_by_key(|it| (columns[*it].1, *it)) {
                Some(last) => shown.retain(|it| *it != last),
                None => shown.clear(),
            }
        }
        Self { columns, shown, width }
    }

    /// The names of columns that do not fit, and that `more` has them.
    pub fn left_out(&self, more: &str) -> Option<String> {
        let out = (0..self.columns.len()).filter(|it| !self.shown.contains(it));
        let names: Vec<&str> = out.map(|it| self.columns[it].0).collect();
        (!names.is_empty() && !self.shown.is_empty())
            .then(|| self.width.wrap(&format!("left out: {}; {more} shows it", names.join(", "))))
    }

    /// The line above the rows; empty if rows carry the names of their values.
    pub fn header(&self) -> String {
        self.line(&self.columns.iter().map(|column| column.0).collect::<Vec<_>>())
    }

    /// A row; one with a value that is wider than its column says all its names.
    pub fn row(&self, cells: &[impl AsRef<str>]) -> String {
        let line = self.line(cells);
        if !line.is_empty() && line.chars().count() <= self.width.table() {
            return line;
        }
        let named = self.columns.iter().zip(cells).filter(|(_, cell)| !cell.as_ref().is_empty());
        let named: Vec<String> = named
            .map(|((header, ..), cell)| {
                format!("{header}\u{a0}{}", cell.as_ref()).trim().to_owned()
            })
            .collect();
        wrap("", 2, &named.join(", "), self.width.table()).join("\n")
    }

    fn line(&self, cells: &[impl AsRef<str>]) -> String {
        let cell = |index: &usize| {
            let (cell, width) = (cells[*index].as_ref(), self.columns[*index].2);
            if *index == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        };
        self.shown.iter().map(cell).collect::<Vec<_>>().join(" ").trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [("port", 0, 6), ("packets/s", 0, 12), ("marked/s", 1, 10)];

    #[test]
    fn columns_that_matter_less_are_left_out() {
        let stream = Stream::new(COLUMNS, Width::columns(24));
        assert_eq!(stream.header(), "port      packets/s");
        assert_eq!(stream.row(&["b0", "28156", "7"]), "b0            28156");
        assert_eq!(stream.left_out("--json").unwrap(), "left out: marked/s;\n--json shows it");
        assert_eq!(Stream::new(COLUMNS, Width(None)).left_out("--json"), None);
    }

    #[test]
    fn a_value_that_is_too_wide_is_said_with_its_name() {
        let stream = Stream::new(COLUMNS, Width::columns(24));
        let row = stream.row(&["b0", "12345678901234567890", "7"]);
        assert_eq!(row, "port b0,\n  packets/s 12345678901234567890,\n  marked/s 7");
        let none = Stream::new(COLUMNS, Width::columns(10));
        assert_eq!((none.header().as_str(), none.row(&["b0", "1", "2"]).lines().count()), ("", 3));
    }
}

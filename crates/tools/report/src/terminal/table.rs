//! A table that fits: columns that matter less are left out, or it is turned on its side.

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};

use super::{Width, wrap};
use crate::Cell;

/// One line below the header, so that many rows fit a screen.
const UNDER_HEADER: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// What a header says, and how early its column is left out.
struct Column {
    /// With line breaks; lines at the top that are those of the column before are not repeated.
    header: String,
    /// 0 is always there; the highest goes first.
    rank: u8,
    alignment: CellAlignment,
}

/// Rows of cells; the first column names the row, the others are numbers.
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    more: &'static str,
}

impl Table {
    /// A table with these headers and ranks: 0 is always shown, the highest is left out first,
    /// of equal ones the rightmost.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a str, u8)>) -> Self {
        let column = |(index, (header, rank)): (usize, (&str, u8))| {
            let alignment = if index == 0 { CellAlignment::Left } else { CellAlignment::Right };
            Column { header: header.to_owned(), rank, alignment }
        };
        let columns = columns.into_iter().enumerate().map(column).collect();
        Self { columns, rows: Vec::new(), more: "--json" }
    }

    /// The last column is prose, whose lines may be broken.
    pub fn with_words_last(mut self) -> Self {
        if let Some(column) = self.columns.last_mut() {
            column.alignment = CellAlignment::Left;
        }
        self
    }

    /// The table with the option that shows all that it leaves out, if that is not `--json`.
    pub fn with_more(mut self, option: &'static str) -> Self {
        self.more = option;
        self
    }

    /// Adds a row of as many cells as there are columns.
    pub fn add_row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
        debug_assert_eq!(self.rows.last().map(Vec::len), Some(self.columns.len()));
    }

    /// Whether its last column is prose.
    pub(crate) fn has_words_last(&self) -> bool {
        let last = self.columns.last();
        self.columns.len() > 1 && last.is_some_and(|it| it.alignment == CellAlignment::Left)
    }

    /// All of it, for a page.
    pub fn of_page(&self) -> crate::Table {
        let row = |row: &Vec<String>| row.iter().map(Cell::plain).collect();
        crate::Table {
            headers: (0..self.columns.len()).map(|it| self.name(it)).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// The table in lines no longer than `width`, and below it what was left out.
    pub fn fit(&self, width: Width) -> String {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        loop {
            let text = self.draw(&shown);
            if text.lines().all(|line| line.chars().count() <= width.table()) {
                return text + &self.remark(&shown, width);
            }
            let last = shown.iter().copied().filter(|it| self.columns[*it].rank > 0);
            let Some(last) = last.max_by_key(|it| (self.columns[*it].rank, *it)) else {
                return self.on_its_side(width);
            };
            shown.retain(|it| *it != last);
        }
    }

    fn draw(&self, shown: &[usize]) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(UNDER_HEADER);
        // Its own arrangement breaks digits.
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(self.headers(shown));
        for row in &self.rows {
            table.add_row(shown.iter().map(|column| &row[*column]));
        }
        for (column, drawn) in shown.iter().zip(table.column_iter_mut()) {
            drawn.set_cell_alignment(self.columns[*column].alignment);
            drawn.set_padding((0, 1));
        }
        let text = table.to_string();
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    /// Headers that end on the same line, without what the one before says, too.
    fn headers(&self, shown: &[usize]) -> Vec<String> {
        let lines = |column: &usize| self.columns[*column].header.split('\n').collect::<Vec<_>>();
        let height = shown.iter().map(|column| lines(column).len()).max().unwrap_or(1);
        let mut before: Vec<&str> = Vec::new();
        let mut headers = Vec::new();
        for column in shown {
            let lines = lines(column);
            let same = lines.iter().zip(&before).take_while(|(one, other)| one == other).count();
            let same = if lines.len() == before.len() { same.min(lines.len() - 1) } else { 0 };
            headers.push("\n".repeat(height - lines.len() + same) + &lines[same..].join("\n"));
            before = lines;
        }
        headers
    }

    fn name(&self, column: usize) -> String {
        self.columns[column].header.replace('\n', " ")
    }

    fn remark(&self, shown: &[usize], width: Width) -> String {
        let out = (0..self.columns.len()).filter(|column| !shown.contains(column));
        let names: Vec<String> =
            out.map(|column| self.name(column)).filter(|name| !name.is_empty()).collect();
        if names.is_empty() {
            return String::new();
        }
        let all = format!(
            "Left out at {} columns: {}. All of it: a wider terminal, or {}.",
            width.table(),
            names.join(", "),
            self.more
        );
        // Its lines are one paragraph, below an empty line as any other.
        format!("\n\n{}", width.wrap(&all))
    }

    /// A block of names and values for each row.
    fn on_its_side(&self, width: Width) -> String {
        let names: Vec<String> = (0..self.columns.len()).map(|it| self.name(it)).collect();
        let indent = names.iter().skip(1).map(|name| name.chars().count()).max().unwrap_or(0) + 4;
        let mut blocks = Vec::new();
        for row in &self.rows {
            let mut lines = wrap("", 2, &row[0], width.table());
            for (name, value) in names.iter().zip(row).skip(1).filter(|(_, it)| !it.is_empty()) {
                if indent + value.chars().count() <= width.table() {
                    lines.push(format!("  {name:<0$}{value}", indent - 2));
                } else {
                    lines.push(format!("  {name}"));
                    lines.extend(wrap("    ", 4, value, width.table()));
                }
            }
            blocks.push(lines.join("\n"));
        }
        blocks.join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::super::checks::{WIDTHS, numbers};
    use super::*;
    use base::prng::Prng;

    fn sample() -> Table {
        let mut table = Table::new([("setting", 0), ("both:\np50 us", 0), ("both:\np99 us", 1)]);
        table.add_row(["delay:75", "28156", "123456789"]);
        table
    }

    #[test]
    fn the_least_important_goes_first_and_is_named() {
        assert!(sample().fit(Width::columns(40)).contains("123456789"));
        let text = sample().fit(Width::columns(24));
        assert!(text.contains("28156") && !text.contains("123456789"), "{text}");
        let remark = text.replace('\n', " ");
        assert!(remark.contains("Left out at 24 columns: both: p99 us. All of it:"), "{text}");
        assert!(remark.ends_with("or --json."), "{text}");
    }

    #[test]
    fn what_does_not_fit_at_all_is_turned_on_its_side() {
        let mut table = Table::new([("setting", 0), ("p50 us", 0), ("p99 us", 0)]);
        table.add_row(["marked:75", "28156", "12345678901234"]);
        let text = table.fit(Width::columns(20));
        assert_eq!(text, "marked:75\n  p50 us  28156\n  p99 us\n    12345678901234");
    }

    #[test]
    fn a_common_head_is_said_once() {
        let text = sample().fit(Width(None));
        assert_eq!(text.matches("both:").count(), 1, "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
    }

    #[test]
    fn random_tables_fit_and_break_no_number() {
        let mut random = Prng::new(7);
        let mut below = |limit: u64| random.below(limit);
        for _ in 0..300 {
            let columns = 2 + below(20) as usize;
            let ranks: Vec<u8> = (0..columns).map(|_| below(4) as u8).collect();
            let headers: Vec<String> =
                (0..columns).map(|it| format!("group\nvalue {it}")).collect();
            let mut table = Table::new(headers.iter().map(String::as_str).zip(ranks.clone()));
            for _ in 0..=below(6) {
                let mut cells = Vec::new();
                for _ in 0..columns {
                    let limit = 10u64.pow(1 + below(12) as u32);
                    cells.push(below(limit).to_string());
                }
                table.add_row(cells);
            }
            let whole: Vec<String> = table.rows.concat();
            for columns in WIDTHS {
                let text = table.fit(Width::columns(columns));
                assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
                let body = text.split("Left out at").next().unwrap_or_default();
                for number in numbers(body) {
                    let header = number.parse::<usize>().is_ok_and(|it| it < 22);
                    assert!(header || whole.iter().any(|it| it == number), "{number}\n{text}");
                }
                let essential = table.rows.iter().flat_map(|row| row.iter().zip(&ranks));
                for (cell, _) in essential.filter(|(_, rank)| **rank == 0) {
                    assert!(numbers(body).contains(&cell.as_str()), "{cell}\n{text}");
                }
            }
        }
    }
}

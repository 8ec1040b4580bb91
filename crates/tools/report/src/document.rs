//! A page of chapters: pictures, a table and the commands behind them.

use askama::Template;

use super::html::{self, CellView, words};
use super::{Palette, Table};

#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The heading, and the title of the browser's tab.
    pub title: String,
    pub subtitle: String,
    pub made_at: String,
    pub summary: String,
    /// In the order of the page.
    pub chapters: Vec<Chapter>,
    /// Name and value of what a reader needs to judge or repeat it.
    pub environment: Vec<(String, String)>,
}

/// One chapter. Empty parts are left out.
#[derive(Clone, Debug, Default)]
pub struct Chapter {
    pub title: String,
    pub note: String,
    pub pictures: Vec<String>,
    pub table: Table,
    pub commands: Vec<String>,
    pub is_new_document: bool,
}

#[derive(Template)]
#[template(path = "document.html")]
struct Page<'a> {
    document: &'a Document,
    summary: String,
    chapters: Vec<ChapterView<'a>>,
}

struct ChapterView<'a> {
    chapter: &'a Chapter,
    note: String,
    rows: Vec<Vec<CellView<'a>>>,
}

/// Renders the page: one HTML file with its styles and pictures in it, and no script.
pub fn render(document: &Document) -> Result<String, askama::Error> {
    let palette = Palette::default();
    let chapters = document.chapters.iter().map(|chapter| ChapterView {
        chapter,
        note: words(&chapter.note),
        rows: html::rows(&chapter.table, &palette),
    });
    let chapters = chapters.collect();
    Page { document, summary: words(&document.summary), chapters }.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cell;
    use crate::pairs::{Pair, PairChart};

    #[test]
    fn a_chapter_has_its_parts_and_every_text_is_escaped() {
        let bad = || String::from("<script>alert('x')</script>");
        let pair = Pair { name: bad(), unit: bad(), ours: 1.0, ..Pair::default() };
        let chapter = Chapter {
            title: bad(),
            note: bad(),
            pictures: vec![PairChart { pairs: vec![pair] }.svg()],
            table: Table { headers: vec![bad()], rows: vec![vec![Cell::bad(bad())]] },
            commands: vec![bad()],
            is_new_document: false,
        };
        let document = Document {
            title: bad(),
            subtitle: bad(),
            made_at: bad(),
            summary: bad(),
            chapters: vec![chapter, Chapter::default()],
            environment: vec![(bad(), bad())],
        };
        let page = render(&document).unwrap();
        assert!(!page.contains("<script"), "{page}");
        let count = |what: &str| page.matches(what).count();
        assert_eq!((count("<figure"), count("<table"), count("<pre>")), (1, 1, 1));
        for tag in ["svg", "g", "figure", "section", "div", "text", "table", "tr", "p", "pre"] {
            let opened = count(&format!("<{tag}>")) + count(&format!("<{tag} "));
            assert_eq!(opened, count(&format!("</{tag}>")), "{tag}");
        }
    }
}

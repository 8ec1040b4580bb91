//! The page around pictures and tables; its text is in `templates/page.html`.

use askama::Template;

use super::terminal::prose;
use super::{Cell, Emphasis, Palette, Report, Table, tradeoff};

/// What a page says of its times.
struct Words {
    tradeoff: &'static str,
    numbers: &'static str,
    footer: &'static str,
}

const ROUND_TRIPS: Words = Words {
    tradeoff: "Each point is one setting of the NIC: further left, the host is interrupted less \
        often; further down, a round trip is faster. Holding back every packet alike pays for fewer \
        interrupts with latency; the shaded corner is where both are low.",
    numbers: "One row for each setting. p50 is the median round trip, p99 what one in a hundred \
        exceeds; packets per interrupt says how much work the host gets done for each interruption.",
    footer: "Latencies are round trips as the client saw them. Point at a point for its numbers.",
};

const HOLDS: Words = Words {
    tradeoff: "Each point is one setting of the NIC: further left, the host is interrupted less \
        often; further down, packets wait less. Holding back every packet alike pays for fewer \
        interrupts with waiting; the shaded corner is where both are low.",
    numbers: "One row for each setting. p50 is the median hold of a packet, p99 what one in a \
        hundred exceeds; packets each says how many an interrupt reports.",
    footer: "A hold is the time from a packet's arrival to its interrupt. Point at a point for its \
        numbers.",
};

const LATENCY: &str = "A curve shows which share of round trips was done after how long: the \
    further left, the faster, and the steeper, the more alike.";

/// A page of chapters. Empty parts are left out.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// The heading, and the title of the browser's tab.
    pub title: String,
    /// The line below the heading.
    pub subtitle: String,
    /// When it was measured, as it should be read.
    pub made_at: String,
    /// What the numbers say: lines are paragraphs, and what stands between backticks is code.
    pub summary: String,
    /// In the order of the page.
    pub chapters: Vec<Chapter>,
    /// Name and value of what a reader needs to judge or repeat it.
    pub environment: Vec<(String, String)>,
    /// The last line of the page.
    pub footer: String,
}

/// Pictures, a table and the commands behind them. Empty parts are left out.
#[derive(Clone, Debug, Default)]
pub struct Chapter {
    /// The heading above it.
    pub title: String,
    /// What to see in it.
    pub note: String,
    /// In the order of the page.
    pub figures: Vec<Figure>,
    /// Below the pictures.
    pub table: Table,
    /// Below the table.
    pub commands: Vec<String>,
    /// Whether it belongs to the chapter before it.
    pub is_section: bool,
}

/// A picture with its heading; both of its texts may be empty.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    /// The heading above it.
    pub title: String,
    /// What to see in it.
    pub note: String,
    /// Markup, escaped where it was made.
    pub svg: String,
}

/// Renders what a report shows, for a page that has its own frame and the styles of
/// [`STYLE`](super::STYLE): its title is a heading of the second level.
///
/// # Errors
/// Fails only if the template engine does.
pub fn fragment(report: &Report) -> Result<String, askama::Error> {
    let palette = Palette::of(report);
    let chapters = all_chapters(report, &palette);
    Fragment { report, chapters, palette: Some(&palette) }.render()
}

/// Renders a report: one HTML file with its styles and pictures in it, and no script.
///
/// # Errors
/// Fails only if the template engine does; no report is refused.
pub fn render(report: &Report) -> Result<String, askama::Error> {
    let palette = Palette::of(report);
    let chapters = all_chapters(report, &palette);
    let document = Document {
        title: report.title.clone(),
        subtitle: report.subtitle.clone(),
        made_at: report.made_at.clone(),
        summary: report.summary.clone(),
        chapters,
        environment: report.environment.clone(),
        footer: words_of(report).footer.into(),
    };
    Page { document: &document, palette: Some(&palette) }.render()
}

/// What a report shows, and below that its parts.
fn all_chapters(report: &Report, palette: &Palette) -> Vec<Chapter> {
    let mut chapters = chapters(report, palette);
    for part in &report.parts {
        let mut chapter =
            Chapter { title: part.title.clone(), note: part.summary.clone(), ..Chapter::default() };
        if part.tradeoff.points.is_empty() && part.latency.is_none() {
            chapter.table = part.table.clone();
            chapters.push(chapter);
            continue;
        }
        chapters.push(chapter);
        let sections = self::chapters(part, palette);
        chapters.extend(sections.into_iter().map(|it| Chapter { is_section: true, ..it }));
    }
    chapters
}

fn words_of(report: &Report) -> &'static Words {
    if report.is_of_holds { &HOLDS } else { &ROUND_TRIPS }
}

/// What a report shows itself, without its parts.
fn chapters(report: &Report, palette: &Palette) -> Vec<Chapter> {
    let chapter = |title: &str, note: &str, figures| Chapter {
        title: title.into(),
        note: note.into(),
        figures,
        ..Chapter::default()
    };
    let figure = |title: &String, note: &String, svg| Figure {
        title: title.clone(),
        note: note.clone(),
        svg,
    };
    let tradeoff = Some(&report.tradeoff).filter(|chart| !chart.points.is_empty());
    let tradeoff = tradeoff.map(|it| figure(&it.title, &it.note, tradeoff::svg(it, palette)));
    let curves = report.latency.iter();
    let curves = curves.map(|it| Figure { svg: it.inline(), ..Figure::default() });
    let chapters = [
        chapter("The trade-off", words_of(report).tradeoff, tradeoff.into_iter().collect()),
        Chapter {
            table: report.table.clone(),
            ..chapter("The numbers", words_of(report).numbers, Vec::new())
        },
        chapter("How late is a round trip?", LATENCY, curves.collect()),
    ];
    let has_any = |it: &Chapter| !it.figures.is_empty() || !it.table.rows.is_empty();
    chapters.into_iter().filter(has_any).collect()
}

#[derive(Template)]
#[template(path = "fragment.html")]
struct Fragment<'a> {
    report: &'a Report,
    chapters: Vec<Chapter>,
    palette: Option<&'a Palette>,
}

#[derive(Template)]
#[template(path = "page.html")]
struct Page<'a> {
    document: &'a Document,
    /// The colours of settings; none in a table whose last column is prose.
    palette: Option<&'a Palette>,
}

impl Document {
    /// Renders the page: one HTML file with its styles and pictures in it, and no script.
    ///
    /// # Errors
    /// Fails only if the template engine does.
    pub fn render(&self) -> Result<String, askama::Error> {
        Page { document: self, palette: None }.render()
    }
}

/// Prose as markup: lines are paragraphs, and commands are code.
fn words(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(prose).collect::<Vec<_>>().join("</p><p>")
}

impl Cell {
    pub(crate) fn class(&self) -> &'static str {
        match self.emphasis {
            Emphasis::None => "",
            Emphasis::Good => "good",
            Emphasis::Bad => "bad",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TradeoffChart, TradeoffPoint};
    use super::*;
    use crate::ChartLimit;
    use crate::panels::{Curve, Panel, Picture};

    /// A report with every part, in which each text that a report has is `text`.
    fn full(text: &str) -> Report {
        let text = || text.to_owned();
        let points = vec![(100.0, 0.0), (122.0, 0.5), (343.0, 1.0)];
        let point = TradeoffPoint {
            name: text(),
            latency_us: 122.0,
            interrupts_per_s: 41_800.0,
            ..TradeoffPoint::default()
        };
        Report {
            title: text(),
            subtitle: text(),
            made_at: text(),
            summary: text(),
            table: Table { headers: vec![text(), text()], rows: vec![vec![Cell::good(text())]] },
            latency: Some(Picture {
                summary: text(),
                x_title: text(),
                panels: vec![Panel { title: text(), curves: vec![Curve { name: text(), points }] }],
                ..Picture::default()
            }),
            tradeoff: TradeoffChart {
                title: text(),
                note: text(),
                latency: text(),
                points: vec![point],
                limits: vec![ChartLimit { is_of_latency: true, value: 9.0, text: text() }],
            },
            environment: vec![(text(), text())],
            is_of_holds: false,
            parts: Vec::new(),
        }
    }

    /// The same of a document.
    fn document(text: &str) -> Document {
        let text = || text.to_owned();
        let point = TradeoffPoint { name: text(), ..TradeoffPoint::default() };
        let chart = TradeoffChart { title: text(), points: vec![point], ..Default::default() };
        let palette = Palette::new(chart.points.iter().map(|point| point.name.as_str()));
        let svg = tradeoff::svg(&chart, &palette);
        let chapter = Chapter {
            title: text(),
            note: text(),
            figures: vec![Figure { title: text(), note: text(), svg }],
            table: Table { headers: vec![text()], rows: vec![vec![Cell::bad(text())]] },
            commands: vec![text()],
            is_section: true,
        };
        Document {
            title: text(),
            subtitle: text(),
            made_at: text(),
            summary: text(),
            chapters: vec![chapter, Chapter::default()],
            environment: vec![(text(), text())],
            footer: text(),
        }
    }

    fn count(page: &str, what: &str) -> usize {
        page.matches(what).count()
    }

    #[test]
    fn pages_have_every_part_and_refer_to_nothing_outside() {
        for (page, figures) in
            [(render(&full("a text")).unwrap(), 2), (document("a text").render().unwrap(), 1)]
        {
            let parts = ["<figure", "<svg class=\"chart", "<table", "<th scope=\"row\""];
            // The trade-off is there for wide and for narrow screens.
            assert_eq!(parts.map(|part| count(&page, part)), [figures, figures + 1, 1, 1]);
            for tag in ["svg", "g", "figure", "section", "div", "text", "rect", "table", "tr", "p"]
            {
                let opened = count(&page, &format!("<{tag}>")) + count(&page, &format!("<{tag} "));
                assert_eq!(opened, count(&page, &format!("</{tag}>")), "{tag}");
            }
            let page = page.to_lowercase();
            for outside in
                ["http:", "https:", "url(", "@import", "<link", "<script", "src=", "href="]
            {
                assert!(!page.contains(outside), "{outside}");
            }
        }
    }

    #[test]
    fn parts_of_a_report_are_chapters_of_its_page() {
        let [first, second] = ["the model", "this machine"].map(full);
        let whole =
            Report { title: "both".into(), parts: vec![first, second], ..Report::default() };
        let page = render(&whole).unwrap();
        let headings = ["<h1>both</h1>", "<h2>the model</h2>", "<h2>this machine</h2>"];
        let places = headings.map(|heading| page.find(heading).expect(heading));
        assert!(places.is_sorted() && count(&page, "<h3>The numbers</h3>") == 2, "{places:?}");
        assert_eq!((count(&page, "<figure"), count(&page, "<table")), (4, 2));
    }

    #[test]
    fn a_part_of_a_table_alone_has_one_heading_and_holds_have_their_words() {
        let part = Report { title: "who waits".into(), ..full("a text") };
        let part = Report { latency: None, tradeoff: TradeoffChart::default(), ..part };
        let whole = Report { is_of_holds: true, parts: vec![part], ..full("a text") };
        let page = render(&whole).unwrap();
        assert_eq!((count(&page, "<h2>who waits</h2>"), count(&page, "The numbers")), (1, 1));
        assert!(page.contains("median hold of a packet") && !page.contains("median round trip"));
    }

    #[test]
    fn every_text_is_escaped() {
        let bad = "<script>alert('x')</script>\"";
        for page in [render(&full(bad)).unwrap(), document(bad).render().unwrap()] {
            assert!(!page.contains("<script") && !page.contains("alert('x')"));
            assert!(count(&page, "&lt;script") + count(&page, "&#60;script") > 11, "{page}");
        }
    }

    #[test]
    fn code_is_code_and_what_is_not_known_is_not_shown() {
        let mut report = full("delay:75");
        report.summary = "Run `earmark bench <x>` next.\nAnd `lab shell`.".into();
        report.environment = vec![("link".into(), "1000 Mbit/s, 50 us".into())];
        let page = render(&report).unwrap();
        assert!(page.contains("<code>earmark bench &lt;x&gt;</code> next.</p><p>And"));
        assert!(!page.contains('`') && !page.contains("null"));
        assert!(!page.contains(" ms<"));
        assert!((0..10).all(|digit| !page.contains(&format!("{digit}k</text>"))));
    }

    #[test]
    fn an_empty_report_is_a_page() {
        let page = render(&Report::default()).unwrap();
        assert_eq!((count(&page, "<figure"), count(&page, "<table")), (0, 0));
    }
}

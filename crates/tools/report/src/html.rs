//! The page around the pictures; its text is in `templates/report.html`.

use askama::Template;

use super::svg::escape;
use super::timeline::KeyEntry;
use super::{Cell, Emphasis, Palette, Report, Table, cdf, timeline, tradeoff};

/// Renders the page: one HTML file with its styles and pictures in it, and no script.
///
/// # Errors
///
/// Fails only if the template engine does; no report is refused.
pub fn render(report: &Report) -> Result<String, askama::Error> {
    let palette = Palette::of(report);
    let (tradeoff, span) = (&report.tradeoff, timeline::common_span_us(&report.timelines));
    let page = Page {
        report,
        summary: words(&report.summary),
        rows: rows(&report.table, &palette),
        tradeoff: (!tradeoff.points.is_empty()).then(|| {
            let svg = tradeoff::svg(tradeoff, &palette);
            Figure::new(&tradeoff.title, &tradeoff.note, svg, "")
        }),
        latency: report
            .latency
            .iter()
            .map(|chart| Figure::new(&chart.title, &chart.note, cdf::svg(chart, &palette), ""))
            .collect(),
        timelines: report
            .timelines
            .iter()
            .map(|it| {
                let svg = timeline::svg(it, span);
                Figure::new(&it.setting, &it.note, svg, palette.class(&it.setting))
            })
            .collect(),
        key: timeline::key(&report.timelines),
    };
    page.render()
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    report: &'a Report,
    /// Markup, escaped where it was made.
    summary: String,
    rows: Vec<Vec<CellView<'a>>>,
    tradeoff: Option<Figure<'a>>,
    latency: Vec<Figure<'a>>,
    timelines: Vec<Figure<'a>>,
    key: Vec<KeyEntry>,
}

/// Prose as markup: lines are paragraphs, and what stands between backticks is code.
pub(super) fn words(text: &str) -> String {
    let mut markup = String::new();
    for (line, paragraph) in text.lines().filter(|line| !line.trim().is_empty()).enumerate() {
        markup.push_str(if line == 0 { "" } else { "</p><p>" });
        for (part, text) in paragraph.split('`').enumerate() {
            let text = escape(text);
            markup += &if part % 2 == 0 { text } else { format!("<code>{text}</code>") };
        }
    }
    markup
}

/// One picture with its heading. `svg` is markup made by this crate, escaped where it was made.
struct Figure<'a> {
    title: &'a str,
    note: String,
    svg: String,
    class: &'static str,
}

impl<'a> Figure<'a> {
    fn new(title: &'a str, note: &str, svg: String, class: &'static str) -> Self {
        Self { title, note: words(note), svg, class }
    }
}

pub(super) struct CellView<'a> {
    pub(super) text: &'a str,
    pub(super) class: &'static str,
    pub(super) spoken: &'static str,
    /// The colour of the setting this cell names, or nothing.
    swatch: &'static str,
}

pub(super) fn rows<'a>(table: &'a Table, palette: &Palette) -> Vec<Vec<CellView<'a>>> {
    let view = |(column, cell): (usize, &'a Cell)| {
        let (class, spoken) = match cell.emphasis {
            Emphasis::None => ("", ""),
            Emphasis::Good => ("good", " (good)"),
            Emphasis::Bad => ("bad", " (bad)"),
        };
        let named = column == 0 && palette.contains(&cell.text);
        let swatch = if named { palette.class(&cell.text) } else { "" };
        CellView { text: &cell.text, class, spoken, swatch }
    };
    table.rows.iter().map(|row| row.iter().enumerate().map(view).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::TradeoffPoint;
    use super::super::{CdfChart, CdfSeries, HeldPacket, Interrupt, Lane, Timeline, TradeoffChart};
    use super::*;

    /// A report with every part, in which each text that a report has is `text`.
    fn full(text: &str) -> Report {
        let text = || text.to_owned();
        let packet =
            HeldPacket { arrived_us: 10.0, delivered_us: 85.0, marked: true, length_bytes: 66 };
        let interrupts = vec![Interrupt { at_us: 85.0, reason: text() }];
        let lane = Lane { port: text(), packets: vec![packet], interrupts };
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
            latency: vec![CdfChart {
                title: text(),
                note: text(),
                series: vec![CdfSeries { name: text(), points }],
            }],
            tradeoff: TradeoffChart { title: text(), note: text(), points: vec![point] },
            timelines: vec![Timeline {
                setting: text(),
                note: text(),
                from_us: 0.0,
                to_us: 420.0,
                lanes: vec![lane],
            }],
            environment: vec![(text(), text())],
        }
    }

    fn count(page: &str, what: &str) -> usize {
        page.matches(what).count()
    }

    #[test]
    fn the_page_has_every_part_and_refers_to_nothing_outside() {
        let page = render(&full("a text")).unwrap();
        assert_eq!((count(&page, "<figure"), count(&page, "<svg class=\"chart")), (3, 3));
        assert_eq!((count(&page, "<th scope=\"row\""), count(&page, "<table")), (1, 1));
        for tag in ["svg", "g", "figure", "section", "div", "text", "rect", "table", "tr", "p"] {
            let opened = count(&page, &format!("<{tag}>")) + count(&page, &format!("<{tag} "));
            assert_eq!(opened, count(&page, &format!("</{tag}>")), "{tag}");
        }
        for reference in ["http:", "https:", "url(", "@import", "<link", "<script", "src=", "href="]
        {
            assert!(!page.to_lowercase().contains(reference), "{reference}");
        }
    }

    #[test]
    fn every_text_is_escaped() {
        let page = render(&full("<script>alert('x')</script>\"")).unwrap();
        assert!(!page.contains("<script") && !page.contains("alert('x')"));
        assert!(count(&page, "&lt;script") + count(&page, "&#60;script") > 15);
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
        let timelines = vec![Timeline { lanes: vec![Lane::default()], ..Default::default() }];
        let latency = vec![CdfChart::default()];
        let page = render(&Report { timelines, latency, ..Default::default() }).unwrap();
        assert_eq!(count(&page, "<figure"), 2);
    }
}

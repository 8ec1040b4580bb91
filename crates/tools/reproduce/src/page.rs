//! The report: a chapter for each table or figure.

use report::{Cell, Chapter, Document, Figure, Table};

use crate::claim::Agreement;
use crate::outcome::{ConstantOutcome, NumberOutcome, Outcome, PartOutcome, SeedOutcome};

/// The report of `outcome`, one HTML file.
pub fn render(outcome: &Outcome) -> anyhow::Result<String> {
    let mut chapters = Vec::new();
    for seed in &outcome.seeds {
        chapters.push(machine(seed));
        chapters.extend(seed.parts.iter().map(chapter));
    }
    let environment = outcome.environment.as_ref();
    let document = Document {
        title: "What the documents report, and what Earmark measures".into(),
        subtitle: "Each number that they state, beside ours: unmodified Linux kernels in virtual \
                   time, with the constants that each chapter names."
            .into(),
        made_at: environment.map(|it| it.date.clone()).unwrap_or_default(),
        summary: outcome.in_words(),
        chapters,
        environment: environment
            .map(|it| {
                vec![
                    ("machine".into(), it.computer()),
                    ("command".into(), it.command.clone()),
                    ("real time".into(), format!("{:.0} s", outcome.wall_s)),
                ]
            })
            .unwrap_or_default(),
        footer: "Each chapter ends with the commands that repeat its runs.".into(),
    };
    Ok(document.render()?)
}

/// The document, and the constants of its machine.
fn machine(seed: &SeedOutcome) -> Chapter {
    let row = |ConstantOutcome { part, constant }: &ConstantOutcome| {
        let option = match part {
            Some(part) => format!("{} ({part})", constant.option),
            None => constant.option.clone(),
        };
        let origin = format!("{:?}", constant.origin).to_lowercase();
        let value = constant.value.to_string();
        [option, value.trim_matches('"').to_owned(), origin, constant.why.clone()]
            .map(Cell::plain)
            .to_vec()
    };
    Chapter {
        title: seed.title.clone(),
        note: seed.source.clone(),
        table: Table {
            headers: ["constant", "value", "origin", "where from"].map(str::to_owned).to_vec(),
            rows: seed.constants.iter().map(row).collect(),
        },
        ..Chapter::default()
    }
}

fn chapter(part: &PartOutcome) -> Chapter {
    let curves = part.curve.iter().map(report::panels::Picture::svg);
    Chapter {
        title: part.title.clone(),
        note: part.about.clone(),
        figures: curves.map(|svg| Figure { svg, ..Figure::default() }).collect(),
        table: Table {
            headers: [
                "",
                "unit",
                "document",
                "ours",
                "if nothing",
                "difference",
                "tolerance",
                "",
                "note",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows: part.numbers.iter().map(row).collect(),
        },
        commands: part.runs.iter().map(|run| run.command.clone()).collect(),
        is_section: true,
    }
}

fn row(number: &NumberOutcome) -> Vec<Cell> {
    let [ours, nothing, difference] = number.in_words();
    let verdict = number.verdict.in_words();
    let verdict = match number.verdict {
        Agreement::Agrees => Cell::good(verdict),
        Agreement::Misses => Cell::bad(verdict),
        Agreement::NoEvidence | Agreement::Set | Agreement::NotMade => Cell::plain(verdict),
    };
    let plain = |text: &str| Cell::plain(text);
    vec![
        plain(&number.what),
        plain(&number.unit),
        plain(&number.stated),
        Cell::plain(ours),
        Cell::plain(nothing),
        Cell::plain(difference),
        plain(&number.tolerance),
        verdict,
        plain(&number.note),
    ]
}

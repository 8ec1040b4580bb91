//! `earmark probe --hosts`: many hosts, and one table of them.

use std::io::stdin;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;

use probe::fleet::{Outcome, Pace, parse_hosts, probe};
use probe::report::Report;
use report::terminal::{NOTHING, Table, Width};
use report::{errln, json, outln};
use sys::ctrl_c;
use sys::files::{read_text, read_text_from};

/// No list of hosts has more bytes.
const LARGEST: u64 = 1 << 20;

#[derive(Serialize)]
struct Shown<'a> {
    hosts: &'a [Outcome],
}

/// Probes the hosts of a list; the status says whether all of them were.
pub(super) fn run(path: &Path, pace: &Pace, is_json: bool) -> Result<ExitCode> {
    let hosts = read(path)?;
    ctrl_c::watch().context("take signals")?;
    errln!(
        "probing {} hosts, {} at a time, at most {} packets a second in total",
        hosts.len(),
        pace.parallel,
        pace.total_rate
    );
    let outcomes = probe(&hosts, pace, |number, outcome| {
        let ended = outcome.error.as_ref().map_or("probed", |_| "failed");
        errln!("{number} of {}: {} {ended}", hosts.len(), outcome.host);
    });
    if is_json {
        json::print(&Shown { hosts: &outcomes })?;
    } else {
        outln!("{}", text(&outcomes, Width::of_output()));
    }
    let all = outcomes.iter().all(|outcome| outcome.error.is_none());
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The hosts of a file, or of standard input if that is `-`.
fn read(path: &Path) -> Result<Vec<String>> {
    let doing = || format!("read the hosts of {}", path.display());
    let text = if path == Path::new("-") {
        read_text_from(stdin(), LARGEST)
    } else {
        read_text(path, LARGEST)
    };
    parse_hosts(&text.with_context(doing)?).with_context(doing)
}

/// A row for each host, and below the table why some failed.
fn text(outcomes: &[Outcome], width: Width) -> String {
    let headers =
        [("host", 0), ("by", 2), ("lone p50 us", 0), ("p99 us", 1), ("answered", 3), ("found", 0)];
    let mut table = Table::new(headers).with_words_last();
    let mut errors = String::new();
    for Outcome { host, error, probe } in outcomes {
        let mut cells =
            probe.as_ref().map_or_else(|| [NOTHING; 5].map(str::to_owned), Report::cells);
        if error.is_some() {
            let found =
                if probe.is_some() { format!("failed; {}", cells[4]) } else { "failed".into() };
            cells[4] = found;
        }
        table.add_row(std::iter::once(host.clone()).chain(cells));
        if let Some(error) = error {
            errors += &format!("\n{}", width.wrap(&format!("{host}: {error}")));
        }
    }
    let gap = if errors.is_empty() { "" } else { "\n" };
    format!("{}{gap}{errors}", table.fit(width).trim_end())
}

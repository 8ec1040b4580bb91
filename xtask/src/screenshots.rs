//! Pictures of the demo's report in a real browser, and what a program can judge of them.
//!
//! The page is shown at four widths, bright and dark. `xtask/screenshots.js`, which is added to it
//! here because the report has no script, lists what does not fit, overlaps, or is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{demo, peers, repo, shell};

/// Widths of a telephone, a tablet, a laptop and a large screen, in CSS pixels.
const WIDTHS: [u32; 4] = [420, 800, 1280, 1920];

/// Pictures show this much of the page, in CSS pixels.
const HEIGHT: u32 = 4200;

/// The browser makes no window narrower than this; a narrower page is in a frame.
const LEAST_WINDOW: u32 = 500;

/// Names of the browser.
const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Columns that are on screen from the width of a tablet on, the one that names the row included.
const FIRST_COLUMNS: usize = 5;

/// Colour schemes: whether it is dark, the name of its picture, and how the browser counts it.
const SCHEMES: [(bool, &str, u8); 2] = [(false, "light", 1), (true, "dark", 0)];

/// Where the script writes: into the window itself, whether the page is in a frame or not.
const PLACE: &str = r#"<pre id="findings" hidden></pre>"#;

/// What `cargo xtask screenshots` takes.
#[derive(Args)]
pub(crate) struct Options {
    /// The report; without it, the one of `cargo xtask demo`
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Shows the report of the demo, or that of `options`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let report = match &options.report {
        Some(report) => report.clone(),
        None => {
            let report = repo::target_directory()?.join("demo/report.html");
            if !report.is_file() {
                demo::run()?;
            }
            report
        }
    };
    show(&report).with_context(|| report.display().to_string())
}

/// What CI does, after its step `demo`.
pub(crate) fn of_demo() -> Result<()> {
    run(&Options { report: None })
}

fn show(report: &Path) -> Result<()> {
    let browser = browser()?;
    let directory = repo::target_directory()?.join("screenshots");
    fs::create_dir_all(&directory).with_context(|| format!("create {}", directory.display()))?;
    let page = fs::read_to_string(report).context("read the report")?;
    let mut wrong = Vec::new();
    for width in WIDTHS {
        for (is_dark, name, scheme) in SCHEMES {
            let look = |option: &str, page: &str| {
                let file = directory.join("shown.html");
                fs::write(&file, in_window(page, width))
                    .with_context(|| format!("write {}", file.display()))?;
                let mut command = chromium(&browser, width, scheme);
                shell::output(command.arg(option).arg(format!("file://{}", file.display())))
            };
            let picture = directory.join(format!("{width}-{name}.png"));
            look(&format!("--screenshot={}", picture.display()), &page)?;
            ensure!(picture.is_file(), "the browser wrote no {}", picture.display());
            let script = include_str!("../screenshots.js")
                .replace("WIDTH", &width.to_string())
                .replace("DARK", &is_dark.to_string())
                .replace("FIRST", &FIRST_COLUMNS.to_string());
            let script = format!("<script>\n{script}</script></body>");
            let found = findings(&look("--dump-dom", &page.replace("</body>", &script))?)?;
            wrong.extend(found.iter().map(|what| format!("{width} px, {name}: {what}")));
        }
    }
    println!("screenshots: {} pictures in {}", 2 * WIDTHS.len(), directory.display());
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

fn browser() -> Result<PathBuf> {
    BROWSERS.into_iter().find_map(peers::find).with_context(|| {
        format!("find a browser: install one of {}, then try again", BROWSERS.join(", "))
    })
}

/// The page as a window of at least [`LEAST_WINDOW`] shows it.
fn in_window(page: &str, width: u32) -> String {
    if width >= LEAST_WINDOW {
        return page.replace("<body>", &format!("<body>{PLACE}"));
    }
    let page = page.replace('&', "&amp;").replace('"', "&quot;");
    format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><meta name=\"color-scheme\" content=\"light dark\">\
         <style>body {{ margin: 0 }} iframe {{ border: 0; height: {HEIGHT}px; width: {width}px }}\
         </style>{PLACE}<iframe srcdoc=\"{page}\"></iframe>"
    )
}

fn chromium(browser: &Path, width: u32, scheme: u8) -> Command {
    let mut command = Command::new(browser);
    // Its sandbox refuses root; the page is our own.
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.args(["--no-first-run", "--disable-extensions", "--disable-background-networking"]);
    command.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
    command.arg(format!("--window-size={},{HEIGHT}", width.max(LEAST_WINDOW)));
    command
}

/// What is wrong, as the script has written it into the page.
fn findings(page: &str) -> Result<Vec<String>> {
    let start = page.find(r#"<pre id="findings""#).context("the page has no findings")?;
    let text = page[start..].split_once('>').map_or("", |(_, rest)| rest);
    let text = text.split("</pre>").next().unwrap_or_default();
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).with_context(|| format!("read the findings: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_what_the_script_has_written() {
        let page = |text: &str| format!("<pre id=\"findings\" hidden=\"\">{text}</pre>");
        assert_eq!(findings(&page("[]")).unwrap(), [""; 0]);
        assert_eq!(findings(&page(r#"["a &lt; b &amp; c"]"#)).unwrap(), ["a < b & c"]);
        for page in [page(""), "<html></html>".into()] {
            assert!(findings(&page).is_err(), "{page}");
        }
    }
}

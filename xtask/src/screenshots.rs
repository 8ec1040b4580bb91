//! Pictures of the demo's report in a real browser, and what a program can judge of them.
//!
//! The page is shown at four widths, bright and dark. A script that is added here, because the
//! report has none, writes into the page what does not fit, meets, or is missing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Deserialize;

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

/// Fewer colours than this make no picture of the report.
const LEAST_COLOURS: usize = 24;

/// What `cargo xtask screenshots` takes.
#[derive(Args)]
pub(crate) struct Options {
    /// The report; without it, the one of `cargo xtask demo`
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// How the page is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Light,
    Dark,
}

impl Scheme {
    const ALL: [Self; 2] = [Self::Light, Self::Dark];

    const fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The colour scheme for the browser; it counts dark as 0.
    const fn flag(self) -> &'static str {
        match self {
            Self::Light => "--blink-settings=preferredColorScheme=1",
            Self::Dark => "--blink-settings=preferredColorScheme=0",
        }
    }
}

/// What the script has found.
#[derive(Debug, Deserialize)]
struct Findings {
    /// Width of the window, and of what is in it, in CSS pixels.
    window: f64,
    content: f64,
    dark: bool,
    /// What is wider than the window and not scrolled by itself.
    wide: Vec<String>,
    /// Right edges of the table's first columns.
    columns: Vec<f64>,
    /// Whether the first column stays when the table is scrolled.
    sticky: bool,
    texts: usize,
    /// Texts of a picture that meet, and those that leave it.
    meet: Vec<String>,
    outside: Vec<String>,
}

/// Where the findings go: into the window itself, whether the page is in a frame or not.
const PLACE: &str = r#"<pre id="findings" hidden></pre>"#;

const SCRIPT: &str = r#"<script>
const table = document.querySelector("table"), scroller = table.parentElement;
const found = { window: innerWidth, content: document.documentElement.scrollWidth,
  dark: matchMedia("(prefers-color-scheme: dark)").matches,
  columns: [...table.querySelectorAll("thead th")].slice(0, FIRST).map(
    cell => cell.getBoundingClientRect().right),
  wide: [...document.querySelectorAll("main *")].filter(it => !it.closest(".scroll")
    && it.getBoundingClientRect().right > innerWidth + 1).map(it => it.outerHTML.slice(0, 60)),
  sticky: true, texts: 0, meet: [], outside: [] };
const head = table.querySelector("tbody th"), left = () => head.getBoundingClientRect().left;
const before = left();
scroller.scrollLeft = 200;
found.sticky = Math.abs(left() - before) < 2;
scroller.scrollLeft = 0;
for (const picture of document.querySelectorAll("svg.chart")) {
  const frame = picture.getBoundingClientRect(), boxes = [];
  for (const text of picture.querySelectorAll("text")) {
    const box = text.getBoundingClientRect(), words = text.textContent;
    found.texts += 1;
    if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
        || box.bottom > frame.bottom + 1) found.outside.push(words);
    // The boxes of lines are higher than their letters.
    const slack = box.height * .2;
    for (const other of boxes) {
      const across = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
      const down = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
      if (across > 1 && down > slack) found.meet.push(other.words + " / " + words);
    }
    boxes.push({ box, words });
  }
}
top.document.getElementById("findings").textContent = JSON.stringify(found);
</script>"#;

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
    let script = SCRIPT.replace("FIRST", &FIRST_COLUMNS.to_string());
    let script = page.replace("</body>", &(script + "</body>"));
    let mut wrong = Vec::new();
    for width in WIDTHS {
        let write = |name: &str, page: &str| {
            let file = directory.join(name);
            let written = fs::write(&file, in_window(page, width));
            written.with_context(|| format!("write {}", file.display())).map(|()| file)
        };
        let (shown, checked) = (write("shown.html", &page)?, write("checked.html", &script)?);
        let mut brightness = Vec::new();
        for scheme in Scheme::ALL {
            let look = |option: &str, page: &Path| {
                let mut command = chromium(&browser, width, scheme);
                shell::output(command.arg(option).arg(format!("file://{}", page.display())))
            };
            let picture = directory.join(format!("{width}-{}.png", scheme.name()));
            look(&format!("--screenshot={}", picture.display()), &shown)?;
            let judged = findings(&look("--dump-dom", &checked)?)?.judge(width, scheme);
            match judged.and_then(|()| seen(&picture, width)) {
                Ok(mean) => brightness.push(mean),
                Err(why) => wrong.push(format!("{width} px, {}: {why:#}", scheme.name())),
            }
        }
        if let [light, dark] = brightness[..] {
            ensure!(light > 2.0 * dark, "{width} px: dark is as bright as light");
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

fn chromium(browser: &Path, width: u32, scheme: Scheme) -> Command {
    let mut command = Command::new(browser);
    // Its sandbox refuses root; the page is our own.
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.args(["--no-first-run", "--disable-extensions", "--disable-background-networking"]);
    command.arg(scheme.flag()).arg(format!("--window-size={},{HEIGHT}", width.max(LEAST_WINDOW)));
    command
}

/// What the script has written into the page.
fn findings(page: &str) -> Result<Findings> {
    let start = page.find(r#"<pre id="findings""#).context("the page has no findings")?;
    let text = page[start..].split_once('>').map_or("", |(_, rest)| rest);
    let text = text.split("</pre>").next().unwrap_or_default();
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).with_context(|| format!("read the findings: {text}"))
}

impl Findings {
    fn judge(&self, width: u32, scheme: Scheme) -> Result<()> {
        let Self { window, content, dark, wide, columns, sticky, texts, meet, outside } = self;
        ensure!((window - f64::from(width)).abs() < 1.0, "the window is {window} px wide");
        ensure!(*dark == (scheme == Scheme::Dark), "the page has the wrong colours");
        ensure!(content <= window, "the page is {content} px wide: {}", wide.join("; "));
        ensure!(columns.len() == FIRST_COLUMNS, "the table has {} columns", columns.len());
        if width >= 800 {
            let right = columns.iter().copied().fold(0.0, f64::max);
            ensure!(right <= *window, "the first columns end at {right} px");
        }
        ensure!(*sticky, "the first column leaves when the table is scrolled");
        ensure!(*texts > 50, "the pictures have {texts} texts");
        ensure!(meet.is_empty(), "texts meet: {}", meet.join("; "));
        ensure!(outside.is_empty(), "texts are outside: {}", outside.join("; "));
        Ok(())
    }
}

/// The mean brightness of a picture, from 0 to 255, if it is one of a page.
fn seen(picture: &Path, width: u32) -> Result<f64> {
    let file = fs::File::open(picture).context("the browser wrote no picture")?;
    let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info()?;
    let mut pixels = vec![0; reader.output_buffer_size().context("a picture of that size")?];
    let info = reader.next_frame(&mut pixels)?;
    ensure!(info.width == width.max(LEAST_WINDOW), "the picture is {} px wide", info.width);
    let samples = info.color_type.samples();
    let mut colours: Vec<&[u8]> = pixels.chunks(samples).collect();
    let light: f64 = colours.iter().map(|pixel| f64::from(pixel[1])).sum();
    let mean = light / colours.len() as f64;
    colours.sort_unstable();
    colours.dedup();
    ensure!(colours.len() >= LEAST_COLOURS, "the picture has {} colours", colours.len());
    Ok(mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(change: (&str, &str)) -> Result<()> {
        let json = r#"{"window": 800, "content": 800, "dark": false, "wide": [], "sticky": true, "texts": 99,
            "columns": [100, 200, 300, 400, 500], "meet": [], "outside": []}"#;
        let page =
            format!("<pre id=\"findings\" hidden=\"\">{}</pre>", json.replace(change.0, change.1));
        findings(&page)?.judge(800, Scheme::Light)
    }

    #[test]
    fn what_is_wrong_with_a_page_is_an_error() {
        of(("", "")).unwrap();
        for change in [
            (r#""window": 800"#, r#""window": 500"#),
            (r#""content": 800"#, r#""content": 801"#),
            (r#""dark": false"#, r#""dark": true"#),
            ("500]", "801]"),
            (", 500]", "]"),
            (r#""sticky": true"#, r#""sticky": false"#),
            (r#""texts": 99"#, r#""texts": 1"#),
            (r#""meet": []"#, r#""meet": ["a / b"]"#),
            (r#""outside": []"#, r#""outside": ["a &amp; b"]"#),
        ] {
            assert!(of(change).is_err(), "{change:?}");
        }
        assert!(findings("<html></html>").is_err());
    }
}

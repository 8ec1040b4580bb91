//! The demonstration, run for a moment: what a new user types first must work.

use std::fs;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{repo, shell};

/// A row for each, whatever numbers stand behind the name.
const STRATEGIES: [&str; 8] =
    ["disabled", "delay", "throttle", "periodic", "frames", "marked", "stream", "adaptive"];

/// Runs `earmark demo` and checks both files that it writes.
pub(crate) fn run() -> Result<()> {
    let directory = repo::target_directory()?.join("demo");
    fs::create_dir_all(&directory).with_context(|| format!("creating {}", directory.display()))?;
    let (report, json) = (directory.join("report.html"), directory.join("demo.json"));
    for file in [&report, &json] {
        if file.exists() {
            fs::remove_file(file).with_context(|| format!("removing {}", file.display()))?;
        }
    }
    shell::run(&mut shell::build())?;
    let mut demo = shell::command(repo::target_directory()?.join("debug/earmark"));
    demo.args(["demo", "--duration", "0.3", "--report"]).arg(&report).arg("--json").arg(&json);
    shell::run(&mut demo)?;
    let read = |file: &std::path::Path| {
        fs::read_to_string(file)
            .with_context(|| format!("the demo should have written {}", file.display()))
    };
    check_json(&read(&json)?).with_context(|| json.display().to_string())?;
    check_html(&read(&report)?).with_context(|| report.display().to_string())
}

fn check_json(text: &str) -> Result<()> {
    let json: Value = serde_json::from_str(text).context("no JSON")?;
    let rows = json["rows"].as_array().map_or(&[][..], Vec::as_slice);
    let settings: Vec<&str> = rows.iter().filter_map(|row| row["setting"].as_str()).collect();
    // `delay:75+frames:32` has delay and frames.
    let words: Vec<&str> =
        settings.iter().flat_map(|it| it.split(|c: char| !c.is_ascii_alphabetic())).collect();
    let missing: Vec<_> = STRATEGIES.into_iter().filter(|it| !words.contains(it)).collect();
    ensure!(missing.is_empty(), "no result for {}", missing.join(", "));
    Ok(())
}

/// The page must look the same on a machine without a network, and next to no other file.
fn check_html(page: &str) -> Result<()> {
    ensure!(page.contains("<svg") && page.trim_end().ends_with("</html>"), "no whole page");
    for start in ["<link", "<script", "<iframe", "@import"] {
        ensure!(!page.contains(start), "the page has {start}; put what it needs into the page");
    }
    for reference in ["src=\"", "src='", "url(", "xlink:href=\""] {
        for (at, _) in page.match_indices(reference) {
            let target = page[at + reference.len()..].trim_start_matches(['"', '\'']);
            if !target.starts_with("data:") && !target.starts_with('#') {
                let shown: String = target.chars().take(40).collect();
                bail!("the page loads {shown}...; put it into the page as a data: address");
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_without_a_strategy_is_refused() {
        let all = r#"{"rows": [{"setting": "disabled"}, {"setting": "delay:75+frames:32"},
            {"setting": "marked+throttle:125"}, {"setting": "periodic:128"},
            {"setting": "stream:75"}, {"setting": "adaptive"}]}"#;
        check_json(all).unwrap();
        let error = check_json(&all.replace("stream", "steam")).unwrap_err();
        assert_eq!(error.to_string(), "no result for stream");
        assert!(check_json("{").is_err());
    }

    #[test]
    fn page_that_loads_anything_is_refused() {
        let page = |body: &str| format!("<html><svg fill='url(#a)'></svg>{body}</html>\n");
        check_html(&page("<img src=\"data:image/png;base64,AA\">")).unwrap();
        for body in [
            "<script>1</script>",
            "<link rel=stylesheet href=a.css>",
            "<img src=\"logo.png\">",
            "<style>a{background:url('x.png')}</style>",
        ] {
            assert!(check_html(&page(body)).is_err(), "{body}");
        }
        assert!(check_html("<html><svg>").is_err());
    }
}

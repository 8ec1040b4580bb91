//! The demonstration, run for a moment: what a new user types first must work.

use std::fs;

use anyhow::{Context, Result, ensure};
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
    let page = read(&report)?;
    let is_whole = page.contains("<svg") && page.trim_end().ends_with("</html>");
    ensure!(is_whole, "{} is no whole page", report.display());
    Ok(())
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
}

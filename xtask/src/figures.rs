//! Figures that the documentation quotes, held against what their commands print today.
//!
//! `docs/figures.toml` lists commands in virtual time, and of each the texts that quote it, with
//! `{SETTING FIGURE}` in place of a number. What a command prints is exact, but ports, hashes and
//! phases follow from its seed, so it runs with several. A text says one number where all seeds
//! agree to its digits, and `A to B` where they do not; a value outside is stale.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::bench::value;
use crate::{repo, shell};

/// The list, below the root.
const LIST: &str = "docs/figures.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuoteList {
    run: Vec<QuotedRun>,
}

/// A command, and what quotes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuotedRun {
    /// What follows `earmark bench`, without `--json` and `--seed`.
    command: String,
    /// How many seeds it runs with, from 1.
    seeds: u64,
    quote: Vec<Quote>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Quote {
    file: String,
    text: String,
}

/// Runs all commands, and names each text that is stale.
pub(crate) fn check() -> Result<()> {
    let path = repo::root().join(LIST);
    let text = std::fs::read_to_string(&path).with_context(|| format!("reading {LIST}"))?;
    let list: QuoteList = toml::from_str(&text).with_context(|| format!("reading {LIST}"))?;
    shell::run(&mut shell::build())?;
    let earmark = repo::target_directory()?.join("debug/earmark");
    let jobs: Vec<(&QuotedRun, u64)> =
        list.run.iter().flat_map(|run| (1..=run.seeds).map(move |seed| (run, seed))).collect();
    let mut played = play(&jobs, &earmark)?.into_iter();
    let mut stale = Vec::new();
    for run in &list.run {
        let results: Vec<Value> = played.by_ref().take(run.seeds as usize).collect();
        for quote in &run.quote {
            let page = std::fs::read_to_string(repo::root().join(&quote.file))
                .with_context(|| format!("reading {}", quote.file))?;
            let found = quote.stale(&page, &results);
            let found = found.unwrap_or_else(|why| vec![format!("{why:#}")]);
            stale.extend(found.into_iter().map(|what| format!("{}: {what}", quote.file)));
        }
    }
    ensure!(stale.is_empty(), "figures of the documentation are stale:\n  {}", stale.join("\n  "));
    Ok(())
}

/// What each command prints with its seed; two run at once, since a world in virtual time keeps one
/// processor busy.
fn play(jobs: &[(&QuotedRun, u64)], earmark: &Path) -> Result<Vec<Value>> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, Value)>> {
        let mut done = Vec::new();
        while let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some((run, seed)) = jobs.get(at)
        {
            let command = format!("bench {} --seed {seed}", run.command);
            println!("earmark {command}");
            let mut bash = shell::command("bash");
            bash.arg("-c").arg(format!("exec \"$0\" {command} --json")).arg(earmark);
            done.push((at, serde_json::from_str(&shell::output(&mut bash)?)?));
        }
        Ok(done)
    };
    let [ours, others] = thread::scope(|scope| {
        let other = scope.spawn(work);
        [work(), other.join().expect("a command is run")]
    });
    let mut all = [ours?, others?].concat();
    all.sort_by_key(|(at, _)| *at);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

impl Quote {
    /// What `page` quotes and is not so, in words.
    fn stale(&self, page: &str, results: &[Value]) -> Result<Vec<String>> {
        let page = one_line(page);
        let template = one_line(&self.text);
        let mut pieces = template.split(['{', '}']);
        let first = pieces.next().unwrap_or_default();
        let starts: Vec<usize> = page.match_indices(first).map(|(at, _)| at).collect();
        let [start] = starts[..] else {
            bail!("it has `{first}` {} times, and one is quoted", starts.len())
        };
        let mut rest = &page[start + first.len()..];
        let mut stale = Vec::new();
        while let (Some(figure), Some(literal)) = (pieces.next(), pieces.next()) {
            // A text that ends with a figure ends with its number.
            let end = |c: char| !c.is_ascii_digit() && !".,- to".contains(c);
            let at = if literal.is_empty() { rest.find(end) } else { rest.find(literal) };
            let at = at.with_context(|| format!("`{literal}` does not follow {{{figure}}}"))?;
            let quoted = &rest[..at];
            let [low, high] = range(quoted)
                .with_context(|| format!("{{{figure}}}: `{quoted}` is no number, nor A to B"))?;
            let values = results.iter().map(|result| value(result, figure));
            let values: Vec<f64> = values.collect::<Result<_>>()?;
            if values.iter().any(|value| !(low..=high).contains(value)) {
                stale.push(format!("{figure} is {values:?} by seed, and not {quoted}"));
            }
            rest = &rest[at + literal.len()..];
        }
        Ok(stale)
    }
}

/// With one space wherever it has any: texts are wrapped.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a number stands for, by its digits, or two of them from one to the other.
fn range(quoted: &str) -> Option<[f64; 2]> {
    let ends: Vec<[f64; 2]> = quoted.split(" to ").map(rounded).collect::<Option<_>>()?;
    match ends[..] {
        [one] => Some(one),
        [[low, _], [_, high]] => Some([low, high]),
        _ => None,
    }
}

/// The values that a number may have been rounded from: zeros at its end may be no digits.
fn rounded(text: &str) -> Option<[f64; 2]> {
    let digits = text.trim().replace(',', "");
    let value: f64 = digits.parse().ok()?;
    let unit = match digits.split_once('.') {
        Some((_, decimals)) => 0.1_f64.powi(decimals.len() as i32),
        None => 10_f64.powi((digits.len() - digits.trim_end_matches('0').len().max(1)) as i32),
    };
    // Of a value that is halfway between two, either may be written.
    let half = unit * 0.500_001;
    Some([value - half, value + half])
}

/// A figure as `SETTING FIGURE`, or `SETTING over SETTING FIGURE`: by how many percent it is more.
fn value(result: &Value, figure: &str) -> Result<f64> {
    let of = |setting: &str, name: &str| {
        let path = match name {
            "p50" => "latency_us/p50",
            "p99" => "latency_us/p99",
            "interrupts" => "interrupts_per_s",
            "interrupts-per-message" => "interrupts_per_message",
            other => bail!("no figure {other}"),
        };
        let element = format!("setting={}", setting.replace('/', "~1"));
        let value = value::find(result, &format!("/results/{element}/{path}"));
        value.and_then(Value::as_f64).with_context(|| format!("no {setting} with {name}"))
    };
    match figure.split(' ').collect::<Vec<_>>()[..] {
        [setting, name] => of(setting, name),
        [setting, "over", base, name] => Ok(100.0 * (of(setting, name)? / of(base, name)? - 1.0)),
        _ => bail!("{{{figure}}} is no SETTING FIGURE"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn results(throttle: [f64; 2]) -> Vec<Value> {
        let of = |setting: &str, p50: f64, interrupts: f64| {
            json!({ "setting": setting, "latency_us": { "p50": p50 },
                    "interrupts_per_s": interrupts })
        };
        let result = |p50| json!({ "results": [of("disabled", 44.8, 47_780.0), of("throttle:125", p50, 16_000.0)] });
        throttle.map(result).into()
    }

    fn stale(page: &str, text: &str, throttle: [f64; 2]) -> Result<Vec<String>> {
        let quote = Quote { file: "README.md".into(), text: text.into() };
        quote.stale(page, &results(throttle))
    }

    #[test]
    fn a_figure_that_is_no_longer_so_is_found() {
        let text = "`throttle:125` answers in {throttle:125 p50} us";
        let page = "| ... |\n`throttle:125` answers\nin 293 us, and";
        assert_eq!(stale(page, text, [293.4, 293.0]).unwrap(), [""; 0]);
        let found = stale(page, text, [168.4, 168.4]).unwrap();
        assert_eq!(found, ["throttle:125 p50 is [168.4, 168.4] by seed, and not 293"]);
        // One seed is not the other.
        assert_eq!(stale(page, text, [293.4, 168.4]).unwrap().len(), 1);
        let page = "`throttle:125` answers in 168 to 293 us";
        assert_eq!(stale(page, text, [293.4, 168.4]).unwrap(), [""; 0]);
    }

    #[test]
    fn a_number_stands_for_what_rounds_to_it() {
        let holds = |text: &str, value: f64| {
            let [low, high] = range(text).unwrap();
            (low..=high).contains(&value)
        };
        assert!(holds("45", 44.8) && !holds("45", 45.6) && !holds("44.8", 44.9));
        assert!(holds("47,780", 47_775.0) && !holds("47,780", 47_760.0));
        assert!(holds("18,300 to 20,300", 18_310.0) && !holds("18,300 to 20,300", 20_400.0));
        assert!(holds("0 to 11", 10.9) && holds("-2 to 2", -1.5) && !holds("0", 0.7));
        assert!(range("about 5").is_none() && range("1 to 2 to 3").is_none());
        let percent = value(&results([1.0, 1.0])[0], "disabled over throttle:125 interrupts");
        assert!((percent.unwrap() - 198.625).abs() < 1e-9);
    }
}

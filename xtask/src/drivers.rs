//! Holds the table of what drivers mean against the sources of a kernel: each driver that has
//! coalescing is in it, known or not, and each source says what it is named for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use toml::{Table, Value};

use crate::repo;

const TABLE: &str = "crates/linux/device/src/drivers/table.toml";

/// What is said of what a kernel does not have.
const NO_FILE: &str = "no such file";
const NO_GETTER: &str = "has no get_coalesce";

/// What `cargo xtask drivers` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Sources of a kernel, such as those in Debian's package linux-source-6.12, unpacked
    #[arg(value_name = "LINUX")]
    linux: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let text = fs::read_to_string(repo::root().join(TABLE)).context("read the table")?;
    let (symbols, unknown) = sources(&text)?;
    let is_newest = text.contains(&format!("kernel = \"{}\"", series(&options.linux)?));
    let mut problems = problems(&options.linux, &symbols, &unknown)?;
    // What an older kernel lacks is no problem.
    let is_lack = |problem: &str| problem.ends_with(NO_FILE) || problem.ends_with(NO_GETTER);
    problems.retain(|problem| is_newest || !is_lack(problem));
    let named: BTreeSet<&str> = symbols.keys().chain(&unknown).map(String::as_str).collect();
    println!("{} files are sources or below [unknown]", named.len());
    if problems.is_empty() {
        return Ok(());
    }
    bail!("{TABLE} and {} differ:\n{}", options.linux.display(), problems.join("\n"))
}

/// The series of a kernel, as its Makefile has it.
fn series(linux: &Path) -> Result<String> {
    let makefile = linux.join("Makefile");
    let text = fs::read_to_string(&makefile);
    let text = text.with_context(|| format!("read {}", makefile.display()))?;
    let value = |name: &str| {
        text.lines().find_map(|line| Some(line.strip_prefix(name)?.trim_start_matches(" = ")))
    };
    let [version, patch] = ["VERSION", "PATCHLEVEL"].map(value);
    Ok(format!("{}.{}", version.unwrap_or("?"), patch.unwrap_or("?")))
}

/// Symbols of files.
type Symbols = BTreeMap<String, BTreeSet<String>>;

/// Symbols of each file that a row names, and the files of which nothing is known.
fn sources(text: &str) -> Result<(Symbols, BTreeSet<String>)> {
    let table: Table = text.parse().context("the table is no TOML")?;
    let mut symbols = Symbols::new();
    let words = |list: Option<&Value>| -> Vec<String> {
        let words = list.and_then(Value::as_array).into_iter().flatten();
        words.filter_map(|word| Some(word.as_str()?.to_owned())).collect()
    };
    for row in table.values().filter_map(Value::as_table).flat_map(Table::values) {
        for source in words(row.get("source")).iter().filter(|it| !it.starts_with("manual: ")) {
            let (file, names) = source.split_once(' ').context("a source without a symbol")?;
            let names = names.split(' ').map(str::to_owned);
            symbols.entry(file.to_owned()).or_default().extend(names);
        }
    }
    let unknown = words(table.get("unknown").and_then(|unknown| unknown.get("files")));
    Ok((symbols, unknown.into_iter().collect()))
}

fn problems(linux: &Path, symbols: &Symbols, unknown: &BTreeSet<String>) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut found = BTreeSet::new();
    for path in repo::files(&linux.join("drivers"), &["c"])? {
        let text = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
        let file = path.strip_prefix(linux)?.to_string_lossy().into_owned();
        if String::from_utf8_lossy(&text).lines().any(is_getter) {
            if !symbols.contains_key(&file) && !unknown.contains(&file) {
                problems.push(format!("{file}: its driver is neither known nor unknown"));
            }
            found.insert(file);
        }
    }
    ensure!(!found.is_empty(), "{} has no drivers with get_coalesce", linux.display());
    let gone = unknown.difference(&found);
    problems.extend(gone.map(|file| format!("{file}: {NO_GETTER}")));
    for (file, names) in symbols {
        let Ok(text) = fs::read(linux.join(file)) else {
            problems.push(format!("{file}: {NO_FILE}"));
            continue;
        };
        let text = String::from_utf8_lossy(&text);
        let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        let words: BTreeSet<&str> = text.split(|c| !is_word(c)).collect();
        let missing = names.iter().filter(|name| !words.contains(name.as_str()));
        problems.extend(missing.map(|name| format!("{file}: has no {name}")));
    }
    Ok(problems)
}

/// Whether a line names the function with which `ethtool -c` asks a driver.
fn is_getter(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix(".get_coalesce");
    rest.is_some_and(|rest| rest.trim_start().starts_with('='))
}

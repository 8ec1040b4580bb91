//! The licences of what is linked into an artefact.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::stage::{Build, Flavour, write};
use crate::install::copy;
use crate::shell;

/// What files that hold licences begin with.
const TEXTS: [&str; 5] = ["license", "licence", "copying", "copyright", "notice"];

/// What Rust's distribution says of the licences of its library.
const LIBRARY: &str = "rust-library-licenses.html";

/// Writes the licences of all that is linked into a crate's artefact, each text once, into
/// `third-party-licenses.txt`.
pub(super) fn write_texts(
    build: &Build,
    package: &str,
    flavour: Flavour,
    directory: &Path,
) -> Result<()> {
    let mut text = String::from(
        "What is linked into this program or library beside Earmark's own code, and under which \
         licences.\n\n",
    );
    let mut crates_of: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (title, licence, directory) in linked(build, package, flavour)? {
        writeln!(text, "{title}: {licence}")?;
        for licence in texts(&directory)? {
            crates_of.entry(licence).or_default().push(title.clone());
        }
    }
    let rustc = |arguments: &[&str]| shell::output(shell::command("rustc").args(arguments));
    writeln!(
        text,
        "{}: Apache-2.0 OR MIT; {LIBRARY} has what its library brings along.",
        rustc(&["--version"])?.trim()
    )?;
    let page = Path::new(rustc(&["--print", "sysroot"])?.trim()).join("share/doc/rust");
    copy(&page.join("COPYRIGHT-library.html"), &directory.join(LIBRARY))
        .context("dist needs a Rust that rustup has installed")?;
    if matches!(flavour, Flavour::Musl) {
        let path = build.source.join("packaging/licences/musl.txt");
        let musl = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
        crates_of.insert(musl, vec!["musl, in Rust's library".into()]);
    }
    for (licence, crates) in &crates_of {
        let line = "-".repeat(80);
        writeln!(text, "\n{line}\n{}:\n\n{}", crates.join(", "), licence.trim_end())?;
    }
    write(&directory.join("third-party-licenses.txt"), &text)
}

/// The crates of others that are linked into an artefact: name with version, licence, directory.
fn linked(
    build: &Build,
    package: &str,
    flavour: Flavour,
) -> Result<BTreeSet<(String, String, PathBuf)>> {
    let target = flavour.target();
    let mut tree = build.cargo(&["tree", "--edges", "normal,no-proc-macro", "--prefix", "none"]);
    tree.args(["--format", "{p}", "--target", target, "--package", package]);
    let tree = shell::output(&mut tree)?;
    let names: BTreeSet<_> = tree.lines().filter_map(name_and_version).collect();
    let mut metadata = build.cargo(&["metadata", "--format-version", "1"]);
    let metadata = shell::output(metadata.args(["--filter-platform", target]))?;
    let metadata: Value =
        serde_json::from_str(&metadata).context("read the output of cargo metadata")?;
    let (mut crates, mut ours) = (BTreeSet::new(), 0);
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let field = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let title = format!("{} v{}", field("name"), field("version"));
        if !names.contains(title.as_str()) {
            continue;
        }
        if package["source"].is_null() {
            ours += 1;
            continue;
        }
        let manifest = PathBuf::from(field("manifest_path"));
        let directory = manifest.parent().context("a manifest is in a directory")?;
        let title = title.replace(" v", " ");
        crates.insert((title, field("license").replace('/', " OR "), directory.to_owned()));
    }
    ensure!(crates.len() + ours == names.len(), "cargo tree and cargo metadata name other crates");
    Ok(crates)
}

/// `name v1.2.3` of `name v1.2.3 (/somewhere) (*)`.
fn name_and_version(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once(" v")?;
    Some(&line[..name.len() + 2 + rest.find(' ').unwrap_or(rest.len())])
}

/// The texts of the licences that a crate brings along.
fn texts(directory: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(directory).with_context(|| format!("list {}", directory.display()));
    let paths: Result<Vec<PathBuf>, _> = entries?.map(|entry| entry.map(|it| it.path())).collect();
    let mut paths = paths?;
    paths.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        path.is_file() && TEXTS.iter().any(|start| name.starts_with(start))
    });
    paths.sort();
    let read = |path: &PathBuf| -> Result<String> {
        let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
        Ok(String::from_utf8_lossy(&bytes).replace('\r', ""))
    };
    paths.iter().map(read).collect()
}

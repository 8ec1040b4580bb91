//! Which crates are in an artefact, and under which licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::Value;

use super::allowed::Allowed;
use super::stage::{Build, Flavour, write};
use crate::shell;

/// What files that hold licences begin with.
const TEXTS: [&str; 5] = ["license", "licence", "copying", "copyright", "notice"];

/// Licences whose text every Debian system has.
const COMMON: [&str; 1] = ["Apache-2.0"];

/// The part of Cargo.lock that is read here.
#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// A crate that is in an artefact.
pub(super) struct Crate {
    pub id: String,
    pub name: String,
    pub version: String,
    /// The expression of its manifest.
    pub licence: String,
    /// Whether it is one of this repository.
    pub is_ours: bool,
    /// Crates that it uses.
    pub uses: Vec<String>,
    /// SHA-256 of what the registry has, by Cargo.lock.
    pub checksum: Option<String>,
    directory: PathBuf,
    authors: Vec<String>,
}

/// The crates that are linked into one artefact or several, by name.
pub(super) struct Linked {
    pub crates: Vec<Crate>,
    allowed: Allowed,
    /// The licence of the libc, if that is linked, too.
    libc: Option<String>,
}

impl Linked {
    /// What is linked into the artefacts of one crate.
    pub(super) fn into(build: &Build, package: &str, flavour: Flavour) -> Result<Self> {
        Self::of(build, &[package], flavour)
    }

    /// What is linked into those of several.
    pub(super) fn into_packages(build: &Build, packages: &[&str]) -> Result<Self> {
        Self::of(build, packages, Flavour::Native)
    }

    fn of(build: &Build, packages: &[&str], flavour: Flavour) -> Result<Self> {
        let target = flavour.target();
        let mut names = BTreeSet::new();
        for package in packages {
            let mut tree = build.cargo(&["tree", "--edges", "normal,no-proc-macro"]);
            tree.args(["--prefix", "none", "--target", target, "--package", package]);
            let tree = shell::output(&mut tree)?;
            names.extend(tree.lines().filter_map(name_and_version));
        }
        let mut metadata = build.cargo(&["metadata", "--format-version", "1"]);
        let metadata = shell::output(metadata.args(["--filter-platform", target]))?;
        let metadata: Value =
            serde_json::from_str(&metadata).context("read the output of cargo metadata")?;
        let packages = metadata["packages"].as_array().into_iter().flatten();
        let lock = build.source.join("Cargo.lock");
        let lock = fs::read_to_string(&lock).with_context(|| format!("read {}", lock.display()))?;
        let lock: Lock = toml::from_str(&lock).context("read Cargo.lock")?;
        let crates: Vec<_> = packages
            .filter_map(|package| Crate::read(package, &metadata, &lock))
            .filter(|of| names.contains(&(of.name.clone(), of.version.clone())))
            .collect();
        ensure!(crates.len() == names.len(), "cargo tree and cargo metadata name other crates");
        let libc = match flavour {
            Flavour::Native => None,
            Flavour::Musl => {
                let path = build.source.join("packaging/licences/musl.txt");
                let text = fs::read_to_string(&path);
                Some(text.with_context(|| format!("read {}", path.display()))?)
            }
        };
        Ok(Self { crates, allowed: Allowed::read(&build.source)?, libc })
    }

    fn foreign(&self) -> impl Iterator<Item = &Crate> {
        self.crates.iter().filter(|of| !of.is_ours)
    }

    /// Writes the licences of all that is linked, each text once, into `third-party-licenses.txt`.
    pub(super) fn write_texts(&self, directory: &Path) -> Result<()> {
        let mut text = String::from(
            "What is linked into this program or library beside Earmark's own code, and under which \
             licences.\n\n",
        );
        let mut of_texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for of in self.foreign() {
            let title = format!("{} {}", of.name, of.version);
            writeln!(text, "{title}: {}", of.licence)?;
            for licence in of.texts()? {
                of_texts.entry(licence).or_default().push(title.clone());
            }
        }
        let (rust, standard) = standard_library()?;
        writeln!(text, "{rust}: Apache-2.0 OR MIT, and what its library brings along:")?;
        for line in standard.lines() {
            writeln!(text, "    {line}")?;
        }
        if let Some(licence) = &self.libc {
            of_texts.insert(licence.clone(), vec!["musl, in Rust's library".into()]);
        }
        for (licence, crates) in &of_texts {
            let line = "-".repeat(80);
            writeln!(text, "\n{line}\n{}:\n\n{}", crates.join(", "), licence.trim_end())?;
        }
        write(&directory.join("third-party-licenses.txt"), &text)
    }

    /// The same for machines: `debian/copyright`.
    pub(super) fn copyright(&self, source: &Path) -> Result<String> {
        let mut text = String::from(
            "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
             Upstream-Name: earmark\n\
             Comment: Crates are linked into programs and libraries, and are no part of the\n \
             sources of this package. Their texts are in third-party-licenses.txt.\n\n\
             Files: *\nCopyright: 2026 The Earmark authors\nLicense: Apache-2.0 or MIT\n",
        );
        let mut used = BTreeSet::from(["Apache-2.0".to_owned(), "MIT".to_owned()]);
        for of in self.foreign() {
            let licences = self.allowed.chosen(&of.name, &of.licence)?;
            writeln!(text, "\nFiles: crates/{}-{}/*", of.name, of.version)?;
            writeln!(text, "Copyright: {}", of.holders()?.join("\n "))?;
            writeln!(text, "License: {}", licences.join(" and "))?;
            used.extend(licences);
        }
        for licence in used {
            writeln!(text, "\nLicense: {licence}")?;
            if COMMON.contains(&licence.as_str()) {
                writeln!(text, " The text is in /usr/share/common-licenses/{licence}.")?;
                continue;
            }
            let path = source.join("packaging/licences").join(format!("{licence}.txt"));
            let words = fs::read_to_string(&path).with_context(|| {
                format!("read {}; put the licence's text there", path.display())
            })?;
            for line in words.trim_end().lines() {
                writeln!(text, " {}", if line.is_empty() { "." } else { line })?;
            }
        }
        Ok(text)
    }
}

impl Crate {
    fn read(package: &Value, metadata: &Value, lock: &Lock) -> Option<Self> {
        let field = |name: &str| package[name].as_str().map(str::to_owned);
        let strings = |list: &Value| {
            let list = list.as_array().into_iter().flatten();
            list.filter_map(|it| it.as_str().map(str::to_owned)).collect()
        };
        let id = field("id")?;
        let mut nodes = metadata["resolve"]["nodes"].as_array()?.iter();
        let node = nodes.find(|node| node["id"] == id.as_str())?;
        let mut locked = lock.package.iter();
        let locked =
            locked.find(|it| package["name"] == *it.name && package["version"] == *it.version);
        Some(Self {
            checksum: locked.and_then(|it| it.checksum.clone()),
            uses: strings(&node["dependencies"]),
            name: field("name")?,
            version: field("version")?,
            licence: field("license").unwrap_or_default(),
            is_ours: package["source"].is_null(),
            directory: Path::new(package["manifest_path"].as_str()?).parent()?.to_owned(),
            authors: strings(&package["authors"]),
            id,
        })
    }

    /// The texts of the licences that the crate brings along.
    fn texts(&self) -> Result<Vec<String>> {
        let entries = fs::read_dir(&self.directory)
            .with_context(|| format!("list {}", self.directory.display()))?;
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
            if path.is_file() && TEXTS.iter().any(|start| name.starts_with(start)) {
                paths.push(path);
            }
        }
        paths.sort();
        let read = |path: &PathBuf| -> Result<String> {
            let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
            Ok(String::from_utf8_lossy(&bytes).replace('\r', ""))
        };
        paths.iter().map(read).collect()
    }

    /// Who has the copyright, by its texts, or else its authors.
    fn holders(&self) -> Result<Vec<String>> {
        let mut holders: Vec<String> = Vec::new();
        for text in self.texts()? {
            let lines = text.lines().map(str::trim);
            let lines = lines.filter_map(|line| line.strip_prefix("Copyright "));
            let lines = lines.filter(|line| line.contains(|c: char| c.is_ascii_digit()));
            holders.extend(lines.map(str::to_owned));
        }
        // The standard text of Apache-2.0 has an example.
        holders.retain(|holder| !holder.contains(['[', '{']));
        if holders.is_empty() {
            holders.clone_from(&self.authors);
        }
        if holders.is_empty() {
            holders.push(format!("The authors of {}", self.name));
        }
        holders.sort();
        holders.dedup();
        Ok(holders)
    }
}

/// Of `name v1.2.3 (/somewhere) (*)`, the first two.
fn name_and_version(line: &str) -> Option<(String, String)> {
    let (name, rest) = line.split_once(" v")?;
    let version = rest.split(' ').next()?;
    Some((name.to_owned(), version.to_owned()))
}

/// Rust's own name, and what its distribution says of the licences of its library.
fn standard_library() -> Result<(String, String)> {
    let rustc = |arguments: &[&str]| -> Result<String> {
        Ok(shell::output(shell::command("rustc").args(arguments))?.trim().to_owned())
    };
    let root = PathBuf::from(rustc(&["--print", "sysroot"])?);
    let page = root.join("share/doc/rust/COPYRIGHT-library.html");
    let page = fs::read_to_string(&page).with_context(|| {
        format!("read {}; dist needs a Rust that rustup has installed", page.display())
    })?;
    let text = words(&page);
    if text.is_empty() {
        bail!("Rust's page on licences has no words");
    }
    Ok((rustc(&["--version"])?, text))
}

/// A page without its marks.
fn words(page: &str) -> String {
    let body = page.split_once("<body").map_or(page, |(_, body)| body);
    let mut text = String::new();
    for piece in body.split('<').skip(1) {
        let Some((_, words)) = piece.split_once('>') else { continue };
        text.push_str(words);
    }
    for (mark, letter) in
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
    {
        text = text.replace(mark, letter);
    }
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    let mut kept: Vec<&str> = Vec::new();
    for line in lines {
        if !(line.trim().is_empty() && kept.last().is_none_or(|last| last.trim().is_empty())) {
            kept.push(line);
        }
    }
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_cargo_tree_is_a_name_and_a_version() {
        let of = |line| name_and_version(line).map(|(name, version)| format!("{name}|{version}"));
        assert_eq!(of("anyhow v1.0.1").as_deref(), Some("anyhow|1.0.1"));
        assert_eq!(of("base v0.1.0 (/a v/b) (*)").as_deref(), Some("base|0.1.0"));
        assert_eq!(of(""), None);
    }

    #[test]
    fn a_page_is_read_without_its_marks() {
        let page = "<head>no</head><body class=a><h1>A &amp; B</h1>\n\n\n\n<p>c &lt;d&gt;</body>";
        assert_eq!(words(page), "A & B\n\nc <d>");
    }
}

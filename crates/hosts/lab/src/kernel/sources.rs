//! Where the sources of a kernel come from: a package of the distribution, by apt.
//!
//! That of the machine's own release is to be had as any other package. Newer series are in other
//! suites of the same archive, such as `trixie-backports` or `sid`. Their lists are read into a
//! directory of the build, so neither the machine's sources nor its lists change, and nothing
//! needs root.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

use super::process::text;
use super::recipe;

/// A suite of the distribution's archive, as in `sources.list(5)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suite(String);

impl FromStr for Suite {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.+".contains(c);
        if name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_plain) {
            return Ok(Self(name.to_owned()));
        }
        Err(format!("`{name}` is no suite; one is, for example, trixie-backports or sid"))
    }
}

impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug)]
pub(super) struct Sources {
    /// Options of apt on top of the machine's configuration.
    options: Vec<OsString>,
    /// The package, which is also the name of the directory in it.
    pub(super) package: String,
    pub(super) version: String,
}

impl Sources {
    /// The newest that apt knows; or, with a suite, the newest of that, whose lists are read into
    /// `directory`.
    pub(super) fn newest(suite: Option<&Suite>, directory: &Path) -> Result<Self> {
        let options = match suite {
            Some(suite) => read_lists(suite, directory)?,
            None => Vec::new(),
        };
        let cache = |words: &[&str]| {
            text(Command::new("apt-cache").args(&options).args(words).env("LC_ALL", "C"))
        };
        let found = cache(&["search", "--names-only", "^linux-source-[0-9.]+$"])?;
        let package = newest_of(&found).with_context(|| missing(suite))?.to_owned();
        let shown = cache(&["show", "--no-all-versions", &package])?;
        let version = shown.lines().find_map(|line| line.strip_prefix("Version: "));
        let version = version.with_context(|| format!("apt-cache show {package}: no version"))?;
        let version = version.to_owned();
        Ok(Self { options, package, version })
    }

    pub(super) fn download(&self) -> Command {
        let mut apt = Command::new("apt-get");
        apt.args(&self.options).args(["download", "-q", &self.package]);
        apt
    }
}

/// The numbers in a version, by which versions compare.
pub(super) fn numbers(version: &str) -> Vec<u64> {
    let digits = version.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|digits| digits.parse().ok()).collect()
}

/// The package of the newest series in what `apt-cache search` printed.
fn newest_of(found: &str) -> Option<&str> {
    let oldest = vec![u64::from(recipe::OLDEST.0), u64::from(recipe::OLDEST.1)];
    let names = found.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| numbers(name) >= oldest).max_by_key(|name| numbers(name))
}

fn missing(suite: Option<&Suite>) -> String {
    let series = format!("{}.{}", recipe::OLDEST.0, recipe::OLDEST.1);
    let find = format!("find the sources of Linux {series} or newer");
    match suite {
        Some(suite) => format!("{find}: the suite {suite} has none; name another one"),
        None => format!(
            "{find}: apt knows no linux-source-{series}; update its lists with: apt-get update \
             (Debian 12 has it among its security updates)"
        ),
    }
}

/// Reads the lists of `suite` into `directory`; what to tell apt from then on.
fn read_lists(suite: &Suite, directory: &Path) -> Result<Vec<OsString>> {
    let archive = archive()?;
    let [sources, parts, lists, cache] =
        ["apt.sources", "parts", "lists", "cache"].map(|name| directory.join(name));
    for directory in [&parts, &lists.join("partial"), &cache.join("archives/partial")] {
        fs::create_dir_all(directory).with_context(|| format!("create {}", directory.display()))?;
    }
    let stanza = format!("Types: deb\nURIs: {archive}\nSuites: {suite}\nComponents: main\n");
    fs::write(&sources, stanza).with_context(|| format!("write {}", sources.display()))?;
    let mut options: Vec<OsString> = Vec::new();
    let mut option = |name: &str, value: &Path| {
        let mut text = OsString::from(format!("-o{name}="));
        text.push(value);
        options.push(text);
    };
    option("Dir::Etc::sourcelist", &sources);
    option("Dir::Etc::sourceparts", &parts);
    option("Dir::State::lists", &lists);
    option("Dir::Cache", &cache);
    option("Acquire::Languages", Path::new("none"));
    let mut update = Command::new("apt-get");
    update.args(&options).args(["update", "-q", "--error-on=any"]).env("LC_ALL", "C");
    let updated = update.output().context("start apt-get")?;
    ensure!(
        updated.status.success(),
        "read the lists of the suite {suite}: {}; is there such a suite?",
        errors(&String::from_utf8_lossy(&updated.stderr))
    );
    Ok(options)
}

/// What apt calls errors among all that it says.
fn errors(said: &str) -> String {
    let errors: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("E: ")).collect();
    if errors.is_empty() { said.trim().to_owned() } else { errors.join(" ") }
}

/// Where this machine gets its own release from.
fn archive() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("read /etc/os-release")?;
    let named =
        |line: &str| Some(line.strip_prefix("VERSION_CODENAME=")?.trim_matches('"').to_owned());
    let codename = release.lines().find_map(named);
    let codename = codename.context("read /etc/os-release: it has no VERSION_CODENAME")?;
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)"]);
    let targets = text(targets.arg("Created-By: Packages"))?;
    let own = |line: &str| {
        let mut words = line.split_whitespace();
        let archive = words.next()?;
        (words.next()? == codename && words.next()? == "main").then(|| archive.to_owned())
    };
    let Some(archive) = targets.lines().find_map(own) else {
        bail!("find the archive of {codename}: apt has none with its component main");
    };
    Ok(archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_are_single_words() {
        for name in ["sid", "trixie-backports", "noble", "experimental"] {
            assert_eq!(name.parse::<Suite>().unwrap().to_string(), name);
        }
        for name in ["", "-o", "../etc", "sid main", "sid\nURIs: x", ".hidden", "a/b"] {
            assert!(name.parse::<Suite>().is_err(), "{name:?}");
        }
    }

    #[test]
    fn of_what_apt_says_errors_count() {
        let said = "W: Download is performed unsandboxed\nE: no Release file.\nE: none at all.\n";
        assert_eq!(errors(said), "no Release file. none at all.");
        assert_eq!(errors("killed\n"), "killed");
    }

    #[test]
    fn the_newest_series_counts_and_old_ones_do_not() {
        let found = "linux-source-6.1 - Linux\nlinux-source-7.2 - Linux\nlinux-source-6.12 - Linux";
        assert_eq!(newest_of(found), Some("linux-source-7.2"));
        assert_eq!(newest_of("linux-source-6.1 - Linux kernel source"), None);
        assert_eq!(newest_of(""), None);
        assert!(numbers("6.12.117-1") > numbers("6.12.99-2"));
    }
}

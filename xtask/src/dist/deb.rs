//! Packages for Debian, which debhelper makes of the tree.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::licences;
use super::stage::{Build, C_LIBRARY, COMMAND, Flavour, PROVIDER, Profile, VERSION, fresh, write};
use crate::install::copy;
use crate::shell;

/// Each package, and the crate whose artefact is in it.
pub(super) const PACKAGES: [(&str, &str); 4] = [
    ("earmark", COMMAND),
    ("earmark-mpi", PROVIDER),
    ("libearmark0", C_LIBRARY),
    ("libearmark-dev", C_LIBRARY),
];

const MAINTAINER: &str = "Earmark maintainers <maintainers@earmark.example>";

/// The name of a package's file.
pub(super) fn file(package: &str) -> String {
    format!("{package}_{VERSION}_amd64.deb")
}

/// Makes the packages.
pub(super) fn make(build: &Build) -> Result<Vec<PathBuf>> {
    let directory = build.out.join("packages");
    let debian = directory.join("debian");
    fresh(&directory)?;
    let recipes = build.source.join("packaging/debian");
    for entry in fs::read_dir(&recipes).with_context(|| format!("list {}", recipes.display()))? {
        let entry = entry?;
        copy(&entry.path(), &debian.join(entry.file_name()))?;
    }
    write(&debian.join("changelog"), &changelog(build)?)?;
    build.place_all(&directory.join("tree"))?;
    for (package, of_crate) in PACKAGES {
        let texts = directory.join("texts").join(package);
        licences::write_texts(build, of_crate, Flavour::Native, &texts)?;
    }
    let mut rules = shell::command("debian/rules");
    rules.arg("binary").current_dir(&directory);
    // Nothing of the environment: no flags, no locale.
    for (name, value) in [("LC_ALL", "C.UTF-8"), ("DEB_BUILD_OPTIONS", "nocheck")] {
        rules.env(name, value);
    }
    if build.profile == Profile::Dev {
        rules.env("COMPRESSION", "-Zgzip -z1");
    }
    shell::run(rules.env("SOURCE_DATE_EPOCH", build.epoch.to_string()))?;
    Ok(PACKAGES.map(|(package, _)| build.out.join(file(package))).into())
}

/// One entry: what changed is in CHANGELOG.md.
fn changelog(build: &Build) -> Result<String> {
    let mut date = shell::command("date");
    date.args(["--utc", "--rfc-email"]).arg(format!("--date=@{}", build.epoch));
    let date = shell::output(date.env("LC_ALL", "C"))?;
    Ok(format!(
        "earmark ({VERSION}) unstable; urgency=medium\n\n  * Release {VERSION}; CHANGELOG.md has \
         what is new.\n\n -- {MAINTAINER}  {}\n",
        date.trim()
    ))
}

/// The package whose static library lintian reads for minutes, if it was compiled for tests.
const LARGE: &str = "libearmark-dev";

/// Fails on what lintian calls an error, and on a warning that no override explains.
pub(super) fn check(build: &Build, packages: &[PathBuf]) -> Result<()> {
    let is_large = |path: &&PathBuf| path.ends_with(file(LARGE));
    let mut packages: Vec<_> = packages.iter().collect();
    if build.profile == Profile::Dev {
        packages.retain(|path| !is_large(path));
        println!("lintian reads {LARGE} only where it is compiled for a release");
    }
    let mut lintian = shell::command("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning", "--suppress-tags"]);
    // This is no upload to Debian, and closes no bug of it.
    lintian.arg("initial-upload-closes-no-bugs");
    shell::run(lintian.args(packages)).context("what lintian says is printed above")
}

//! Everything that is made.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;

use super::report::Report;
use super::stage::{Build, COMMAND, Flavour, VERSION};
use super::{deb, sbom, tarball};

/// What was made.
pub(super) struct Artefacts {
    pub packages: Vec<PathBuf>,
    pub tarball: PathBuf,
    pub bills: Vec<PathBuf>,
}

impl Artefacts {
    /// All of them.
    pub(super) fn all(&self) -> Vec<&Path> {
        let all = self.packages.iter().chain([&self.tarball]).chain(&self.bills);
        all.map(PathBuf::as_path).collect()
    }

    /// Compiles and packs everything, and takes the time.
    pub(super) fn make(build: &Build, report: &mut Report) -> Result<Self> {
        let started = Instant::now();
        build.compile_native()?;
        let native = started.elapsed();
        build.compile_musl()?;
        let musl = started.elapsed() - native;
        let started = Instant::now();
        let packages = deb::make(build)?;
        let packaging = started.elapsed();
        let started = Instant::now();
        let tarball = tarball::make(build)?;
        let archiving = started.elapsed();
        let mut bills = Vec::new();
        for (package, of_crate) in deb::PACKAGES {
            let name = format!("{package}_{VERSION}_amd64");
            bills.push(sbom::make(build, &name, of_crate, Flavour::Native)?);
        }
        let name = format!("earmark-{VERSION}-x86_64-linux-musl");
        bills.push(sbom::make(build, &name, COMMAND, Flavour::Musl)?);
        report.steps = vec![
            ("compile for packages", native),
            ("compile the static command", musl),
            ("packages", packaging),
            ("tarball", archiving),
        ];
        let artefacts = Self { packages, tarball, bills };
        for path in artefacts.all() {
            report.artefact(path)?;
        }
        Ok(artefacts)
    }
}

//! Everything that is made.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::Result;

use super::report::Totals;
use super::stage::{Build, COMMAND, Flavour, Profile, VERSION};
use super::{deb, sbom, tarball};

/// Files to ship.
pub(super) struct Artefacts {
    pub packages: Vec<PathBuf>,
    /// None where only packages are made.
    pub tarball: Option<PathBuf>,
    /// Bills of materials; none of builds that are thrown away.
    pub bills: Vec<PathBuf>,
}

impl Artefacts {
    pub(super) fn all(&self) -> Vec<&Path> {
        let all = self.packages.iter().chain(&self.tarball).chain(&self.bills);
        all.map(PathBuf::as_path).collect()
    }

    /// Compiles and packs packages, and with `has_tarball` the static command; takes the time.
    pub(super) fn make(build: &Build, report: &mut Totals, has_tarball: bool) -> Result<Self> {
        let mut step = |name, work: &mut dyn FnMut() -> Result<()>| -> Result<()> {
            let started = Instant::now();
            work()?;
            report.steps.push((name, started.elapsed()));
            Ok(())
        };
        let mut made = Self { packages: Vec::new(), tarball: None, bills: Vec::new() };
        step("compile for packages", &mut || build.compile_native())?;
        step("packages", &mut || {
            made.packages = deb::make(build)?;
            Ok(())
        })?;
        if has_tarball {
            step("compile the static command", &mut || build.compile_musl())?;
            step("tarball", &mut || {
                made.tarball = Some(tarball::make(build)?);
                Ok(())
            })?;
        }
        if build.profile == Profile::Release {
            for (package, of_crate) in deb::PACKAGES {
                let name = format!("{package}_{VERSION}_amd64");
                made.bills.push(sbom::make(build, &name, of_crate, Flavour::Native)?);
            }
            let name = format!("earmark-{VERSION}-x86_64-linux-musl");
            made.bills.push(sbom::make(build, &name, COMMAND, Flavour::Musl)?);
        }
        for path in made.all() {
            report.artefact(path)?;
        }
        Ok(made)
    }
}

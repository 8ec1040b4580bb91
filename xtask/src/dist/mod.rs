//! What users install, made and tried: packages, tarball, bills of materials, crates.
//!
//! | file | what |
//! |---|---|
//! | `stage.rs` | compiles everything, and makes the tree of files |
//! | `deb.rs`, `tarball.rs` | packages and tarball of that tree |
//! | `licences.rs`, `allowed.rs`, `sbom.rs` | what is linked, under which licences |
//! | `crates.rs` | the crates that are published |
//! | `bare_root.rs`, `empty_root.rs` | tries them where nothing else is |
//! | `within.rs` | runs a command there |
//! | `twice.rs` | the same bytes, built in another directory |
//! | `report.rs` | sizes and times |

mod allowed;
mod bare_root;
mod crates;
mod deb;
mod empty_root;
mod licences;
mod report;
mod sbom;
mod stage;
mod tarball;
mod twice;
pub(crate) mod within;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::{peers, repo, shell};
use report::Report;
use stage::{Build, Flavour, Profile, VERSION};

/// What `cargo xtask dist` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The same in little time, of what the tests have compiled: nothing to ship
    #[arg(long, conflicts_with = "twice")]
    check: bool,
    /// Build everything again, in another directory, and compare the bytes
    #[arg(long)]
    twice: bool,
}

/// Makes everything, tries it, and says how large it is and how long it took.
pub(crate) fn run(options: &Options) -> Result<()> {
    peers::ensure_packaging()?;
    ensure!(peers::is_root(), "dist tries packages in a root of their own; run it as root");
    let target = repo::target_directory()?;
    let out = target.join("dist");
    let build = if options.check {
        Build::new(repo::root(), &target, &out.join("check"), Profile::Dev)?
    } else {
        Build::new(repo::root(), &out.join("build"), &out, Profile::Release)?
    };
    if options.twice {
        twice::require_committed(&build)?;
    }
    let mut report = Report::default();
    let artefacts = make(&build, &mut report)?;
    deb::check(&artefacts.packages)?;
    crates::check(&build)?;
    report.trial = Some(bare_root::check(&build, &artefacts.packages)?);
    empty_root::check(&build, &artefacts.tarball)?;
    if options.twice {
        twice::compare(&build, &artefacts.all())?;
        report.is_reproduced = true;
    }
    report.write_sums(&build)?;
    report.print();
    if options.check { Ok(()) } else { report.write(&build) }
}

/// Checks licences and sources of all dependencies.
pub(crate) fn check_licences() -> Result<()> {
    allowed::check()
}

/// What was made.
struct Artefacts {
    packages: Vec<PathBuf>,
    tarball: PathBuf,
    bills: Vec<PathBuf>,
}

impl Artefacts {
    fn all(&self) -> Vec<&Path> {
        let all = self.packages.iter().chain([&self.tarball]).chain(&self.bills);
        all.map(PathBuf::as_path).collect()
    }
}

fn make(build: &Build, report: &mut Report) -> Result<Artefacts> {
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
    bills.push(sbom::make(build, &name, stage::COMMAND, Flavour::Musl)?);
    report.steps = vec![
        ("compile for packages", native),
        ("compile the static command", musl),
        ("packages", packaging),
        ("tarball", archiving),
    ];
    let artefacts = Artefacts { packages, tarball, bills };
    for path in artefacts.all() {
        report.artefact(path)?;
    }
    Ok(artefacts)
}

/// The commit that is built.
fn commit(build: &Build) -> Result<String> {
    let mut git = shell::command("git");
    git.args(["rev-parse", "HEAD"]).current_dir(&build.source);
    Ok(shell::output(&mut git)?.trim().to_owned())
}

//! What users install, made and tried: packages, tarball, bills of materials, crates.
//!
//! | file | what |
//! |---|---|
//! | `artefacts.rs` | everything that is made, in order |
//! | `stage.rs` | compiles everything, and makes the tree of files |
//! | `deb.rs`, `tarball.rs` | packages and tarball of that tree |
//! | `licences.rs`, `allowed.rs`, `sbom.rs` | what is linked, under which licences |
//! | `crates.rs` | the crates that are published |
//! | `bare_root.rs`, `empty_root.rs` | tries them where nothing else is |
//! | `booted.rs` | services under a systemd of their own |
//! | `image.rs` | the container image, built and run |
//! | `within.rs`, `mounts.rs` | runs a command there |
//! | `files.rs` | what is there before and after |
//! | `twice.rs` | the same bytes, built in another directory |
//! | `report.rs` | sizes and times |

mod allowed;
mod artefacts;
mod bare_root;
mod booted;
mod crates;
mod deb;
mod empty_root;
mod files;
mod image;
mod licences;
mod mounts;
mod report;
mod sbom;
mod stage;
mod tarball;
mod twice;
pub(crate) mod within;

use anyhow::{Result, ensure};

use crate::{peers, repo};
use artefacts::Artefacts;
use report::Report;
use stage::{Build, Profile};

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
    let artefacts = Artefacts::make(&build, &mut report)?;
    deb::check(&build, &artefacts.packages)?;
    crates::check(&build)?;
    report.trial = Some(bare_root::check(&build, &artefacts.packages)?);
    empty_root::check(&build, &artefacts.tarball)?;
    let image = image::check(&build, &artefacts.tarball)?;
    report.steps.push(("container image", image));
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

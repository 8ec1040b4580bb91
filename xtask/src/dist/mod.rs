//! What users install, made and tried: packages, tarball, bills of materials, crates.
//!
//! | file | what |
//! |---|---|
//! | `artefacts.rs` | everything that is made, in order |
//! | `stage.rs` | compiles everything, and makes the tree of files |
//! | `deb.rs`, `tarball.rs` | packages and tarball of that tree |
//! | `licences.rs`, `sbom.rs` | what is linked, under which licences |
//! | `bare_root.rs`, `empty_root.rs`, `image.rs` | tries them where nothing else is |
//! | `booted.rs` | services under a systemd of their own |
//! | `within.rs` | runs a command there |
//! | `twice.rs` | the same bytes, built in another directory |
//! | `report.rs` | sizes and times |

mod artefacts;
mod bare_root;
mod booted;
mod deb;
mod empty_root;
mod image;
mod licences;
mod report;
mod sbom;
mod stage;
mod tarball;
mod twice;
pub(crate) mod within;

use anyhow::{Result, ensure};

use crate::{peers, repo, shell, tools};
use artefacts::Artefacts;
use report::Totals;
use stage::{Build, Profile};

/// The crates that are published for others, in the order in which they need each other.
pub(crate) const CRATES: [&str; 4] = ["earmark-base", "earmark-nic", "earmark-infer", "earmark-mx"];

/// What `cargo xtask dist` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The same in little time, of what the tests have compiled: nothing to ship, no bills
    #[arg(long, conflicts_with = "twice")]
    check: bool,
    /// Of that, the packages on a bare machine alone: no static command, no image, no crates
    #[arg(long, requires = "check")]
    packages_only: bool,
    /// Build everything again, in another directory, and compare the bytes
    #[arg(long)]
    twice: bool,
}

/// The part that CI runs.
pub(crate) fn check_packages() -> Result<()> {
    println!(
        "NOT CHECKED: the static command, its tarball and image, bills of materials, crates as \
         they are published: `cargo xtask dist --check`, and without --check before a release"
    );
    run(&Options { check: true, packages_only: true, twice: false })
}

/// Makes everything, tries it, and prints how large it is and how long it took.
pub(crate) fn run(options: &Options) -> Result<()> {
    peers::ensure_packaging(!options.packages_only)?;
    ensure!(peers::is_root(), "dist tries packages in a root of their own; run it as root");
    let target = repo::target_directory()?;
    let out = target.join("dist");
    let build = if options.check {
        Build::new(repo::root(), &target, &out.join("check"), Profile::Dev)?
    } else {
        tools::check_dependencies()?;
        Build::new(repo::root(), &out.join("build"), &out, Profile::Release)?
    };
    if options.twice {
        twice::require_committed(&build)?;
    }
    let mut report = Totals::default();
    let artefacts = Artefacts::make(&build, &mut report, !options.packages_only)?;
    deb::check(&build, &artefacts.packages)?;
    report.steps.extend(bare_root::check(&build, &artefacts.packages)?);
    if let Some(tarball) = &artefacts.tarball {
        publish_dry_run(&build)?;
        empty_root::check(&build, tarball)?;
        let image = image::check(&build, tarball)?;
        report.steps.push(("container image", image));
    }
    if options.twice {
        twice::compare(&build, &report)?;
        report.is_reproduced = true;
    }
    report.write_sums(&build)?;
    report.print();
    if options.check { Ok(()) } else { report.write(&build) }
}

/// Packages each crate and compiles what was packaged, as its users will; sends nothing.
fn publish_dry_run(build: &Build) -> Result<()> {
    let mut publish = build.cargo(&["publish", "--dry-run", "--allow-dirty", "--quiet"]);
    publish.args(CRATES.into_iter().flat_map(|package| ["--package", package]));
    shell::run(&mut publish)
}

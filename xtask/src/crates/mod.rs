//! How large each crate is, which depend on which, and where files import each other.

mod layout;
mod measure;
mod picture;
mod workspace;

use std::fs;

use anyhow::{Context, Result};

use crate::repo;
use measure::Crate;
pub(crate) use picture::description;
pub(crate) use workspace::dependencies;

/// Where the picture is, from the root of the repository.
pub(crate) const PICTURE: &str = "docs/crates.svg";

/// What `cargo xtask crates` takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print each cycle, too: its files, a shortest way round, and every import in it
    #[arg(long)]
    cycles: bool,
}

/// Prints the figures and writes the picture.
pub(crate) fn run(options: &Options) -> Result<()> {
    let metadata = repo::metadata()?;
    let crates = measure::all(&metadata, repo::root())?;
    println!("{:<14}{:>7}{:>7}{:>7}  largest file", "crate", "src", "other", "cycles");
    for part in &crates {
        let Crate { name, lines, other_lines, largest, largest_lines, cycles } = part;
        let cycles = cycles.len();
        print!("{name:<14}{lines:>7}{other_lines:>7}{cycles:>7}");
        println!("  {largest_lines:>4} {largest}");
    }
    let sum = |of: fn(&Crate) -> usize| crates.iter().map(of).sum::<usize>();
    let (lines, other) = (sum(|part| part.lines), sum(|part| part.other_lines));
    println!("{:<14}{lines:>7}{other:>7}{:>7}", "all", sum(|part| part.cycles.len()));
    if options.cycles {
        print_cycles(&crates);
    }
    let sizes: Vec<_> = crates.iter().map(|part| (part.name.clone(), part.lines)).collect();
    let svg = picture::draw(&sizes, &dependencies(&metadata));
    fs::write(repo::root().join(PICTURE), svg).with_context(|| format!("writing {PICTURE}"))?;
    println!("\nwritten to {PICTURE}");
    Ok(())
}

fn print_cycles(crates: &[Crate]) {
    for part in crates {
        for cycle in &part.cycles {
            println!("\n{}, {} files: {}", part.name, cycle.files.len(), cycle.files.join(" "));
            println!("  a shortest way round:");
            for step in &cycle.steps {
                println!("    {step}");
            }
            println!("  all imports:");
            for import in &cycle.imports {
                println!("    {import}");
            }
        }
    }
}

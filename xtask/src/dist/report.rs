//! How large everything is, and how long it took.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;

use super::stage::{Build, VERSION, write};
use crate::{repo, shell};

/// What is known at the end.
#[derive(Default)]
pub(super) struct Totals {
    pub steps: Vec<(&'static str, Duration)>,
    /// Whether a second build had the same bytes; false if there was none.
    pub is_reproduced: bool,
    artefacts: Vec<Artefact>,
}

struct Artefact {
    name: String,
    bytes: u64,
    sha256: String,
}

impl Totals {
    /// Takes the size of an artefact.
    pub(super) fn artefact(&mut self, path: &Path) -> Result<()> {
        let bytes =
            fs::metadata(path).with_context(|| format!("look at {}", path.display()))?.len();
        let sum = shell::output(shell::command("sha256sum").arg(path))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let sha256 = sum.split(' ').next().unwrap_or_default().to_owned();
        self.artefacts.push(Artefact { name, bytes, sha256 });
        Ok(())
    }

    /// The names of all artefacts.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.artefacts.iter().map(|it| it.name.as_str())
    }

    /// The SHA-256 of an artefact.
    pub(super) fn sum(&self, name: &str) -> Option<&str> {
        Some(&self.artefacts.iter().find(|it| it.name == name)?.sha256)
    }

    /// Writes the sums as `sha256sum --check` reads them.
    pub(super) fn write_sums(&self, build: &Build) -> Result<()> {
        let line = |it: &Artefact| format!("{}  {}\n", it.sha256, it.name);
        let sums: String = self.artefacts.iter().map(line).collect();
        write(&build.out.join("SHA256SUMS"), &sums)
    }

    /// Prints it as a table.
    pub(super) fn print(&self) {
        println!("\n{:<48} {:>10}", "artefact", "KiB");
        for artefact in &self.artefacts {
            println!("{:<48} {:>10}", artefact.name, artefact.bytes.div_ceil(1024));
        }
        println!("\n{:<48} {:>10}", "step", "s");
        for (name, time) in &self.steps {
            println!("{name:<48} {:>10.1}", time.as_secs_f64());
        }
    }

    /// Writes it into docs/results.
    pub(super) fn write(&self, build: &Build) -> Result<()> {
        let seconds = |time: &Duration| (time.as_secs_f64() * 10.0).round() / 10.0;
        let steps =
            self.steps.iter().map(|(name, time)| ((*name).to_owned(), seconds(time).into()));
        let artefact =
            |it: &Artefact| json!({"file": it.name, "bytes": it.bytes, "sha256": it.sha256});
        let json = json!({
            "version": VERSION,
            "commit": build.commit()?,
            "artefacts": self.artefacts.iter().map(artefact).collect::<Vec<_>>(),
            "seconds": steps.collect::<serde_json::Map<_, _>>(),
            "same_bytes_in_another_directory": self.is_reproduced,
        });
        let path = repo::root().join("docs/results/dist.json");
        fs::write(&path, serde_json::to_string_pretty(&json)? + "\n")
            .with_context(|| format!("write {}", path.display()))?;
        println!("\nwrote {}; the artefacts are in {}", path.display(), build.out.display());
        Ok(())
    }
}

//! What commands with shards have in common: what one shard prints, and what is printed of all.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use bench::sweep::{
    self, Merged, OpenedFile, Partial, Results, Shard, ShardFile, ShardPosition, Sweep,
};
use report::{json, outln};
use sys::files;

/// The commit that this program is built from.
const COMMIT: &str = env!("EARMARK_COMMIT");

/// Prints the results of a shard, in one line: nobody reads it before it is merged.
///
/// # Errors
/// If an argument is no UTF-8.
pub(crate) fn print_shard(
    shard: Shard,
    inputs: BTreeMap<String, String>,
    cases: u64,
    results: &impl Serialize,
) -> Result<()> {
    let file =
        ShardFile::new(ShardPosition { shard, cases }, Sweep::of_process(COMMIT, inputs)?, results);
    outln!("{}", serde_json::to_string(&file)?);
    Ok(())
}

/// What is merged, and where it goes.
pub(crate) struct Merging<'a> {
    pub(crate) files: &'a [OpenedFile],
    pub(crate) may_be_partial: bool,
    pub(crate) json: bool,
    pub(crate) output: Option<&'a Path>,
}

/// An outcome that some shards may be missing from.
#[derive(Serialize)]
struct Marked<'a, T> {
    #[serde(flatten)]
    outcome: &'a T,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<&'a Partial>,
}

impl Merging<'_> {
    /// The results of the shards.
    ///
    /// # Errors
    /// If they are not those of one sweep, or incomplete.
    pub(crate) fn results<R: Results>(&self) -> Result<Merged<R>> {
        sweep::merge(self.files, self.may_be_partial)
    }

    /// Prints `outcome`: as JSON, or as `print` does; and writes it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn finish(
        &self,
        outcome: &impl Serialize,
        partial: Option<&Partial>,
        print: impl FnOnce(),
    ) -> Result<()> {
        let json = json::text(&Marked { outcome, partial })?;
        if let Some(path) = self.output {
            files::write(path, format!("{json}\n").as_bytes())
                .with_context(|| format!("write {}; choose another place", path.display()))?;
        }
        if self.json {
            outln!("{json}");
            return Ok(());
        }
        print();
        if let Some(partial) = partial {
            outln!("{}", partial.in_words());
        }
        Ok(())
    }
}

//! `earmark merge`: one result of what the shards of a command have printed; and what commands with
//! shards have in common.
//!
//! The files have the command line of their sweep. It is read as any is, and its command makes the
//! result of what the shards have, as it does of what it runs itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use bench::shard::Shard;
use report::{json, outln};
use serde::Serialize;
use sys::files;
use worlds::sweep::{self, Merged, OpenedFile, Partial, Results, ShardFile, ShardPosition, Sweep};

use super::mx::{MxCommand, soak};
use super::{bench as comparison, reproduce};
use crate::cli::{BenchOutput, Command, MergeArgs};
use crate::{command_line, probe_blind};

/// The commit that this program is built from.
const COMMIT: &str = env!("EARMARK_COMMIT");

/// Prints the results of a shard, in one line.
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
    pub(crate) fn results<R: Results>(&self) -> Result<Merged<R>> {
        sweep::merge(self.files, self.may_be_partial)
    }

    /// Prints `outcome`: as JSON, or as `print` does; and writes it.
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

/// Merges what `args` name, and prints it; the exit status.
pub(crate) fn run(args: &MergeArgs) -> Result<ExitCode> {
    let MergeArgs { files, partial, output, report, printed } = args;
    let files: Vec<_> = files.iter().map(|it| OpenedFile::open(it)).collect::<Result<_>>()?;
    let command = command_of(&files)?;
    let BenchOutput { json, histogram, ratios, svg } = printed;
    ensure!(
        matches!(command, Command::Bench(_)) || !histogram && !ratios && svg.is_none(),
        "--histogram, --ratios and --svg are for shards of bench; drop them"
    );
    ensure!(
        matches!(command, Command::Reproduce(_)) || report.is_none(),
        "--report is for shards of reproduce; drop it"
    );
    let (json, output) = (*json, output.as_deref());
    let merging = Merging { files: &files, may_be_partial: *partial, json, output };
    match command {
        Command::Bench(of) => comparison::merge(&of, &merging, printed)?,
        Command::Reproduce(of) => reproduce::merge(&of, &merging, report.as_deref())?,
        Command::ProbeBlind(of) => probe_blind::merge(&of, &merging)?,
        Command::Mx(MxCommand::Soak(of)) => return soak::merge(&of, &merging),
        _ => bail!("{}: its command has no shards", args.files[0].display()),
    }
    Ok(ExitCode::SUCCESS)
}

/// The command whose shards `files` are.
fn command_of(files: &[OpenedFile]) -> Result<Command> {
    let first = files.first().context("there is no file to merge")?;
    let words = std::iter::once("earmark").chain(first.arguments().iter().map(String::as_str));
    let cli = command_line::parse(words).map_err(|error| {
        let line = first.arguments().join(" ");
        anyhow::anyhow!("{}: this Earmark cannot read `{line}`: {error}", first.path().display())
    });
    Ok(cli?.command)
}

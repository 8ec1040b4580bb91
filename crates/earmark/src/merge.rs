//! `earmark merge`: one result of what the shards of a command have printed.
//!
//! The files have the command line of their sweep. It is read as any is, and its command makes the
//! result of what the shards have, as it does of what it runs itself.

use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use bench::sweep::OpenedFile;

use crate::cli::{BenchOutput, Command, MergeArgs};
use crate::command::merged::Merging;
use crate::command::mx::{MxCommand, soak};
use crate::command::{bench as comparison, reproduce};
use crate::{command_line, probe_blind};

/// Merges what `args` name, and prints it; the exit status.
///
/// # Errors
/// If files are not those of all shards of one sweep, or the result cannot be written.
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

//! One result of the files of all shards.

use anyhow::{Result, bail, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::file::{OpenedFile, Sweep};
use super::shard::Shard;

/// What shards of a command have as results.
pub trait Results: DeserializeOwned {
    /// Whether a shard that is run once more may return `other`: dates, loads and durations aside
    /// they are the same.
    fn repeats(&self, other: &Self) -> bool;
}

/// The results of the shards of one sweep, each shard once, in their order.
#[derive(Debug)]
pub struct Merged<R> {
    /// The sweep.
    pub sweep: Sweep,
    /// How many cases all shards have together, those that are missing among them.
    pub cases: u64,
    /// What the shards returned.
    pub shards: Vec<(Shard, R)>,
    /// Which are missing, if any are.
    pub partial: Option<Partial>,
}

/// The mark of a result that some shards are missing from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Partial {
    /// How many shards there are.
    pub shards: u32,
    /// The indices of those that are missing.
    pub missing: Vec<u32>,
}

impl Partial {
    /// In words.
    #[must_use]
    pub fn in_words(&self) -> String {
        format!("Partial: of {} shards, {} missing.", self.shards, are(&self.missing))
    }
}

/// Reads the results of `files`, which must be those of one sweep, and complete; with
/// `may_be_partial`, some may be missing. A shard that is there twice counts once.
///
/// # Errors
/// If a file belongs to another sweep, a shard is missing, or two files of one shard differ.
pub fn merge<R: Results>(files: &[OpenedFile], may_be_partial: bool) -> Result<Merged<R>> {
    let Some(first) = files.first() else { bail!("there is no file to merge") };
    let of = first.place.shard.of();
    let mut shards: Vec<(&OpenedFile, R)> = Vec::new();
    for file in files {
        check_same_sweep(first, file)?;
        let results: R = file.results()?;
        match shards.iter().find(|(there, _)| there.place == file.place) {
            None => shards.push((file, results)),
            Some((_, there)) if there.repeats(&results) => {}
            Some((there, _)) => bail!(
                "{} and {} are both shard {}, with different results; merge one of them",
                there.path.display(),
                file.path.display(),
                file.place.shard
            ),
        }
    }
    shards.sort_by_key(|(file, _)| file.place.shard.index());
    let is_there = |index: u32| shards.iter().any(|(file, _)| file.place.shard.index() == index);
    let missing: Vec<u32> = (1..=of).filter(|index| !is_there(*index)).collect();
    ensure!(
        missing.is_empty() || may_be_partial,
        "of {of} shards, {} missing; run them, or give --partial to merge the others",
        are(&missing)
    );
    let partial = (!missing.is_empty()).then_some(Partial { shards: of, missing });
    let (sweep, cases) = (first.sweep.clone(), first.place.cases);
    let shards = shards.into_iter().map(|(file, results)| (file.place.shard, results)).collect();
    Ok(Merged { sweep, cases, shards, partial })
}

/// Refuses `other` if it is not of the sweep that `one` is of.
fn check_same_sweep(one: &OpenedFile, other: &OpenedFile) -> Result<()> {
    let (a, b) = (&one.sweep, &other.sweep);
    let pairs = [
        ("versions of Earmark", a.earmark.clone(), b.earmark.clone()),
        ("commits of Earmark", a.commit.clone(), b.commit.clone()),
        ("command lines", a.arguments.join(" "), b.arguments.join(" ")),
        ("numbers of shards", one.place.shard.of().to_string(), other.place.shard.of().to_string()),
        ("numbers of cases", one.place.cases.to_string(), other.place.cases.to_string()),
    ];
    let (one, other) = (one.path.display(), other.path.display());
    for (what, of_one, of_other) in pairs {
        ensure!(
            of_one == of_other,
            "{one} and {other} have different {what}: `{of_one}` and `{of_other}`; merge shards \
             of one sweep"
        );
    }
    for (option, text) in &a.inputs {
        ensure!(
            b.inputs.get(option) == Some(text),
            "{one} and {other}: the file of --{option} was not the same; merge shards of one sweep"
        );
    }
    ensure!(a == b, "{one} and {other} are not shards of one sweep");
    Ok(())
}

/// At most ten of `indices`, with their verb.
fn are(indices: &[u32]) -> String {
    let listed: Vec<_> = indices.iter().take(10).map(u32::to_string).collect();
    let more = indices.len() - listed.len();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let verb = if indices.len() == 1 { "is" } else { "are" };
    format!("{}{rest} {verb}", listed.join(", "))
}

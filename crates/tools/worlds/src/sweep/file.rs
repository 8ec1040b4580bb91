//! What a shard writes, and how it is read again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use bench::shard::{Shard, without_shard};
use report::json::SCHEMA_VERSION;
use sys::files::read_text;

/// No file of a shard has more bytes.
const LARGEST: u64 = 1 << 28;

/// What all shards of a sweep have in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The version of Earmark.
    pub earmark: String,
    /// The commit that it was built from, with a mark of what was changed since.
    pub commit: String,
    /// The command and its arguments, without `--shard`.
    pub arguments: Vec<String>,
    /// The text of each file that the arguments name, by option.
    pub inputs: BTreeMap<String, String>,
}

/// Which shard of how many cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardPosition {
    /// Index and number of shards.
    #[serde(flatten)]
    pub shard: Shard,
    /// How many cases all shards have together.
    pub cases: u64,
}

impl Sweep {
    /// That of this process, which was built from `commit`.
    pub fn of_process(commit: &str, inputs: BTreeMap<String, String>) -> Result<Self> {
        let words: Result<Vec<String>, _> =
            std::env::args_os().skip(1).map(std::ffi::OsString::into_string).collect();
        let words = words.map_err(|word| {
            anyhow::anyhow!("{}: a shard's arguments must be UTF-8", word.display())
        })?;
        Ok(Self {
            earmark: env!("CARGO_PKG_VERSION").to_owned(),
            commit: commit.to_owned(),
            arguments: without_shard(words.into_iter()).collect(),
            inputs,
        })
    }
}

/// What a shard prints: its results, and what they belong to.
#[derive(Debug, Serialize, Deserialize)]
pub struct ShardFile<R> {
    /// [`SCHEMA_VERSION`] of its writer.
    pub schema_version: u32,
    /// Which shard it is.
    pub shard: ShardPosition,
    /// Of which sweep.
    pub sweep: Sweep,
    /// What came of its cases.
    pub results: R,
}

impl<R: Serialize> ShardFile<R> {
    /// The results of one shard.
    pub fn new(shard: ShardPosition, sweep: Sweep, results: R) -> Self {
        Self { schema_version: SCHEMA_VERSION, shard, sweep, results }
    }
}

/// The head of such a file; the results are left out.
#[derive(Debug, Deserialize)]
struct Head {
    schema_version: u32,
    shard: ShardPosition,
    sweep: Sweep,
}

/// A file whose head has been read. Results, which may be large, are read one file after the other.
#[derive(Debug)]
pub struct OpenedFile {
    pub(super) path: PathBuf,
    pub(super) place: ShardPosition,
    pub(super) sweep: Sweep,
}

impl OpenedFile {
    /// Reads a file that a shard has written, without its results.
    pub fn open(path: &Path) -> Result<Self> {
        let doing = || format!("read shard {}", path.display());
        let text = read_text(path, LARGEST).with_context(doing)?;
        Self::parse(path, &text).with_context(doing)
    }

    /// Reads the text of such a file.
    pub fn parse(path: &Path, text: &str) -> Result<Self> {
        let (place, sweep) = head(text)?;
        Ok(Self { path: path.to_owned(), place, sweep })
    }

    /// Which shard it is of.
    pub fn shard(&self) -> Shard {
        self.place.shard
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The command that it is a shard of, and its arguments.
    pub fn arguments(&self) -> &[String] {
        &self.sweep.arguments
    }

    pub(super) fn results<R: DeserializeOwned>(&self) -> Result<R> {
        let path = &self.path;
        let doing = || format!("read the results of shard {}", path.display());
        let text = read_text(path, LARGEST).with_context(doing)?;
        let file: ShardFile<R> = serde_json::from_str(&text).with_context(doing)?;
        let is_same = file.shard == self.place && file.sweep == self.sweep;
        ensure!(is_same, "{} was written to while it was read; merge again", path.display());
        Ok(file.results)
    }
}

fn head(text: &str) -> Result<(ShardPosition, Sweep)> {
    ensure!(!text.trim().is_empty(), "it is empty: that shard failed; run it again");
    let head: Result<Head, _> = serde_json::from_str(text);
    let Head { schema_version, shard, sweep } = head.map_err(|error| {
        let next = if error.is_eof() {
            "it ends too early; run that shard again"
        } else {
            "it is not what a command with --shard prints"
        };
        anyhow::anyhow!("{next} ({error})")
    })?;
    ensure!(
        schema_version == SCHEMA_VERSION,
        "its schema_version is {schema_version}, and this Earmark reads {SCHEMA_VERSION}"
    );
    // A file may say anything.
    shard.shard.to_string().parse::<Shard>().map_err(anyhow::Error::msg)?;
    Ok((shard, sweep))
}

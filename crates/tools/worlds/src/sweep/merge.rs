//! One result of the files of all shards.

use anyhow::{Result, bail, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::file::{OpenedFile, Sweep};
use bench::shard::Shard;

/// What shards of a command have as results.
pub trait Results: DeserializeOwned {
    /// Whether a shard that is run once more may return `other`: dates, loads and durations aside
    /// they are the same.
    fn repeats(&self, other: &Self) -> bool;
}

/// The results of the shards of one sweep, each shard once, in their order.
#[derive(Debug)]
pub struct Merged<R> {
    /// The sweep of all shards.
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
    /// The same in words.
    pub fn in_words(&self) -> String {
        format!("Partial: of {} shards, {} missing.", self.shards, are(&self.missing))
    }
}

/// Reads the results of `files`, which must be those of one sweep, and complete; with
/// `may_be_partial`, some may be missing. A shard that is there twice counts once.
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::sweep::{ShardFile, ShardPosition};

    impl Results for Vec<u32> {
        fn repeats(&self, other: &Self) -> bool {
            self == other
        }
    }

    type Change = fn(&mut ShardFile<Vec<u32>>);

    /// Files of shards, in a folder that goes away with them.
    struct Files {
        folder: PathBuf,
        count: usize,
    }

    impl Drop for Files {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    impl Files {
        fn new(test: &str) -> Self {
            let name = format!("earmark-merge-{test}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            Self { folder, count: 0 }
        }

        fn text(&mut self, text: &str) -> Result<OpenedFile> {
            let path = self.folder.join(self.count.to_string());
            self.count += 1;
            fs::write(&path, text).unwrap();
            OpenedFile::open(&path)
        }

        /// A shard of five cases, with results that are their numbers, after `change`.
        fn shard(
            &mut self,
            shard: &str,
            change: impl FnOnce(&mut ShardFile<Vec<u32>>),
        ) -> Result<OpenedFile> {
            let shard: Shard = shard.parse().unwrap();
            let sweep = Sweep {
                earmark: "1.2.3".into(),
                commit: "abc".into(),
                arguments: vec!["bench".into(), "ping".into()],
                inputs: BTreeMap::from([("scenario".into(), "story".into())]),
            };
            let results = shard.cases(5).map(|case| case as u32).collect();
            let mut file = ShardFile::new(ShardPosition { shard, cases: 5 }, sweep, results);
            change(&mut file);
            self.text(&serde_json::to_string(&file).unwrap())
        }
    }

    fn error(files: &[OpenedFile], may_be_partial: bool) -> String {
        format!("{:#}", merge::<Vec<u32>>(files, may_be_partial).unwrap_err())
    }

    #[test]
    fn all_shards_are_one_result_in_their_order_and_a_repeated_one_counts_once() {
        let mut files = Files::new("all");
        let names = ["3/3", "1/3", "2/3", "1/3"];
        let opened = names.map(|shard| files.shard(shard, |_| ()).unwrap());
        let merged = merge::<Vec<u32>>(&opened, false).unwrap();
        assert_eq!((merged.cases, merged.partial), (5, None));
        let results: Vec<_> = merged.shards.into_iter().map(|(_, results)| results).collect();
        assert_eq!(results, [vec![0, 3], vec![1, 4], vec![2]]);
    }

    #[test]
    fn missing_shards_are_named_and_a_partial_result_says_which() {
        let mut files = Files::new("missing");
        let opened = ["2/4", "4/4"].map(|shard| files.shard(shard, |_| ()).unwrap());
        assert!(error(&opened, false).starts_with("of 4 shards, 1, 3 are missing; run them, or"));
        let merged = merge::<Vec<u32>>(&opened, true).unwrap();
        assert_eq!(merged.partial, Some(Partial { shards: 4, missing: vec![1, 3] }));
        let many = [files.shard("7/1000000", |_| ()).unwrap()];
        let error = error(&many, false);
        assert!(error.contains("9, 10, 11 and 999989 more are missing"), "{error}");
    }

    #[test]
    fn a_shard_that_is_run_twice_with_different_results_is_refused_with_both_files() {
        let mut files = Files::new("twice");
        let one = files.shard("1/1", |_| ()).unwrap();
        let other = files.shard("1/1", |file| file.results[0] = 9).unwrap();
        let error = error(&[one, other], false);
        assert!(error.contains("/0 and ") && error.contains("/1 are both shard 1/1"), "{error}");
    }

    #[test]
    fn shards_of_another_sweep_are_refused_with_the_difference() {
        let mut files = Files::new("other");
        let changes: [(Change, &str); 7] = [
            (|file| file.sweep.earmark = "1.2.4".into(), "versions of Earmark: `1.2.3` and"),
            (|file| file.sweep.commit = "abd".into(), "commits of Earmark: `abc` and `abd`"),
            (|file| file.sweep.arguments.truncate(1), "command lines: `bench ping` and `bench`"),
            (|file| file.shard.cases = 6, "numbers of cases: `5` and `6`"),
            (|file| file.shard.shard = "2/3".parse().unwrap(), "numbers of shards: `2` and `3`"),
            (|file| file.sweep.inputs.values_mut().for_each(String::clear), "file of --scenario"),
            (|file| file.sweep.inputs.clear(), "file of --scenario was not the same"),
        ];
        for (change, says) in changes {
            let one = files.shard("1/2", |_| ()).unwrap();
            let other = files.shard("2/2", change).unwrap();
            let error = error(&[one, other], true);
            assert!(error.contains(says), "no `{says}` in: {error}");
        }
    }

    #[test]
    fn what_no_shard_wrote_is_refused_with_the_reason() {
        let mut files = Files::new("wrong");
        let whole = {
            let file = files.shard("1/2", |_| ()).unwrap();
            fs::read_to_string(file.path()).unwrap()
        };
        for (text, says) in [
            ("", "it is empty: that shard failed"),
            (&whole[..whole.len() / 2], "it ends too early; run that shard again"),
            ("{}", "not what a command with --shard prints (missing field `schema_version`"),
            ("slurmstepd: error: killed", "not what a command with --shard prints"),
            (&whole.replace(r#""index":1"#, r#""index":3"#), "counted from 1 to N"),
            (&whole.replace(r#""of":2"#, r#""of":0"#), "counted from 1 to N"),
            (&whole.replace(r#""schema_version":2"#, r#""schema_version":1"#), "is 1, and this"),
        ] {
            let error = format!("{:#}", files.text(text).unwrap_err());
            assert!(error.starts_with("read shard ") && error.contains(says), "{says}: {error}");
        }
        let strange = files.text(&whole.replace("[0,2,4]", r#"["0"]"#)).unwrap();
        assert!(error(&[strange], true).contains("read the results of shard "));
        let gone = files.shard("1/1", |_| ()).unwrap();
        fs::write(gone.path(), &whole).unwrap();
        assert!(error(&[gone], true).contains("was written to while it was read"));
    }
}

//! One of the parts that the cases of a sweep are dealt out to.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// No sweep has more parts.
const MOST: u32 = 1_000_000;

const OPTION: &str = "--shard";

/// Part `index` of `of`, counted from 1. Cases are dealt out in turn, so that the costly ones,
/// which stand beside each other, are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    index: u32,
    of: u32,
}

/// `--shard`, the same for all commands that run many cases.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct ShardArgs {
    /// Run only part I of N of the cases; `earmark merge` makes one result of all N
    ///
    /// Under Slurm, with --array=1-N: --shard ${SLURM_ARRAY_TASK_ID}/${SLURM_ARRAY_TASK_COUNT}.
    #[arg(long, value_name = "I/N", requires = "json")]
    pub shard: Option<Shard>,
}

impl Shard {
    /// The only shard, of all cases.
    pub const WHOLE: Self = Self { index: 1, of: 1 };

    /// Its number, from 1.
    pub const fn index(self) -> u32 {
        self.index
    }

    /// How many shards there are.
    pub const fn of(self) -> u32 {
        self.of
    }

    /// Whether `case`, counted from 0, is one of its own.
    pub const fn has(self, case: u64) -> bool {
        case % self.of as u64 + 1 == self.index as u64
    }

    /// How many of `count` cases are its own.
    pub const fn count(self, count: u64) -> u64 {
        count / self.of as u64 + (count % self.of as u64 >= self.index as u64) as u64
    }

    /// Its own cases among `count`, ascending.
    pub fn cases(self, count: u64) -> impl Iterator<Item = u64> {
        (u64::from(self.index - 1)..count).step_by(self.of as usize)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |_| format!("`{text}` is no I/N, such as 1/4");
        let (index, of) = text.split_once('/').ok_or_else(|| format!("`{text}` has no N: I/N"))?;
        let (index, of) = (index.parse().map_err(wrong)?, of.parse().map_err(wrong)?);
        if of > MOST {
            Err(format!("there are at most {MOST} shards, and not {of}"))
        } else if (1..=of).contains(&index) {
            Ok(Self { index, of })
        } else {
            Err(format!("`{text}`: shards are counted from 1 to N (sbatch --array=1-N)"))
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// The words of a command line without the shard: what all shards of a sweep have in common.
pub fn without_shard(words: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let mut skips = false;
    words.filter(move |word| {
        let is_value = std::mem::replace(&mut skips, word == OPTION);
        let is_both = word.strip_prefix(OPTION).is_some_and(|rest| rest.starts_with('='));
        !is_value && !skips && !is_both
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shards_of_any_number_have_each_case_once() {
        for of in 1..=40 {
            for count in 0..=90 {
                let mut cases = Vec::new();
                for index in 1..=of {
                    let shard = Shard { index, of };
                    let own: Vec<u64> = shard.cases(count).collect();
                    let asked = (0..count).filter(|case| shard.has(*case));
                    assert_eq!(own, asked.collect::<Vec<_>>(), "{shard} of {count}");
                    assert_eq!(own.len() as u64, shard.count(count), "{shard} of {count}");
                    let fair = count / u64::from(of);
                    assert!((fair..=fair + 1).contains(&(own.len() as u64)), "{shard} of {count}");
                    cases.extend(own);
                }
                cases.sort_unstable();
                assert_eq!(cases, (0..count).collect::<Vec<_>>(), "{of} shards");
            }
        }
    }

    #[test]
    fn a_shard_is_written_as_it_is_read() {
        for text in ["1/1", "3/7", "1000000/1000000"] {
            assert_eq!(text.parse::<Shard>().unwrap().to_string(), text);
        }
        for (text, says) in [
            ("", "has no N"),
            ("3", "has no N"),
            ("0/4", "counted from 1"),
            ("5/4", "counted from 1"),
            ("1/0", "counted from 1"),
            ("-1/4", "is no I/N"),
            ("1/4/2", "is no I/N"),
            ("/", "is no I/N"),
            ("1/1000001", "at most 1000000"),
            ("1/99999999999", "is no I/N"),
        ] {
            let error = text.parse::<Shard>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_command_line_loses_its_shard_and_nothing_else() {
        let kept = |line: &str| {
            let words = line.split(' ').map(str::to_owned);
            without_shard(words).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(kept("bench ping --shard 1/3 --json"), "bench ping --json");
        assert_eq!(kept("bench ping --json --shard=1/3"), "bench ping --json");
        assert_eq!(kept("bench ping --shards 1/3"), "bench ping --shards 1/3");
    }
}

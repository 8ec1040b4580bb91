//! What chooses queues and processors, as text: rules with their places, the table of the hash,
//! sets of processors.

use std::fmt;
use std::str::FromStr;

use netdev::ethtool::FlowRule;
use sys::cpus::{parse_list, write_list};

/// No table has more entries.
const MAX_ENTRIES: usize = 65_536;

/// Whatever place the driver chooses.
const ANY: &str = "any";

const NONE: &str = "none";

/// A rule at a place of its own. Which rule it is belongs to its name: a journal of one that was
/// added can only ever remove that one, and not what somebody else has put there since.
///
/// As text `1023:tcp4,dst-port:11211,queue:1`. Some drivers choose places by themselves; then it is
/// `any`, and the rule is known by its content alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placed {
    /// Its location: drivers look at lower ones first, or at all at once. `None`: the driver's
    /// choice.
    pub location: Option<u32>,
    pub rule: FlowRule,
}

impl FromStr for Placed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (location, rule) = text.split_once(':').unwrap_or((text, ""));
        let number = location.parse().ok().map(Some);
        let location = number.or((location == ANY).then_some(None)).ok_or_else(|| {
            format!(
                "rule:{text}: a rule has a place, as in rule:1023:tcp4,dst-port:11211,queue:1, or \
                 {ANY}; `{location}` is none"
            )
        })?;
        Ok(Self { location, rule: rule.parse()? })
    }
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.location {
            Some(location) => write!(f, "{location}:{}", self.rule),
            None => write!(f, "{ANY}:{}", self.rule),
        }
    }
}

/// A table of queues as text: what it repeats, and how many entries it has. `0,1/128` is 0, 1, 0,
/// 1, ... up to the 128th; `0:127,1` is 0 for 127 times, and then 1.
pub(crate) fn table_text(table: &[u32]) -> String {
    let repeats = |length: &usize| (0..table.len()).all(|at| table[at] == table[at % length]);
    let period = (1..table.len()).find(repeats).unwrap_or(table.len());
    let runs: Vec<String> = table[..period]
        .chunk_by(|one, next| one == next)
        .map(|run| match run {
            [queue] => queue.to_string(),
            run => format!("{}:{}", run[0], run.len()),
        })
        .collect();
    let size = if period < table.len() { format!("/{}", table.len()) } else { String::new() };
    runs.join(",") + &size
}

pub(crate) fn parse_table(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || {
        format!(
            "{text}: queues, as in 0,1/128: 0 and 1 in turn, 128 entries in all; 0:127,1 is 0 \
                 for 127 times"
        )
    };
    let (runs, size) = match text.split_once('/') {
        Some((runs, size)) => (runs, Some(size.parse().map_err(|_| wrong())?)),
        None => (text, None),
    };
    let mut once = Vec::new();
    for run in runs.split(',') {
        let (queue, times) = run.split_once(':').unwrap_or((run, "1"));
        let (Ok(queue), Ok(times)) = (queue.parse::<u32>(), times.parse::<usize>()) else {
            return Err(wrong());
        };
        if times > MAX_ENTRIES - once.len() {
            return Err(wrong());
        }
        once.extend(std::iter::repeat_n(queue, times));
    }
    let size = size.unwrap_or(once.len());
    if once.is_empty() || !(1..=MAX_ENTRIES).contains(&size) || once.len() > size {
        return Err(wrong());
    }
    Ok(once.iter().copied().cycle().take(size).collect())
}

pub(crate) fn cpus_text(cpus: &[u32]) -> String {
    if cpus.is_empty() { NONE.into() } else { write_list(cpus) }
}

pub(crate) fn parse_cpus(text: &str) -> Result<Vec<u32>, String> {
    let cpus = if text == NONE { Some(Vec::new()) } else { parse_list(text) };
    cpus.filter(|cpus| text == NONE || !cpus.is_empty())
        .ok_or_else(|| format!("{text}: processors, as in 0-3,8, or none"))
}

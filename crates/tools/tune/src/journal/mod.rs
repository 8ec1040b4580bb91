//! The journal: what a device was like before Earmark changed it, on disk before it is changed.
//!
//! # Theory of operation
//!
//! One file for each device, in a directory that does not outlive the machine's boot, as the
//! settings themselves do not. It has two parts:
//!
//! - *trying*: somebody is changing the device right now, and this is how all of it was before. It
//!   is to be undone unless the process that changes it says that it is done, which holds a lock
//!   on the file beside; the kernel lets go of the lock when the process ends, whatever ends it. So
//!   a *trying* without a lock is that of a dead process, and the process that finds it undoes it.
//! - *kept*: changes that are done, each with the value from before the first one, so that `earmark
//!   rollback` finds the way back.
//!
//! A journal is replaced as a whole: written beside, synchronised, renamed over the old one, and
//! the directory synchronised. There is no moment at which a reader, or the next boot, finds half
//! of one. A journal of an earlier boot, or of a device that is gone, has nothing to undo.

mod store;

pub(crate) use store::Held;
pub use store::Store;

use serde::{Deserialize, Serialize};

use super::device::Identity;
use super::setting::{Setting, State, Value};

/// The nanoseconds that a guard may take to undo a change whose time is over.
const TIME_TO_UNDO: u64 = 5_000_000_000;

/// Where the journals of root are. All users may read them, so that `earmark show` and an exporter
/// without rights see what is overdue; what they say can be read of the devices, too.
pub(crate) const OF_ROOT: &str = "/run/earmark";

pub(crate) const SCHEMA: u32 = 1;

/// What is known of a device's past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journal {
    /// The version of the layout, `SCHEMA`.
    pub schema: u32,
    /// The boot in which it was written, as `/proc/sys/kernel/random/boot_id` has it.
    pub boot: String,
    /// The device that it is about.
    pub device: Identity,
    /// A change that is going on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trying: Option<Trying>,
    /// Changes that are done.
    #[serde(default)]
    pub kept: Vec<Kept>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trying {
    pub(crate) what: String,
    pub(crate) process: u32,
    pub(crate) before: State,
    #[serde(default)]
    pub changed: Vec<Kept>,
    /// Until when the user may confirm, in nanoseconds of `CLOCK_BOOTTIME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

impl Trying {
    /// Whether guards that live would have undone it by `now`, for want of a confirmation.
    pub(crate) fn is_overdue(&self, now: u64) -> bool {
        self.until.is_some_and(|until| now > until.saturating_add(TIME_TO_UNDO))
    }
}

/// A setting that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// The setting, by its name.
    pub setting: Setting,
    /// What it was before the first change.
    pub before: Value,
    /// What the last change made it.
    pub after: Value,
}

impl Journal {
    /// An empty one.
    pub fn new(boot: &str, device: Identity) -> Self {
        Self { schema: SCHEMA, boot: boot.to_owned(), device, trying: None, kept: Vec::new() }
    }

    /// Whether nothing in it can be undone.
    pub fn is_empty(&self) -> bool {
        self.trying.is_none() && self.kept.is_empty()
    }

    /// Adds changes that are done to those before; what is as it first was is none any more,
    /// except for a queue where the way back of its device would overwrite it.
    pub fn keep(&mut self, changed: Vec<Kept>) {
        let earlier = self.kept.clone();
        for mut change in changed {
            if let Some(kept) = self.kept.iter_mut().find(|kept| kept.setting == change.setting) {
                kept.after = change.after;
                continue;
            }
            // What a queue had from an earlier change of its device, that one has brought.
            let device = change.setting.of_device();
            let device = earlier.iter().find(|kept| Some(kept.setting) == device);
            if let Some(device) = device.filter(|device| device.after == change.before) {
                change.before = device.before.clone();
            }
            self.kept.push(change);
        }
        let devices = self.kept.iter().filter(|kept| kept.before != kept.after);
        let devices: Vec<Setting> = devices.map(|kept| kept.setting).collect();
        let is_overwritten =
            |kept: &Kept| kept.setting.of_device().is_some_and(|of| devices.contains(&of));
        self.kept.retain(|kept| kept.before != kept.after || is_overwritten(kept));
    }

    /// How the device was before the first change that was kept: those settings alone.
    pub fn first(&self) -> State {
        let pairs = self.kept.iter().map(|kept| (kept.setting, kept.before.clone()));
        State(pairs.collect())
    }
}

pub(crate) fn changed(before: &State, after: &State, asked: &[Setting]) -> Vec<Kept> {
    let pairs = before.0.iter().filter_map(|(setting, before)| {
        let after = after.get(*setting)?;
        Some(Kept { setting: *setting, before: before.clone(), after: after.clone() })
    });
    let differs = |kept: &Kept| {
        // A queue that is as it was, but not as its device.
        let device = kept.setting.of_device();
        let is_apart = device.is_some_and(|device| before.get(device) != after.get(device));
        (kept.before != kept.after || is_apart)
            && (asked.contains(&kept.setting) || !after.is_driven(kept.setting))
    };
    pairs.filter(differs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{identity, state};

    fn journal() -> Journal {
        Journal::new("boot", identity("eth0"))
    }

    /// What is kept of `BEFORE > AFTER; BEFORE > AFTER`, and the way back.
    fn kept(case: &str) -> String {
        let (asked, changes) = case.split_once(": ").unwrap();
        let asked: Vec<Setting> = asked.split(' ').filter_map(|it| it.parse().ok()).collect();
        let mut journal = journal();
        for change in changes.split("; ") {
            let (before, after) = change.split_once(" > ").unwrap();
            journal.keep(changed(&state(before), &state(after), &asked));
        }
        let pair = |kept: &Kept| format!(" {} {} -> {};", kept.setting, kept.before, kept.after);
        let all: String = journal.kept.iter().map(pair).collect();
        format!("{case}\n  kept:{all} first: {}", journal.first()).trim_end().to_owned() + "\n"
    }

    #[test]
    fn the_first_value_is_the_way_back() {
        let expected = include_str!("kept.txt");
        let now: String =
            expected.lines().filter(|line| !line.starts_with(' ')).map(kept).collect();
        assert_eq!(now, expected, "\n{now}");
    }

    #[test]
    fn a_journal_survives_json_and_nonsense_is_refused() {
        let mut journal = journal();
        let (before, after) = (state("rx-usecs 3"), state("rx-usecs 50"));
        journal.trying = Some(Trying {
            what: "apply".into(),
            process: 7,
            before: before.clone(),
            changed: changed(&before, &after, &[]),
            until: Some(5),
        });
        let text = serde_json::to_string(&journal).unwrap();
        assert_eq!(serde_json::from_str::<Journal>(&text).unwrap(), journal);
        for wrong in ["", "{}", &text[..text.len() - 9], &text.replace("rx-usecs", "rx-usec")] {
            assert!(serde_json::from_str::<Journal>(wrong).is_err(), "{wrong}");
        }
    }
}

//! Devices held against a policy: which rules hold, which are broken, which are unknown.
//!
//! A value that a driver does not report is neither allowed nor forbidden: the rule is *unknown*. A
//! rule about a value that the driver chooses holds if it allows all that the driver may choose.

mod fix;
mod found;
mod key;
mod limit;
mod policy;

use serde::Serialize;

use crate::report::Report;
pub(crate) use found::adaptive_of;
use found::{Found, find};
use policy::PolicyRule;
pub use policy::{BUILT_IN, Policy};

/// What became of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compliance {
    /// The device is as the rule wants it.
    Holds,
    /// It is not.
    Broken,
    /// What the rule is about is not known of the device.
    Unknown,
}

/// A rule, and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ruling {
    /// The group of the policy that has the rule.
    pub group: String,
    /// What the rule is about.
    pub rule: &'static str,
    /// What it allows.
    pub allowed: String,
    /// Whether it holds.
    pub outcome: Compliance,
    /// The value, in the rule's unit; `None`: unknown, or the driver chooses.
    pub value: Option<f64>,
    /// The value in words; `None`: unknown.
    pub found: Option<String>,
    /// Why it is unknown, if it is.
    pub why: Option<String>,
    /// The command that would fix it, if there is one.
    pub fix: Option<String>,
}

/// A device, and what became of each rule of its groups.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedDevice {
    /// The name of the device.
    pub name: String,
    /// Its driver, as `ethtool -i` prints it; in words where there is none.
    pub driver: String,
    /// The groups that it is of.
    pub groups: Vec<String>,
    /// Rules of all of its groups.
    pub rules: Vec<Ruling>,
}

/// All devices, and what became of the policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// Devices in the order in which they were given.
    pub devices: Vec<CheckedDevice>,
    /// Groups without a device.
    pub empty_groups: Vec<String>,
}

impl Checked {
    /// Rules of all devices with that outcome.
    pub fn count(&self, outcome: Compliance) -> usize {
        self.rulings().filter(|(_, ruling)| ruling.outcome == outcome).count()
    }

    /// All rules, with the names of their devices.
    pub fn rulings(&self) -> impl Iterator<Item = (&str, &Ruling)> {
        self.devices
            .iter()
            .flat_map(|device| device.rules.iter().map(|ruling| (device.name.as_str(), ruling)))
    }
}

/// Holds devices against a policy.
pub fn check(policy: &Policy, devices: &[Report]) -> Checked {
    let of_device = |device: &Report| {
        let groups: Vec<_> = policy.groups.iter().filter(|group| group.has(device)).collect();
        let rules = groups
            .iter()
            .flat_map(|group| group.rules.iter().map(|rule| apply(rule, device, &group.name)));
        CheckedDevice {
            name: device.name.clone(),
            driver: device.driver_name().to_owned(),
            groups: groups.iter().map(|group| group.name.clone()).collect(),
            rules: rules.collect(),
        }
    };
    let is_empty = |group: &&policy::Group| !devices.iter().any(|device| group.has(device));
    Checked {
        devices: devices.iter().map(of_device).collect(),
        empty_groups: policy.groups.iter().filter(is_empty).map(|it| it.name.clone()).collect(),
    }
}

fn apply(rule: &PolicyRule, device: &Report, group: &str) -> Ruling {
    let PolicyRule { key, limit } = rule;
    let of = |outcome, found: Option<&Found>| Ruling {
        group: group.to_owned(),
        rule: key.name(),
        allowed: limit.to_string(),
        outcome,
        value: found.filter(|it| it.low == it.high).map(|it| it.low),
        found: found.map(|it| it.words(limit.kind)),
        why: None,
        fix: None,
    };
    let all = match find(device, *key) {
        Ok(all) => all,
        Err(why) => return Ruling { why: Some(why), ..of(Compliance::Unknown, None) },
    };
    let breaks = |it: &&Found| {
        limit.excludes(it.low, it.high) || it.unclear.is_none() && !limit.allows(it.low, it.high)
    };
    if let Some(found) = all.iter().find(breaks) {
        let fix = fix::command(device, *key, limit, found);
        return Ruling { fix, ..of(Compliance::Broken, Some(found)) };
    }
    match all.iter().find(|it| !limit.allows(it.low, it.high)) {
        Some(found) => {
            Ruling { why: found.unclear.clone(), ..of(Compliance::Unknown, Some(found)) }
        }
        None => of(Compliance::Holds, all.first()),
    }
}

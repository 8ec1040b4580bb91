//! Several settings with their values: as they were read, and as they shall be.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Setting, Value, ValueKind};

/// Settings of a device as they were read. What is missing, the device does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema, Deserialize)]
#[serde(transparent)]
pub struct State(#[schemars(with = "BTreeMap<String, Value>")] pub BTreeMap<Setting, Value>);

impl State {
    /// The value of a setting, if the device has it.
    pub fn get(&self, setting: Setting) -> Option<&Value> {
        self.0.get(&setting)
    }

    /// The same after a change that is taken as it is.
    pub fn with(&self, change: &Change) -> Self {
        let mut after = self.clone();
        after.0.extend(change.0.iter().cloned());
        after
    }

    /// Whether a switch is on.
    pub fn is_on(&self, setting: Setting) -> bool {
        self.get(setting) == Some(&Value::Switch(true))
    }

    /// Whether adaptive moderation is at work that changes `setting` by itself.
    pub fn is_driven(&self, setting: Setting) -> bool {
        setting
            .switches()
            .into_iter()
            .any(|adaptive| setting.follows(adaptive) && self.is_on(adaptive))
    }

    /// What has to be set so that a device in state `now` is in this one again: settings that
    /// differ, but for what adaptive moderation chooses by itself in both.
    pub fn restored_from(&self, now: &Self) -> Change {
        let differs = |(setting, value): &(&Setting, &Value)| {
            now.get(**setting).is_some_and(|is| is != *value)
                && !(self.is_driven(**setting) && now.is_driven(**setting))
        };
        Change(self.0.iter().filter(differs).map(|(s, v)| (*s, v.clone())).collect())
    }

    /// Settings of single queues that `change` would overwrite with those of the device, as they
    /// are here.
    pub(crate) fn overwritten_by(&self, change: &Change) -> Change {
        let is_overwritten = |(setting, _): &(&Setting, &Value)| {
            let device = setting.of_device().is_some_and(|device| change.get(device).is_some());
            device && change.get(**setting).is_none() && !self.is_driven(**setting)
        };
        Change(self.0.iter().filter(is_overwritten).map(|(s, v)| (*s, v.clone())).collect())
    }

    /// What has to be set so that nothing holds a received packet back.
    pub fn unheld(&self) -> Change {
        let mut wanted = vec![
            (Setting::AdaptiveRx, Value::Switch(false)),
            (Setting::RxUsecs, Value::Number(0)),
            (Setting::NapiDeferHardIrqs, Value::Number(0)),
            (Setting::GroFlushTimeout, Value::Number(0)),
        ];
        if self.get(Setting::RxUsecs).is_none() {
            // Where no timer ends the wait for others, one packet has to be enough.
            wanted.push((Setting::RxFrames, Value::Number(0)));
        }
        let driven = self.is_driven(Setting::RxUsecs);
        wanted.retain(|(setting, value)| {
            let is = self.get(*setting);
            is.is_some_and(|is| is != value || driven && *setting == Setting::RxUsecs)
        });
        Change(wanted)
    }

    /// Those of `settings` alone.
    pub fn only(&self, keep: impl Fn(Setting) -> bool) -> Self {
        let kept = self.0.iter().filter(|(setting, _)| keep(**setting));
        Self(kept.map(|(setting, value)| (*setting, value.clone())).collect())
    }
}

impl From<Change> for State {
    fn from(change: Change) -> Self {
        Self(change.0.into_iter().collect())
    }
}

impl FromStr for State {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<Change>().map(Self::from)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        pairs(f, self.0.iter())
    }
}

/// Settings and the values that they shall have, in the order given; each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Change(pub Vec<(Setting, Value)>);

impl Change {
    /// Reads names and values in turn, as `ethtool -C` takes them, or `NAME=VALUE` as one word.
    ///
    /// # Errors
    /// If a name is unknown, is there twice or has no value, or a value is none of its setting.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, String> {
        let mut change = Self::default();
        let mut words = words.iter().map(AsRef::as_ref);
        while let Some(word) = words.next() {
            let (name, value) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (word, words.next()),
            };
            let setting: Setting = name.parse()?;
            let Some(value) = value else {
                return Err(format!(
                    "settings are pairs of name and value; `{setting}` has no value"
                ));
            };
            if change.get(setting).is_some() {
                return Err(format!("{setting} is given twice"));
            }
            change.0.push((setting, setting.parse_value(value)?));
        }
        Ok(change)
    }

    /// The value that `setting` shall have.
    pub fn get(&self, setting: Setting) -> Option<&Value> {
        self.0.iter().find(|(name, _)| *name == setting).map(|(_, value)| value)
    }

    /// The number that `setting` shall have.
    pub fn number(&self, setting: Setting) -> Option<u64> {
        self.get(setting).and_then(Value::number)
    }

    /// The settings that it names.
    pub fn settings(&self) -> impl Iterator<Item = Setting> {
        self.0.iter().map(|(setting, _)| *setting)
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same without those settings for which `drop` says so.
    pub fn without(&self, drop: impl Fn(Setting) -> bool) -> Self {
        Self(self.0.iter().filter(|(setting, _)| !drop(*setting)).cloned().collect())
    }
}

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::parse(&text.split_whitespace().collect::<Vec<_>>())
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("no change");
        }
        pairs(f, self.0.iter().map(|(setting, value)| (setting, value)))
    }
}

/// Values of one setting that are to be tried: `NAME=VALUE,VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// The setting whose values they are.
    pub setting: Setting,
    /// Its values, in the order given; at least one.
    pub values: Vec<Value>,
}

impl FromStr for Knob {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = text.split_once('=').ok_or_else(|| {
            format!("{text}: write it like sysctl:net.core.netdev_budget=150,600")
        })?;
        let setting: Setting = name.parse()?;
        // The steps of a profile have commas themselves.
        let values = match setting.kind() {
            ValueKind::Steps | ValueKind::Table | ValueKind::Cpus | ValueKind::Text => {
                vec![setting.parse_value(values)?]
            }
            _ => values.split(',').map(|it| setting.parse_value(it)).collect::<Result<_, _>>()?,
        };
        Ok(Self { setting, values })
    }
}

impl fmt::Display for Knob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.values.iter().map(ToString::to_string).collect();
        write!(f, "{}={}", self.setting, values.join(","))
    }
}

fn pairs<'a>(
    f: &mut fmt::Formatter<'_>,
    pairs: impl Iterator<Item = (&'a Setting, &'a Value)>,
) -> fmt::Result {
    for (number, (setting, value)) in pairs.enumerate() {
        let space = if number > 0 { " " } else { "" };
        write!(f, "{space}{setting} {value}")?;
    }
    Ok(())
}

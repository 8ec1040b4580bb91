//! A policy: groups of devices, and what each device of a group has to be like.
//!
//! In TOML a group is a table, and a rule is a line of it. `match` says which devices are of the
//! group; without it, all are. A device may be of several groups, and has to keep the rules of
//! each.

use std::fmt;

use base::quantity::Unit;
use glob::Pattern;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, de};

use super::key::{Key, ValueKind};
use super::limit::{Limit, parse_number};
use crate::report::Report;

/// Policies that come with Earmark: their names and texts.
pub const BUILT_IN: [(&str, &str); 3] = [
    ("low-latency", include_str!("../../../../../policies/low-latency.toml")),
    ("throughput", include_str!("../../../../../policies/throughput.toml")),
    ("time-server", include_str!("../../../../../policies/time-server.toml")),
];

/// Groups of devices, in the order of the file.
#[derive(Clone, Debug)]
pub struct Policy {
    pub(super) groups: Vec<Group>,
}

/// Devices, and what they have to be like.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) name: String,
    matches: Match,
    pub(super) rules: Vec<Rule>,
}

/// What a device has to be like in one respect.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    pub(super) key: Key,
    pub(super) limit: Limit,
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// Where it is no TOML, has an unknown key or a value that is none of its key, or no rule.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }
}

impl Group {
    /// Whether a device is of the group.
    pub(super) fn has(&self, device: &Report) -> bool {
        let Match { name, driver, speed } = &self.matches;
        let is_fast = |limit: &Limit| {
            let speed = device.speed_mbps().map(f64::from);
            speed.is_some_and(|speed| limit.allows(speed, speed))
        };
        name.as_ref().is_none_or(|names| names.have(&device.name))
            && driver.as_ref().is_none_or(|names| names.have(device.driver_name()))
            && speed.as_ref().is_none_or(|Speed(limit)| is_fast(limit))
    }
}

/// Which devices are meant; what is not said does not matter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Match {
    name: Option<Patterns>,
    driver: Option<Patterns>,
    speed: Option<Speed>,
}

/// Patterns of a shell. With `!` before it, one says what is not meant.
#[derive(Clone, Debug)]
struct Patterns {
    wanted: Vec<Pattern>,
    unwanted: Vec<Pattern>,
}

impl Patterns {
    fn have(&self, name: &str) -> bool {
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(name));
        (self.wanted.is_empty() || any(&self.wanted)) && !any(&self.unwanted)
    }
}

impl<'de> Deserialize<'de> for Patterns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a pattern such as \"en*\", or a list of patterns")]
        enum Form {
            One(String),
            Several(Vec<String>),
        }
        let texts = match Form::deserialize(deserializer)? {
            Form::One(text) => vec![text],
            Form::Several(texts) => texts,
        };
        let mut patterns = Self { wanted: Vec::new(), unwanted: Vec::new() };
        for text in &texts {
            let (list, text) = match text.strip_prefix('!') {
                Some(rest) => (&mut patterns.unwanted, rest),
                None => (&mut patterns.wanted, text.as_str()),
            };
            let pattern = Pattern::new(text);
            list.push(pattern.map_err(|why| D::Error::custom(format!("{text}: {why}")))?);
        }
        Ok(patterns)
    }
}

#[derive(Clone, Debug)]
struct Speed(Limit);

impl<'de> Deserialize<'de> for Speed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        LimitOf(ValueKind::Number(Unit::Mbit)).deserialize(deserializer).map(Self)
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Groups)
    }
}

struct Groups;

impl<'de> Visitor<'de> for Groups {
    type Value = Policy;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("groups of devices")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Policy, A::Error> {
        let mut groups = Vec::new();
        while let Some(name) = map.next_key::<String>()? {
            groups.push(map.next_value_seed(GroupOf(name))?);
        }
        if groups.is_empty() {
            return Err(A::Error::custom(
                "a policy without a rule; a rule is a line below a group, as in [nics]",
            ));
        }
        Ok(Policy { groups })
    }
}

/// A group of that name.
struct GroupOf(String);

impl<'de> DeserializeSeed<'de> for GroupOf {
    type Value = Group;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Group, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for GroupOf {
    type Value = Group;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of rules, below a line such as [nics]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Group, A::Error> {
        let (mut matches, mut rules) = (Match::default(), Vec::new());
        while let Some(word) = map.next_key::<Word>()? {
            match word {
                Word::Match => matches = map.next_value()?,
                Word::Rule(key) => {
                    let limit = map.next_value_seed(LimitOf(key.kind()))?;
                    rules.push(Rule { key, limit });
                }
            }
        }
        if rules.is_empty() {
            return Err(A::Error::custom(format!("the group {} has no rule", self.0)));
        }
        Ok(Group { name: self.0, matches, rules })
    }
}

/// A word at the left of a line.
enum Word {
    Match,
    Rule(Key),
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "match" => Ok(Self::Match),
            text => text.parse().map(Self::Rule).map_err(D::Error::custom),
        }
    }
}

/// What a rule allows, in a unit.
struct LimitOf(ValueKind);

impl<'de> DeserializeSeed<'de> for LimitOf {
    type Value = Limit;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Limit, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl LimitOf {
    fn number<E: Error>(&self, text: &str) -> Result<f64, E> {
        parse_number(self.0, text).map_err(E::custom)
    }
}

impl<'de> Visitor<'de> for LimitOf {
    type Value = Limit;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            ValueKind::Switch => "\"on\" or \"off\"",
            _ => "a number, a text such as \"<= 20\", or { min = ..., max = ... }",
        })
    }

    fn visit_bool<E: Error>(self, is_on: bool) -> Result<Limit, E> {
        match self.0 {
            ValueKind::Switch => Ok(Limit::exactly(ValueKind::Switch, f64::from(u8::from(is_on)))),
            _ => Err(E::invalid_type(de::Unexpected::Bool(is_on), &self)),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Limit, E> {
        Ok(Limit::exactly(self.0, self.number(&value.to_string())?))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Limit, E> {
        Ok(Limit::exactly(self.0, self.number(&value.to_string())?))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Limit, E> {
        Limit::parse(self.0, text).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Limit, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Bounds {
            min: Option<toml::Value>,
            max: Option<toml::Value>,
        }
        let bounds = Bounds::deserialize(de::value::MapAccessDeserializer::new(map))?;
        let number = |value: Option<toml::Value>| {
            let text = value.map(|value| value.as_str().map_or(value.to_string(), str::to_owned));
            text.map(|text| self.number::<A::Error>(&text)).transpose()
        };
        Limit::between(self.0, number(bounds.min)?, number(bounds.max)?).map_err(A::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policies_that_come_with_it_are_read() {
        for (name, text) in BUILT_IN {
            let policy = Policy::parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(policy.groups.iter().map(|group| group.rules.len()).sum::<usize>() >= 4);
        }
    }

    #[test]
    fn rules_are_lines_in_the_order_of_the_file() {
        let policy = Policy::parse(
            "[fast]\nmatch = { name = [\"en*\", \"!eno1\"], speed = \">= 10Gbit\" }\n\
             rx-usecs = { min = 1, max = \"20us\" }\nadaptive-rx = false\nrx-frames = 16\n\
             longest-hold = \"< 50us\"\n[a.match]\ndriver = \"mlx5*\"\n[a]\nmtu = 9000\n",
        );
        let policy = policy.unwrap();
        let [fast, a] = &policy.groups[..] else { panic!("{policy:?}") };
        let lines: Vec<String> =
            fast.rules.iter().map(|rule| format!("{} {}", rule.key, rule.limit)).collect();
        assert_eq!(
            lines,
            ["rx-usecs >= 1us, <= 20us", "adaptive-rx off", "rx-frames 16", "longest-hold < 50us"]
        );
        assert_eq!((a.name.as_str(), a.rules.len()), ("a", 1));
    }

    #[test]
    fn devices_are_of_the_groups_that_match_them() {
        let has = |matches: &str, speed_mbps| {
            let text = format!("[g]\nmatch = {{ {matches} }}\nmtu = 1500\n");
            let mut device = Report { name: "enp1s0f0".into(), ..Report::default() };
            device.files.driver = Some("mlx5_core".into());
            device.files.speed_mbps = speed_mbps;
            Policy::parse(&text).unwrap().groups[0].has(&device)
        };
        assert!(has("name = \"enp?s*\", driver = [\"ice\", \"mlx5_*\"]", None));
        assert!(!has("name = [\"en*\", \"!enp1*\"]", None));
        assert!(has("name = \"!eth*\"", None));
        assert!(!has("driver = \"mlx4_*\"", None));
        assert!(has("speed = \">= 10Gbit\"", Some(25_000)));
        assert!(!has("speed = \">= 10Gbit\"", Some(1_000)));
        assert!(!has("speed = \">= 10Gbit\"", None), "a link that is down has none");
    }

    #[test]
    fn wrong_policies_are_refused_where_they_are_wrong() {
        for (text, words) in [
            ("", "without a rule"),
            ("[a]\n", "the group a has no rule"),
            ("rx-usecs = 5\n", "a table of rules, below a line such as [nics]"),
            ("[a]\nrx-usec = 5\n", "is rx-usecs meant?"),
            ("[a]\nrx-usecs = true\n", "expected a number"),
            ("[a]\nrx-usecs = -5\n", "`-5` is not a time"),
            ("[a]\nrx-usecs = [1]\n", "expected a number"),
            ("[a]\nadaptive-rx = 5\n", "5: on or off"),
            ("[a]\nadaptive-rx = \"yes\"\n", "yes: on or off"),
            ("[a]\nadaptive-rx = { max = 1 }\n", "on or off"),
            ("[a]\nrx-usecs = { most = 5 }\n", "unknown field `most`"),
            ("[a]\nrx-usecs = { min = 9, max = 8 }\n", "no number is >= 9us, <= 8us"),
            ("[a]\nrx-usecs = 5\nrx-usecs = 6\n", "duplicate key"),
            ("[a]\nmatch = { nam = \"x\" }\nmtu = 1\n", "unknown field `nam`"),
            ("[a]\nmatch = { name = \"[\" }\nmtu = 1\n", "[:"),
            ("[a]\nmatch = { name = 5 }\nmtu = 1\n", "a pattern such as"),
            ("[a", "line 1"),
        ] {
            let refusal = Policy::parse(text).unwrap_err().to_string();
            assert!(refusal.contains(words), "{text}: {refusal}");
        }
        let refusal = Policy::parse("[a]\nmtu = 1\nrx-usec = 5\n").unwrap_err().to_string();
        assert!(refusal.contains("line 3"), "{refusal}");
    }
}

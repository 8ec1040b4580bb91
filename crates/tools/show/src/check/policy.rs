//! A policy: groups of devices, and what each device of a group has to be like.
//!
//! In TOML a group is a table, and a rule is a line of it. `match` says which devices are of the
//! group; without it, all are. A device may be of several groups, and has to keep the rules of
//! each.

use std::ops::Range;

use anyhow::{Error, Result, anyhow};
use base::quantity::Unit;
use glob::Pattern;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

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

#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) name: String,
    matches: Match,
    pub(super) rules: Vec<PolicyRule>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct PolicyRule {
    pub(super) key: Key,
    pub(super) limit: Limit,
}

impl Policy {
    /// Reads a policy.
    ///
    /// # Errors
    /// Where it is no TOML, has an unknown key or a value that is none of its key, or no rule.
    pub fn parse(text: &str) -> Result<Self> {
        let at = |span: Range<usize>, why: String| -> Error {
            let before = text.get(..span.start).unwrap_or_default();
            anyhow!("line {}: {why}", before.matches('\n').count() + 1)
        };
        let table = DeTable::parse(text)?;
        let mut groups = Vec::new();
        for (name, rules) in table.get_ref() {
            let table = rules.get_ref().as_table().ok_or_else(|| {
                at(rules.span(), "a table of rules, below a line such as [nics]".into())
            })?;
            let mut group = Group {
                name: name.get_ref().to_string(),
                matches: Match::default(),
                rules: vec![],
            };
            for (word, value) in table {
                let read = match &**word.get_ref() {
                    "match" => Match::read(value).map(|matches| group.matches = matches),
                    _ => PolicyRule::read(word.get_ref(), value).map(|rule| group.rules.push(rule)),
                };
                read.map_err(|why| at(word.span(), why))?;
            }
            if group.rules.is_empty() {
                return Err(at(name.span(), format!("the group {} has no rule", group.name)));
            }
            groups.push(group);
        }
        if groups.is_empty() {
            let why = "a policy without a rule; a rule is a line below a group, as in [nics]";
            return Err(anyhow!(why));
        }
        Ok(Self { groups })
    }
}

impl Group {
    pub(super) fn has(&self, device: &Report) -> bool {
        let Match { name, driver, speed } = &self.matches;
        let is_fast = |limit: &Limit| {
            let speed = device.speed_mbps().map(f64::from);
            speed.is_some_and(|speed| limit.allows(speed, speed))
        };
        name.as_ref().is_none_or(|names| names.have(&device.name))
            && driver.as_ref().is_none_or(|names| names.have(device.driver_name()))
            && speed.as_ref().is_none_or(is_fast)
    }
}

/// Which devices are meant; what is not named does not matter.
#[derive(Clone, Debug, Default)]
struct Match {
    name: Option<Patterns>,
    driver: Option<Patterns>,
    speed: Option<Limit>,
}

impl Match {
    fn read(value: &Spanned<DeValue<'_>>) -> Result<Self, String> {
        let mut matches = Self::default();
        let table = value.get_ref().as_table().ok_or("match is a table of name, driver, speed")?;
        for (word, value) in table {
            let value = value.get_ref();
            match &**word.get_ref() {
                "name" => matches.name = Some(Patterns::read(value)?),
                "driver" => matches.driver = Some(Patterns::read(value)?),
                "speed" => matches.speed = Some(limit(ValueKind::Number(Unit::Mbit), value)?),
                other => {
                    return Err(format!("unknown field `{other}`; there are name, driver, speed"));
                }
            }
        }
        Ok(matches)
    }
}

/// Patterns of a shell. With `!` before it, one says what is not meant.
#[derive(Clone, Debug, Default)]
struct Patterns {
    wanted: Vec<Pattern>,
    unwanted: Vec<Pattern>,
}

impl Patterns {
    fn read(value: &DeValue<'_>) -> Result<Self, String> {
        let texts: Option<Vec<&str>> = match value {
            DeValue::Array(texts) => texts.iter().map(|text| text.get_ref().as_str()).collect(),
            one => one.as_str().map(|text| vec![text]),
        };
        let mut patterns = Self::default();
        for text in texts.ok_or("a pattern such as \"en*\", or a list of patterns")? {
            let (list, text) = match text.strip_prefix('!') {
                Some(rest) => (&mut patterns.unwanted, rest),
                None => (&mut patterns.wanted, text),
            };
            list.push(Pattern::new(text).map_err(|why| format!("{text}: {why}"))?);
        }
        Ok(patterns)
    }

    fn have(&self, name: &str) -> bool {
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(name));
        (self.wanted.is_empty() || any(&self.wanted)) && !any(&self.unwanted)
    }
}

impl PolicyRule {
    fn read(name: &str, value: &Spanned<DeValue<'_>>) -> Result<Self, String> {
        let key: Key = name.parse()?;
        Ok(Self { key, limit: limit(key.kind(), value.get_ref())? })
    }
}

fn limit(kind: ValueKind, value: &DeValue<'_>) -> Result<Limit, String> {
    match value {
        DeValue::String(text) => Limit::parse(kind, text),
        DeValue::Boolean(is_on) if kind == ValueKind::Switch => {
            Ok(Limit::exactly(kind, f64::from(u8::from(*is_on))))
        }
        DeValue::Integer(_) | DeValue::Float(_) => Ok(Limit::exactly(kind, number(kind, value)?)),
        DeValue::Table(bounds) if kind != ValueKind::Switch => {
            let bound = |end| bounds.get(end).map(|it| number(kind, it.get_ref())).transpose();
            let is_known = |word: &str| ["min", "max"].contains(&word);
            match bounds.keys().find(|word| !is_known(word.get_ref())) {
                Some(word) => {
                    Err(format!("unknown field `{}`; there are min, max", word.get_ref()))
                }
                None => Limit::between(kind, bound("min")?, bound("max")?),
            }
        }
        _ if kind == ValueKind::Switch => Err("expected \"on\" or \"off\": on or off".into()),
        _ => Err("expected a number, a text such as \"<= 20\", or { min = ..., max = ... }".into()),
    }
}

fn number(kind: ValueKind, value: &DeValue<'_>) -> Result<f64, String> {
    match value {
        DeValue::Integer(whole) => {
            let number = i64::from_str_radix(whole.as_str(), whole.radix());
            parse_number(kind, &number.map_or_else(|why| why.to_string(), |it| it.to_string()))
        }
        DeValue::Float(number) => parse_number(kind, number.as_str()),
        DeValue::String(text) => parse_number(kind, text),
        _ => Err("expected a number, or a text with one".into()),
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
    fn policies_are_read_or_refused_where_they_are_wrong() {
        let expected = include_str!("policies.txt");
        let read = |line: &str| -> Result<String> {
            let policy = Policy::parse(&line.replace("(nothing)", "").replace("\\n", "\n"))?;
            let rules = policy.groups.iter().flat_map(|group| {
                let name = &group.name;
                group.rules.iter().map(move |rule| format!("{name}: {} {}", rule.key, rule.limit))
            });
            Ok(rules.collect::<Vec<_>>().join("; "))
        };
        let line = |line: &str| {
            let said = read(line).unwrap_or_else(|why| format!("refused: {why}"));
            format!("{line}\n  {}\n", said.trim().replace('\n', "\\n"))
        };
        let now: String = expected.lines().filter(|it| !it.starts_with(' ')).map(line).collect();
        assert_eq!(now, expected, "\n{now}");
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
}

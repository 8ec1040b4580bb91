//! What a rule allows: numbers between two bounds.

use std::fmt;

use report::numbers;

use super::key::ValueKind;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) value: f64,
    pub(super) is_included: bool,
}

/// The numbers that a rule allows, in its unit; switches are 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limit {
    pub(super) kind: ValueKind,
    pub(super) min: Option<Bound>,
    pub(super) max: Option<Bound>,
}

impl Limit {
    pub(super) fn exactly(kind: ValueKind, value: f64) -> Self {
        let bound = Some(Bound { value, is_included: true });
        Self { kind, min: bound, max: bound }
    }

    /// No less and no more, where there is such a bound.
    pub(super) fn between(
        kind: ValueKind,
        min: Option<f64>,
        max: Option<f64>,
    ) -> Result<Self, String> {
        let bound = |value| Bound { value, is_included: true };
        Self { kind, min: min.map(bound), max: max.map(bound) }.checked()
    }

    pub(super) fn parse(kind: ValueKind, text: &str) -> Result<Self, String> {
        if kind == ValueKind::Switch {
            return match text {
                "on" => Ok(Self::exactly(kind, 1.0)),
                "off" => Ok(Self::exactly(kind, 0.0)),
                _ => Err(format!("{text}: on or off")),
            };
        }
        let mut limit = Self { kind, min: None, max: None };
        for clause in text.split(',').map(str::trim) {
            let sign = clause.trim_end_matches(|c: char| !matches!(c, '<' | '>' | '='));
            let value = parse_number(kind, clause[sign.len()..].trim())?;
            let is_included = sign.ends_with('=') || sign.is_empty();
            let bound = Some(Bound { value, is_included });
            let (min, max) = match sign {
                "<" | "<=" => (None, bound),
                ">" | ">=" => (bound, None),
                "=" | "" => (bound, bound),
                _ => return Err(format!("{clause}: the comparisons are <, <=, >, >= and =")),
            };
            if min.is_some() && limit.min.is_some() || max.is_some() && limit.max.is_some() {
                return Err(format!("{text}: two bounds at one end; leave one of them out"));
            }
            limit = Self { min: min.or(limit.min), max: max.or(limit.max), ..limit };
        }
        limit.checked()
    }

    fn checked(self) -> Result<Self, String> {
        let is_possible = match (self.min, self.max) {
            (None, None) => return Err("says neither min nor max".into()),
            (Some(min), Some(max)) if min.is_included && max.is_included => min.value <= max.value,
            (Some(min), Some(max)) => min.value < max.value,
            _ => true,
        };
        if is_possible { Ok(self) } else { Err(format!("no number is {self}")) }
    }

    pub(super) fn allows(&self, low: f64, high: f64) -> bool {
        let above = |min: Bound| low > min.value || min.is_included && low == min.value;
        let below = |max: Bound| high < max.value || max.is_included && high == max.value;
        self.min.is_none_or(above) && self.max.is_none_or(below)
    }

    pub(super) fn excludes(&self, low: f64, high: f64) -> bool {
        let below = |min: Bound| high < min.value || !min.is_included && high == min.value;
        let above = |max: Bound| low > max.value || !max.is_included && low == max.value;
        self.min.is_some_and(below) || self.max.is_some_and(above)
    }

    pub(super) fn nearest(&self, value: f64) -> f64 {
        let least = self.min.map(|min| match min.is_included {
            true => min.value.ceil(),
            false => min.value.floor() + 1.0,
        });
        let most = self.max.map(|max| match max.is_included {
            true => max.value.floor(),
            false => max.value.ceil() - 1.0,
        });
        let value = most.map_or(value, |most| value.min(most));
        least.map_or(value, |least| value.max(least)).max(0.0)
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |value| format_number(self.kind, value);
        match (self.min, self.max) {
            (Some(min), Some(max)) if min == max && min.is_included => {
                f.write_str(&word(min.value))
            }
            (min, max) => {
                let sign = |bound: Bound| if bound.is_included { "=" } else { "" };
                let min = min.map(|it| format!(">{} {}", sign(it), word(it.value)));
                let max = max.map(|it| format!("<{} {}", sign(it), word(it.value)));
                f.write_str(&min.into_iter().chain(max).collect::<Vec<_>>().join(", "))
            }
        }
    }
}

pub(super) fn format_number(kind: ValueKind, value: f64) -> String {
    match kind {
        ValueKind::Switch => if value == 0.0 { "off" } else { "on" }.into(),
        ValueKind::Number(unit) => format!("{value}{}", unit.suffix()),
    }
}

pub(super) fn parse_number(kind: ValueKind, text: &str) -> Result<f64, String> {
    match kind {
        ValueKind::Switch => Err(format!("{text}: on or off")),
        ValueKind::Number(unit) => numbers::read(unit, text, 0.0..=u32::MAX.into())
            .map_err(|why| format!("`{text}` {why}")),
    }
}

#[cfg(test)]
mod tests {
    use base::quantity::Unit;

    use super::*;

    #[track_caller]
    fn limit(kind: ValueKind, text: &str) -> Limit {
        Limit::parse(kind, text).unwrap()
    }

    #[test]
    fn ranges_are_allowed_excluded_or_neither() {
        let under = limit(ValueKind::Number(Unit::Micros), "< 50");
        let of = |low, high| (under.allows(low, high), under.excludes(low, high));
        assert_eq!(of(0.0, 49.0), (true, false));
        assert_eq!(of(0.0, 50.0), (false, false));
        assert_eq!(of(50.0, f64::INFINITY), (false, true));
        let over = limit(ValueKind::Number(Unit::Micros), ">= 8");
        assert!(over.allows(8.0, 9.0) && over.excludes(0.0, 7.0) && !over.excludes(0.0, 8.0));
    }

    #[test]
    fn the_nearest_number_that_is_allowed_is_whole() {
        let nearest = |text, value| limit(ValueKind::Number(Unit::Micros), text).nearest(value);
        assert_eq!(nearest("< 50", 75.0), 49.0);
        assert_eq!(nearest("<= 50", 75.0), 50.0);
        assert_eq!(nearest("< 0.5", 75.0), 0.0);
        assert_eq!(nearest("> 8", 0.0), 9.0);
        assert_eq!(nearest(">= 8, <= 32", 0.0), 8.0);
        assert_eq!(nearest("20", 75.0), 20.0);
    }
}

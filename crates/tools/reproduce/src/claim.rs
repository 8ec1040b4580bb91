//! What a document says of a number, and whether ours agrees.
//!
//! An agreement is held against a null model, in which no setting changes anything: a number that
//! would agree under it, too, or that is so near to what it says that a run cannot tell them apart,
//! is no evidence that the model of the NIC is right.

use serde::Serialize;

/// What a document says, with the tolerance that is allowed for ours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claim {
    /// A value with a tolerance.
    Value {
        /// The value that it states.
        value: f64,
        /// How far ours may be away.
        tolerance: Tolerance,
    },
    /// From one value to another.
    Between(f64, f64),
    /// An inequality, or an order as a difference above 0: more than this.
    Above(f64),
    /// Less than this.
    Below(f64),
}

/// How far a value may be from that of the document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Percent of the document's value.
    Percent(f64),
    /// So much, in the number's unit.
    Within(f64),
}

/// Whether ours agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// It is within the tolerance, or on the right side.
    Agrees,
    /// It does, and so would a model in which no setting changes anything.
    NoEvidence,
    /// It is not.
    Misses,
    /// A constant was set so that it agrees; this proves nothing.
    Set,
    /// It cannot be made here.
    NotMade,
}

/// What a number would be if no setting changed anything.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Null {
    /// The value if no setting changed anything.
    pub value: f64,
    /// The largest difference from `value` that counts as none.
    pub resolution: f64,
}

impl Claim {
    /// The verdict on `ours`, beside what it would be under the null model.
    pub fn verdict(&self, ours: f64, null: Null) -> Agreement {
        match self.is_met_by(ours) {
            false => Agreement::Misses,
            true if self.is_met_by(null.value) => Agreement::NoEvidence,
            true if (ours - null.value).abs() <= null.resolution => Agreement::NoEvidence,
            true => Agreement::Agrees,
        }
    }

    /// Whether `ours` agrees.
    pub fn is_met_by(&self, ours: f64) -> bool {
        match *self {
            Self::Value { value, tolerance: Tolerance::Percent(percent) } => {
                (ours - value).abs() <= value.abs() * percent / 100.0
            }
            Self::Value { value, tolerance: Tolerance::Within(within) } => {
                (ours - value).abs() <= within
            }
            Self::Between(low, high) => (low..=high).contains(&ours),
            Self::Above(bound) => ours > bound,
            Self::Below(bound) => ours < bound,
        }
    }

    /// By how many percent of the document's value ours differs; of a range, from its nearer end.
    /// An inequality has no value to differ from, nor has 0 a percentage.
    pub fn difference_percent(&self, ours: f64) -> Option<f64> {
        let value = match *self {
            Self::Value { value, .. } => value,
            Self::Between(low, high) => ours.clamp(low, high),
            Self::Above(_) | Self::Below(_) => return None,
        };
        (value != 0.0).then(|| (ours - value) / value.abs() * 100.0)
    }

    /// A value, and its tolerance as a part of it.
    pub(crate) fn relative(&self) -> Option<(f64, f64)> {
        match *self {
            Self::Value { value, tolerance: Tolerance::Percent(percent) } => {
                Some((value, percent / 100.0))
            }
            Self::Value { value, tolerance: Tolerance::Within(within) } => {
                Some((value, within / value.abs()))
            }
            Self::Between(..) | Self::Above(_) | Self::Below(_) => None,
        }
    }

    /// The smallest and the largest value that the document states, if it states values.
    pub fn values(&self) -> Option<(f64, f64)> {
        match *self {
            Self::Value { value, .. } => Some((value, value)),
            Self::Between(low, high) => Some((low, high)),
            Self::Above(_) | Self::Below(_) => None,
        }
    }

    /// The tolerance, in words.
    pub fn tolerance(&self) -> String {
        match *self {
            Self::Value { tolerance: Tolerance::Percent(percent), .. } => format!("{percent} %"),
            Self::Value { tolerance: Tolerance::Within(within), .. } => format!("+-{within}"),
            Self::Between(..) => "in it".into(),
            Self::Above(_) | Self::Below(_) => "order".into(),
        }
    }

    /// What the document says, in words.
    pub fn stated(&self) -> String {
        match *self {
            Self::Value { value, .. } => number(value),
            Self::Between(low, high) => format!("{}..{}", number(low), number(high)),
            Self::Above(bound) => format!("> {}", number(bound)),
            Self::Below(bound) => format!("< {}", number(bound)),
        }
    }
}

/// A number with about four digits.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 999.95 => 0,
        large if large >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edge_of_a_tolerance_agrees() {
        let of = |tolerance| Claim::Value { value: 200.0, tolerance };
        for (tolerance, agrees, misses) in
            [(Tolerance::Percent(5.0), 210.0, 210.1), (Tolerance::Within(2.0), 198.0, 197.9)]
        {
            assert!(of(tolerance).is_met_by(agrees) && !of(tolerance).is_met_by(misses));
        }
        assert!(Claim::Between(90.0, 100.0).is_met_by(100.0));
        assert!(!Claim::Above(0.0).is_met_by(0.0) && !Claim::Below(0.0).is_met_by(0.0));
        let value = of(Tolerance::Percent(5.0));
        assert!(!value.is_met_by(f64::NAN) && !Claim::Below(1.0).is_met_by(f64::NAN));
    }

    #[test]
    fn what_would_agree_if_nothing_changed_is_no_evidence() {
        let rate = |value, ours, nothing: f64| {
            let claim = Claim::Value { value, tolerance: Tolerance::Percent(15.0) };
            claim.verdict(ours, Null { value: nothing, resolution: nothing / 100.0 })
        };
        // Table I: the document's rate, ours, and that of the default.
        for (value, ours, default) in [
            (435_000.0, 484_650.0, 490_250.0),
            (14_533.0, 14_420.0, 14_480.0),
            (14_691.0, 14_420.0, 14_480.0),
            (451.0, 450.0, 440.0),
            (447.0, 450.0, 440.0),
        ] {
            assert_eq!(rate(value, ours, default), Agreement::NoEvidence, "{value}");
        }
        assert_eq!(rate(423_000.0, 484_650.0, 490_250.0), Agreement::Agrees);
        assert_eq!(rate(252_000.0, 484_500.0, 490_250.0), Agreement::Misses);
        // Open-MX above disabled, by 150 of 484,550 a second; default above Stream, by 5,600.
        let null = Null { value: 0.0, resolution: 4_845.5 };
        assert_eq!(Claim::Above(0.0).verdict(150.0, null), Agreement::NoEvidence);
        assert_eq!(Claim::Above(0.0).verdict(5_600.0, null), Agreement::Agrees);
        assert_eq!(Claim::Above(0.0).verdict(-150.0, null), Agreement::Misses);
        // "As low" is what nothing would be, too.
        let as_low = Claim::Value { value: 0.0, tolerance: Tolerance::Within(0.5) };
        let null = Null { value: 0.0, resolution: 0.1 };
        assert_eq!(as_low.verdict(0.0, null), Agreement::NoEvidence);
    }

    #[test]
    fn a_difference_is_one_from_the_nearest_stated_value() {
        let range = Claim::Between(90.0, 100.0);
        assert_eq!(range.difference_percent(95.0), Some(0.0));
        assert_eq!(range.difference_percent(110.0), Some(10.0));
        let value = |value| Claim::Value { value, tolerance: Tolerance::Within(1.0) };
        assert_eq!(value(-20.0).difference_percent(-15.0), Some(25.0));
        assert_eq!(value(0.0).difference_percent(1.0), None);
        assert_eq!(Claim::Above(1.0).difference_percent(2.0), None);
    }

    #[test]
    fn numbers_have_as_many_digits_as_they_need() {
        let texts = [433_000.0, 92.44, 13.7, 0.335, 20.0, -4.0].map(number);
        assert_eq!(texts, ["433000", "92.4", "13.7", "0.34", "20", "-4"]);
    }
}

//! The text form of rules, and what can be wrong with it.
//!
//! Every message names the rule as it was written, what is wrong with it, and what would be right:
//! rules are typed on command lines, without the grammar at hand.

use super::{FLAGS, Field, MAX_RULES, MAX_TESTS, Rule, Rules, Test};
use crate::headers::Facts;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// A rule that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    rule: String,
    problem: Problem,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// More than [`MAX_RULES`] rules; this is the first one too many.
    TooManyRules,
    /// More than [`MAX_TESTS`] tests in the rule.
    TooManyTests,
    /// Nothing where a test should be: two separators in a row, one at an end, `unmark` alone.
    MissingTest,
    /// No test has this name.
    UnknownTest(String),
    /// A test that only exists or not (its name) was compared to a value.
    UnexpectedValue(&'static str),
    /// A test (its name) that needs an operator and a value has no operator that we know.
    MissingOperator(&'static str),
    /// Not a number, or a range where only a number makes sense.
    BadNumber(String),
    /// A number (as written) beyond what the field (its name) can hold.
    OutOfRange {
        /// The number as written.
        number: String,
        /// Name of the field.
        field: &'static str,
        /// The largest number that the field can hold.
        max: u16,
    },
    /// No value of the field passes the test (as written).
    Pointless(String),
}

impl RuleError {
    /// The rule as it was written.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// What is wrong with it.
    #[must_use]
    pub const fn problem(&self) -> &Problem {
        &self.problem
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, problem } = self;
        match problem {
            Problem::TooManyRules => write!(f, "too many rules at `{rule}`; at most {MAX_RULES}"),
            Problem::TooManyTests => {
                write!(f, "too many tests in rule `{rule}`; at most {MAX_TESTS}")
            }
            Problem::MissingTest => {
                write!(f, "missing test in rule `{rule}`; ")?;
                accepted(f)
            }
            Problem::UnknownTest(name) => {
                write!(f, "unknown test `{name}` in rule `{rule}`; ")?;
                accepted(f)
            }
            Problem::UnexpectedValue(name) => {
                write!(f, "unexpected value in rule `{rule}`; `{name}` stands alone")
            }
            Problem::MissingOperator(name) => write!(
                f,
                "missing operator after `{name}` in rule `{rule}`; \
                 the operators are =, !=, <, <=, > and >="
            ),
            Problem::BadNumber(text) => write!(
                f,
                "bad number `{text}` in rule `{rule}`; numbers are decimal or hexadecimal like \
                 0x86df, and = and != also take a range like 10-20"
            ),
            Problem::OutOfRange { number, field, max } => {
                write!(f, "number {number} out of range in rule `{rule}`; {field} is 0 to {max}")
            }
            Problem::Pointless(test) => {
                write!(f, "pointless test `{test}` in rule `{rule}`; no value of the field passes")
            }
        }
    }
}

impl core::error::Error for RuleError {}

fn accepted(f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("the tests are ")?;
    for (name, _) in FLAGS {
        write!(f, "{name}, ")?;
    }
    super::separated(f, Field::ALL.map(Field::name), ", ")
}

impl FromStr for Rules {
    type Err = RuleError;

    /// Reads the text form that the [module](super) describes; blank text is no rules.
    fn from_str(text: &str) -> Result<Self, RuleError> {
        if text.trim().is_empty() {
            return Ok(Self::NONE);
        }
        let mut rules = Vec::new();
        for rule in text.split(',').map(str::trim) {
            let error = |problem| RuleError { rule: rule.into(), problem };
            if rules.len() == MAX_RULES {
                return Err(error(Problem::TooManyRules));
            }
            rules.push(parse_rule(rule).map_err(error)?);
        }
        Ok(Self { rules })
    }
}

fn parse_rule(text: &str) -> Result<Rule, Problem> {
    let unmarked = text
        .strip_prefix("unmark")
        .filter(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace));
    let mut rule =
        Rule { mark: unmarked.is_none(), needs: Facts::NONE, first: None, others: Vec::new() };
    for (count, text) in unmarked.unwrap_or(text).split('&').map(str::trim).enumerate() {
        if count == MAX_TESTS {
            return Err(Problem::TooManyTests);
        }
        let (name, rest) = text.split_at(text.find(['=', '!', '<', '>']).unwrap_or(text.len()));
        let name = name.trim();
        if text.is_empty() {
            return Err(Problem::MissingTest);
        } else if let Some((flag, fact)) = FLAGS.into_iter().find(|&(flag, _)| flag == name) {
            if !rest.is_empty() {
                return Err(Problem::UnexpectedValue(flag));
            }
            rule.needs = rule.needs.with(fact);
        } else if let Some(field) = Field::ALL.into_iter().find(|field| field.name() == name) {
            rule.needs = rule.needs.with(field.needs());
            let test = parse_test(field, rest, text)?;
            match rule.first {
                None => rule.first = Some(test),
                Some(_) => rule.others.push(test),
            }
        } else {
            return Err(Problem::UnknownTest(name.into()));
        }
    }
    Ok(rule)
}

/// A test of `field`, from its operator on (`rest`); `text` is all of it.
fn parse_test(field: Field, rest: &str, text: &str) -> Result<Test, Problem> {
    let (operator, value) = ["!=", "<=", ">=", "=", "<", ">"]
        .into_iter()
        .find_map(|operator| Some((operator, rest.strip_prefix(operator)?.trim())))
        .ok_or(Problem::MissingOperator(field.name()))?;

    let pointless = || Problem::Pointless(text.into());
    let (lo, hi) = match operator {
        "=" | "!=" => parse_range(value, field)?,
        "<=" => (0, parse_number(value, field)?),
        ">=" => (parse_number(value, field)?, field.max()),
        "<" => (0, parse_number(value, field)?.checked_sub(1).ok_or_else(pointless)?),
        _ => (parse_number(value, field)?.checked_add(1).ok_or_else(pointless)?, field.max()),
    };
    let negate = operator == "!=";
    if lo > hi || (negate && (lo, hi) == (0, field.max())) {
        return Err(pointless());
    }
    Ok(Test::new(field, negate, lo, hi))
}

/// `lo-hi`, or a number alone.
fn parse_range(text: &str, field: Field) -> Result<(u16, u16), Problem> {
    let (lo, hi) = text.split_once('-').unwrap_or((text, text));
    Ok((parse_number(lo.trim(), field)?, parse_number(hi.trim(), field)?))
}

fn parse_number(text: &str, field: Field) -> Result<u16, Problem> {
    let (digits, radix) = text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16));
    // `from_str_radix` would also take a sign.
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(Problem::BadNumber(text.into()));
    }
    u16::from_str_radix(digits, radix).ok().filter(|&number| number <= field.max()).ok_or_else(
        || Problem::OutOfRange { number: text.into(), field: field.name(), max: field.max() },
    )
}

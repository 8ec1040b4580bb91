//! Which packets complete something a host waits for.
//!
//! A marker is a list of rules over the headers of a frame. The first rule that matches decides,
//! and a frame that no rule matches is not marked:
//!
//! ```text
//! rules = [ rule { "," rule } ]
//! rule  = [ "unmark" ] test { "&" test }         every test must hold
//! test  = "mx" | "tcp-psh" | field operator value
//! ```
//!
//! | field           | reads                                          | values       |
//! |-----------------|------------------------------------------------|--------------|
//! | `ethertype`     | the EtherType behind any VLAN tags             | 0 to 0xffff  |
//! | `vlan-priority` | the priority of the outermost VLAN tag         | 0 to 7       |
//! | `dscp`          | the code point of an IP packet                 | 0 to 63      |
//! | `tcp-port`      | both ports of a TCP segment                    | 0 to 65535   |
//! | `udp-port`      | both ports of a UDP datagram                   | 0 to 65535   |
//! | `length`        | frame bytes, Ethernet header but no FCS        | 0 to 65535   |
//!
//! `mx` is the mark that the sender of an MX frame set, `tcp-psh` the PSH flag. Operators are `=`,
//! `!=`, `<`, `<=`, `>` and `>=`; `=` and `!=` also take a range `lo-hi`. Numbers are decimal, or
//! hexadecimal after `0x`. For example, `unmark tcp-port=5001, tcp-psh & length<=512` marks the
//! short pushed segments, but none of the bulk stream on port 5001.
//!
//! A test never holds on a frame that lacks its field, whatever the operator: `dscp!=46` says
//! nothing about ARP. With ports, one of the two is enough, so `tcp-port!=80` means that neither
//! is 80.
//!
//! What a packet pays for is little. All that must be true of the frame, flags as well as *there is
//! such a field*, is one set of bits, compared at once; what remains of a test is *value in
//! `lo..=hi`, or not*, where the value is picked by its index.

mod parse;
#[cfg(test)]
mod tests;

use crate::headers::{self, Facts, Headers, Malformed, Value};
use alloc::vec::Vec;
use core::fmt;

pub use parse::{Problem, RuleError};

/// The most rules a list may have.
pub const MAX_RULES: usize = 32;
/// The most tests a rule may have.
pub const MAX_TESTS: usize = 8;

/// Which packets are marked where the user does not say: those of MX that ask for it, and short
/// pushed TCP segments, which is what requests and answers look like, and bulk data and
/// acknowledgements do not.
pub const USUAL_RULES: &str = "mx, tcp-psh & length<=512";

/// A list of rules; the first that matches decides. Made from its text form by
/// [`FromStr`](core::str::FromStr).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// One rule: what it matches and what it says about that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    mark: bool,
    /// The flags it asks for, and the existence of every field it tests.
    needs: Facts,
    /// Most rules have one test, which is read without a detour.
    first: Option<Test>,
    others: Vec<Test>,
}

/// One test of a rule, in the terms of a device that is to apply it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The frame has this flag: `mx` or `tcp-psh`.
    Flag(&'static str),
    /// A value of the field is in `lo..=hi`; with `negate`, none is.
    Value {
        /// The name of the field, such as `tcp-port`.
        field: &'static str,
        /// The smallest value.
        lo: u16,
        /// The largest value.
        hi: u16,
        /// The others are meant.
        negate: bool,
    },
}

/// What the rules say of one frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classification {
    /// Mark the packet.
    pub mark: bool,
    /// The rule that decided, counted from 0; `None` if none matched.
    pub rule: Option<u8>,
}

/// A value of the frame is in `lo..=hi`; with `negate`, none is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Test {
    /// Either of these may be the one; fields other than ports have the same value twice.
    values: [Value; 2],
    negate: bool,
    field: Field,
    lo: u16,
    /// `hi - lo`, which is what a packet is compared with.
    span: u16,
}

/// What a test looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    EtherType,
    VlanPriority,
    Dscp,
    TcpPort,
    UdpPort,
    Length,
}

/// The tests that are a fact about the frame.
const FLAGS: [(&str, Facts); 2] = [("mx", Facts::MX_MARK), ("tcp-psh", Facts::TCP_PSH)];

impl Rules {
    /// No rules: nothing is marked.
    pub const NONE: Self = Self { rules: Vec::new() };

    /// What the rules say of a frame with these headers.
    #[inline]
    #[must_use]
    pub fn classify(&self, headers: &Headers) -> Classification {
        for (index, rule) in (0..).zip(&self.rules) {
            if rule.matches(headers) {
                return Classification { mark: rule.mark, rule: Some(index) };
            }
        }
        Classification::default()
    }

    /// Whether the rules mark `frame`, an Ethernet frame without FCS.
    ///
    /// # Errors
    ///
    /// [`Malformed`] when the headers cannot be read, even if no rule would have looked at them.
    #[inline]
    pub fn mark(&self, frame: &[u8]) -> Result<bool, Malformed> {
        // By reference: `?` would copy the headers.
        let headers = &headers::parse(frame);
        headers.as_ref().map(|headers| self.classify(headers).mark).map_err(|&malformed| malformed)
    }

    /// The rule that [`Classification::rule`] names; its [`Display`](fmt::Display) is its text.
    #[must_use]
    pub fn get(&self, index: u8) -> Option<&Rule> {
        self.rules.get(usize::from(index))
    }

    /// The rules, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// How many rules there are, at most [`MAX_RULES`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

impl Rule {
    /// Whether every test holds on a frame with these headers.
    #[inline]
    #[must_use]
    pub fn matches(&self, headers: &Headers) -> bool {
        headers.has(self.needs)
            && self.first.as_ref().is_none_or(|test| test.holds(headers))
            && self.others.iter().all(|test| test.holds(headers))
    }

    fn tests(&self) -> impl Iterator<Item = &Test> {
        self.first.iter().chain(&self.others)
    }

    /// Whether it marks what it matches.
    #[must_use]
    pub const fn marks(&self) -> bool {
        self.mark
    }

    /// Its tests, flags first; all of them must hold.
    pub fn conditions(&self) -> impl Iterator<Item = Condition> {
        let flags = FLAGS.into_iter().filter(|(_, fact)| self.needs.contains(*fact));
        let values = self.tests().map(|test| Condition::Value {
            field: test.field.name(),
            lo: test.lo,
            hi: test.hi(),
            negate: test.negate,
        });
        flags.map(|(name, _)| Condition::Flag(name)).chain(values)
    }
}

impl Test {
    const fn new(field: Field, negate: bool, lo: u16, hi: u16) -> Self {
        Self { values: field.values(), negate, field, lo, span: hi - lo }
    }

    const fn hi(&self) -> u16 {
        self.lo + self.span
    }

    #[inline]
    fn holds(&self, headers: &Headers) -> bool {
        // One comparison instead of two: below `lo` the difference wraps to a large number.
        let inside = |value| headers.value(value).wrapping_sub(self.lo) <= self.span;
        let [a, b] = self.values;
        (inside(a) || inside(b)) != self.negate
    }
}

impl Field {
    /// Every field, in the order in which messages name them.
    const ALL: [Self; 6] = [
        Self::EtherType,
        Self::VlanPriority,
        Self::Dscp,
        Self::TcpPort,
        Self::UdpPort,
        Self::Length,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::EtherType => "ethertype",
            Self::VlanPriority => "vlan-priority",
            Self::Dscp => "dscp",
            Self::TcpPort => "tcp-port",
            Self::UdpPort => "udp-port",
            Self::Length => "length",
        }
    }

    /// The largest value.
    const fn max(self) -> u16 {
        match self {
            Self::VlanPriority => 7,
            Self::Dscp => 63,
            Self::EtherType | Self::TcpPort | Self::UdpPort | Self::Length => u16::MAX,
        }
    }

    /// What must be true of a frame that has the field.
    const fn needs(self) -> Facts {
        match self {
            Self::EtherType | Self::Length => Facts::NONE,
            Self::VlanPriority => Facts::VLAN,
            Self::Dscp => Facts::IP,
            Self::TcpPort => Facts::TCP_PORTS,
            Self::UdpPort => Facts::UDP_PORTS,
        }
    }

    /// Where its values are.
    const fn values(self) -> [Value; 2] {
        match self {
            Self::EtherType => [Value::EtherType; 2],
            Self::VlanPriority => [Value::VlanPriority; 2],
            Self::Dscp => [Value::Dscp; 2],
            Self::TcpPort | Self::UdpPort => [Value::SourcePort, Value::DestinationPort],
            Self::Length => [Value::Length; 2],
        }
    }
}

impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        separated(f, &self.rules, ", ")
    }
}

impl fmt::Display for Rule {
    /// Flags first, then the other tests in the order of the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.mark { "" } else { "unmark " })?;
        let mut separator = "";
        for (name, fact) in FLAGS {
            if self.needs.contains(fact) {
                write!(f, "{separator}{name}")?;
                separator = " & ";
            }
        }
        f.write_str(if self.first.is_none() { "" } else { separator })?;
        separated(f, self.tests(), " & ")
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, negate, lo, .. } = *self;
        let hi = self.hi();
        f.write_str(field.name())?;
        let number = |value| Number { value, hex: field == Field::EtherType };
        match (negate, lo, hi) {
            (false, lo, hi) if lo == hi => write!(f, "={}", number(lo)),
            (true, lo, hi) if lo == hi => write!(f, "!={}", number(lo)),
            (true, lo, hi) => write!(f, "!={}-{}", number(lo), number(hi)),
            (false, lo, hi) if hi == field.max() => write!(f, ">={}", number(lo)),
            (false, 0, hi) => write!(f, "<={}", number(hi)),
            (false, lo, hi) => write!(f, "={}-{}", number(lo), number(hi)),
        }
    }
}

/// A number in the base in which people know it.
struct Number {
    value: u16,
    hex: bool,
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.hex { write!(f, "{:#06x}", self.value) } else { write!(f, "{}", self.value) }
    }
}

fn separated<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    by: &str,
) -> fmt::Result {
    for (index, item) in items.into_iter().enumerate() {
        f.write_str(if index == 0 { "" } else { by })?;
        item.fmt(f)?;
    }
    Ok(())
}

//! Lanes: rules that choose the queue of a packet before its hash does.
//!
//! Shipping NICs cannot interrupt for one packet and let the next one wait on the same queue. But
//! many have several queues, each with an interrupt and a timer of its own, and rules that choose
//! the queue (`ethtool -N`, the `ntuple` filters). A queue to which rules send what is urgent, and
//! which interrupts at once, is a *lane*:
//!
//! ```text
//! lanes  = [ lane { "," lane } ]
//! lane   = rule [ ":" queue [ "+rss" ] ]          a rule as those of marks have it
//!        | "unmark" test { "&" test }              these go by their hash
//! ```
//!
//! As in `tcp-port=11211:1`. The rules are those of the [marker](crate::marker), and the first that
//! matches decides; packets that no rule matches go by their hash (RSS). Without a number the queue
//! is the port's last one. The queue of a lane is left out of the hash's table, as `ethtool -X` can
//! do it, so that nothing else gets there; with `+rss` it stays in.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::headers::Headers;
use crate::marker::{RuleError, Rules};

/// Behind the queue: it stays in the table of the hash.
const SHARED: &str = "+rss";

/// Rules that choose a queue. Made from its text form by [`FromStr`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lanes {
    rules: Rules,
    /// Of each rule; an exception has none.
    targets: Vec<Option<Target>>,
}

/// Where a rule sends what it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Target {
    /// `None`: the last one.
    queue: Option<u16>,
    shared: bool,
}

/// Why lanes cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaneError {
    /// A rule that cannot be understood.
    Rule(RuleError),
    /// A queue (as written) without a rule.
    NoRule(String),
    /// What follows the colon (as written) is no queue.
    NotAQueue(String),
    /// A queue behind a rule (as written) whose packets go by their hash.
    ExceptionWithQueue(String),
    /// A lane names a queue that the port does not have.
    NoSuchQueue {
        /// Number of the queue, from 0.
        queue: u16,
        /// How many there are, from 0.
        queues: u16,
    },
    /// The lanes take all of the port's so many queues.
    NothingLeft(u16),
}

impl Lanes {
    /// No lanes: every packet goes by its hash.
    pub const NONE: Self = Self { rules: Rules::NONE, targets: Vec::new() };

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The text of each rule, with its queue.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        (0..)
            .zip(&self.targets)
            .map(|(index, target)| alloc::format!("{}", Text(self, index, *target)))
    }

    /// Whether a port of so many queues can have these lanes.
    ///
    /// # Errors
    /// If one names a queue that the port does not have, or they leave none for the rest.
    pub fn check(&self, queues: u16) -> Result<(), LaneError> {
        let named = self.targets.iter().flatten().filter_map(|target| target.queue);
        if let Some(queue) = named.max().filter(|queue| *queue >= queues) {
            return Err(LaneError::NoSuchQueue { queue, queues });
        }
        let is_left = |queue| !self.takes(queue, queues);
        if (0..queues).any(is_left) { Ok(()) } else { Err(LaneError::NothingLeft(queues)) }
    }

    /// The queues, of so many, that are for lanes alone.
    #[must_use]
    pub fn queues(&self, queues: u16) -> Vec<u16> {
        (0..queues).filter(|queue| self.takes(*queue, queues)).collect()
    }

    /// Whether `queue`, of so many, is for a lane alone.
    fn takes(&self, queue: u16, queues: u16) -> bool {
        let targets = self.targets.iter().flatten();
        targets.filter(|target| !target.shared).any(|target| target.of(queues) == queue)
    }
}

impl Target {
    /// The queue, of so many.
    fn of(self, queues: u16) -> u16 {
        self.queue.unwrap_or(queues.saturating_sub(1))
    }
}

/// Lanes in force on a port: which queue each rule chooses, and what each has decided.
#[derive(Clone, Debug)]
pub(crate) struct Steering {
    lanes: Lanes,
    /// The queue of each rule; none of an exception, nor of a lane whose queue is not in use.
    queues: Vec<Option<u16>>,
    packets: Vec<u64>,
}

impl Steering {
    pub(crate) const NONE: Self =
        Self { lanes: Lanes::NONE, queues: Vec::new(), packets: Vec::new() };

    /// `lanes` on a port of `queues` queues, of which the host uses the first `used`.
    pub(crate) fn new(lanes: Lanes, queues: u16, used: u16) -> Self {
        let packets = alloc::vec![0; lanes.targets.len()];
        let mut steering = Self { lanes, queues: Vec::new(), packets };
        steering.resolve(queues, used);
        steering
    }

    /// The host uses the first `used` of `queues` queues from now on.
    pub(crate) fn resolve(&mut self, queues: u16, used: u16) {
        let queue = |target: &Option<Target>| {
            target.map(|target| target.of(queues)).filter(|queue| *queue < used)
        };
        self.queues = self.lanes.targets.iter().map(queue).collect();
    }

    pub(crate) fn lanes(&self) -> &Lanes {
        &self.lanes
    }

    /// Packets that each rule has decided about.
    pub(crate) fn packets(&self) -> &[u64] {
        &self.packets
    }

    /// Whether `queue`, of so many, is for a lane alone.
    pub(crate) fn takes(&self, queue: u16, queues: u16) -> bool {
        self.lanes.takes(queue, queues)
    }

    /// The rule that decides about a packet, and the queue that it chooses, if any.
    #[inline]
    pub(crate) fn decide(&self, headers: &Headers) -> Option<(usize, Option<u16>)> {
        if self.queues.is_empty() {
            return None;
        }
        let rule = usize::from(self.lanes.rules.classify(headers).rule?);
        Some((rule, self.queues[rule]))
    }

    pub(crate) fn count(&mut self, rule: usize) {
        self.packets[rule] += 1;
    }
}

impl FromStr for Lanes {
    type Err = LaneError;

    /// Reads the text form that the [module](self) describes; blank text is no lanes.
    fn from_str(text: &str) -> Result<Self, LaneError> {
        if text.trim().is_empty() {
            return Ok(Self::NONE);
        }
        let (mut rules, mut targets) = (Vec::new(), Vec::new());
        for lane in text.split(',').map(str::trim) {
            let (rule, target) = match lane.rsplit_once(':') {
                Some((rule, queue)) => (rule, parse_target(queue.trim())?),
                None => (lane, Target { queue: None, shared: false }),
            };
            if rule.trim().is_empty() {
                return Err(LaneError::NoRule(lane.into()));
            }
            rules.push(rule);
            targets.push((target, lane.contains(':')));
        }
        let rules: Rules = rules.join(",").parse().map_err(LaneError::Rule)?;
        let mut resolved = Vec::new();
        for (index, (target, named)) in (0..).zip(targets) {
            let steers = rules.get(index).is_some_and(crate::marker::Rule::marks);
            if !steers && named {
                let rule = rules.get(index).map(|rule| alloc::format!("{rule}"));
                return Err(LaneError::ExceptionWithQueue(rule.unwrap_or_default()));
            }
            resolved.push(steers.then_some(target));
        }
        Ok(Self { rules, targets: resolved })
    }
}

fn parse_target(text: &str) -> Result<Target, LaneError> {
    let (queue, shared) = match text.strip_suffix(SHARED) {
        Some(queue) => (queue, true),
        None => (text, false),
    };
    // `parse` would also take a sign.
    let digits = queue.bytes().all(|byte| byte.is_ascii_digit());
    let queue = queue.parse().ok().filter(|_| digits);
    let queue = queue.ok_or_else(|| LaneError::NotAQueue(text.into()))?;
    Ok(Target { queue: Some(queue), shared })
}

/// One rule with its queue.
struct Text<'a>(&'a Lanes, u8, Option<Target>);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(lanes, index, target) = self;
        lanes.rules.get(*index).map_or(Ok(()), |rule| rule.fmt(f))?;
        match target {
            Some(Target { queue: Some(queue), shared }) => {
                write!(f, ":{queue}{}", if *shared { SHARED } else { "" })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, target) in (0..).zip(&self.targets) {
            f.write_str(if index == 0 { "" } else { ", " })?;
            Text(self, index, *target).fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for LaneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(error) => error.fmt(f),
            Self::NoRule(lane) => {
                write!(
                    f,
                    "`{lane}` has no rule; a lane is one and a queue, as in `tcp-port=11211:1`"
                )
            }
            Self::NotAQueue(text) => write!(
                f,
                "`{text}` is no queue; behind the colon of a lane is its number, as in \
                 `tcp-port=11211:1`, and `+rss` if the queue is to be shared"
            ),
            Self::ExceptionWithQueue(rule) => write!(
                f,
                "`{rule}` says that packets go by their hash; drop its queue, or `unmark`"
            ),
            Self::NoSuchQueue { queue, queues } => {
                write!(f, "a lane names queue {queue}; there are {queues} queues, from 0")
            }
            Self::NothingLeft(queues) => write!(
                f,
                "the lanes take all queues ({queues}), and the rest needs one: use more queues, or \
                 share a lane's with `+rss`, as in `tcp-port=11211:0+rss`"
            ),
        }
    }
}

impl core::error::Error for LaneError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{tcp4, udp4};
    use crate::headers::parse;
    use alloc::string::ToString;

    fn lanes(text: &str) -> Lanes {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn lanes_print_as_they_are_written() {
        for text in [
            "",
            "tcp-port=11211",
            "tcp-port=11211:1",
            "unmark tcp-port=80, udp-port=53 & length<=512:3+rss, dscp>=40:0",
        ] {
            assert_eq!(lanes(text).to_string(), text);
        }
        assert_eq!(lanes(" tcp-port = 80 : 1 ").to_string(), "tcp-port=80:1");
        let texts: Vec<_> = lanes("unmark mx, dscp=46:2").texts().collect();
        assert_eq!(texts, ["unmark mx", "dscp=46:2"]);
    }

    #[test]
    fn wrong_lanes_are_refused_in_words() {
        for (text, words) in [
            ("tcp-port=80:", "`` is no queue"),
            ("tcp-port=80:-1", "`-1` is no queue"),
            ("tcp-port=80:+1", "`+1` is no queue"),
            ("tcp-port=80:65536", "is no queue"),
            ("tcp-port=80:1+x", "is no queue"),
            ("unmark tcp-port=80:1", "drop its queue, or `unmark`"),
            ("tcp-prt=80:1", "unknown test `tcp-prt`"),
            (":1", "`:1` has no rule"),
        ] {
            let error = text.parse::<Lanes>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_port_needs_the_queue_and_one_more() {
        assert_eq!(lanes("mx:1").check(2), Ok(()));
        assert_eq!(lanes("mx").check(2), Ok(()));
        assert_eq!(lanes("mx:0+rss").check(1), Ok(()));
        let missing = LaneError::NoSuchQueue { queue: 2, queues: 2 };
        assert_eq!(lanes("mx:2").check(2), Err(missing));
        assert_eq!(lanes("mx").check(1), Err(LaneError::NothingLeft(1)));
        assert_eq!(lanes("mx:0, dscp=1:1").check(2), Err(LaneError::NothingLeft(2)));
        assert_eq!(Lanes::NONE.check(1), Ok(()));
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let steering =
            Steering::new(lanes("unmark tcp-port=5001, tcp-port=80:0+rss, udp-port=80"), 3, 3);
        let decide = |frame: &[u8]| steering.decide(&parse(frame).unwrap());
        assert_eq!(decide(&tcp4(5001, 80, 0, b"")), Some((0, None)));
        assert_eq!(decide(&tcp4(1, 80, 0, b"")), Some((1, Some(0))));
        assert_eq!(decide(&udp4(1, 80, b"")), Some((2, Some(2))));
        assert_eq!(decide(&crate::frames::ethernet(0x0806, &[0; 46])), None);
    }

    #[test]
    fn a_queue_that_the_host_does_not_use_is_no_lane() {
        let mut steering = Steering::new(lanes("tcp-port=80:2"), 3, 3);
        let headers = parse(&tcp4(1, 80, 0, b"")).unwrap();
        assert_eq!(steering.decide(&headers), Some((0, Some(2))));
        steering.resolve(3, 2);
        assert_eq!(steering.decide(&headers), Some((0, None)));
    }
}

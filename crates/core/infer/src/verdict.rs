//! The verdict, and its parts.

use core::fmt;

use crate::train::Length;

/// The families of holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Family {
    /// Nothing holds packets back.
    None,
    /// A timer that starts at the first unreported packet.
    Delay,
    /// A minimum gap between interrupts.
    Throttle,
    /// A free-running tick.
    Periodic,
    /// A timer that begins anew with each packet.
    Quiet,
    /// Polls of the kernel's, which keeps interrupts off for a while after each.
    Deferral,
    /// A delay that follows the traffic.
    Adaptive,
}

impl Family {
    pub(crate) const HOLDS: [Self; 6] =
        [Self::Delay, Self::Throttle, Self::Periodic, Self::Quiet, Self::Deferral, Self::Adaptive];

    /// The word for it, as in a setting.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Delay => "delay",
            Self::Throttle => "throttle",
            Self::Periodic => "periodic",
            Self::Quiet => "quiet",
            Self::Deferral => "deferral",
            Self::Adaptive => "adaptive",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A value and where it lies with 95 % confidence, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Interval {
    /// The estimated value.
    #[cfg_attr(feature = "serde", serde(rename = "usecs"))]
    pub value: f64,
    /// The lower end.
    #[cfg_attr(feature = "serde", serde(rename = "low_usecs"))]
    pub low: f64,
    /// The upper end.
    #[cfg_attr(feature = "serde", serde(rename = "high_usecs"))]
    pub high: f64,
}

impl Interval {
    pub(crate) fn around(value: f64, half: f64) -> Self {
        Self { value, low: (value - half).max(0.0), high: value + half }
    }
}

/// Which lengths of packets something is said of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Lengths {
    /// Short packets alone.
    #[default]
    Short,
    /// Full segments alone.
    Full,
    /// Packets of both lengths.
    Both,
}

impl Lengths {
    /// Whether it is said of this length.
    #[must_use]
    pub const fn covers(self, length: Length) -> bool {
        match self {
            Self::Short => matches!(length, Length::Short),
            Self::Full => matches!(length, Length::Full),
            Self::Both => true,
        }
    }
}

/// Where a hold sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Place {
    /// There is none; of what is excluded or cannot be seen, the way round: both sides.
    #[cfg_attr(feature = "serde", serde(rename = "both"))]
    Nowhere,
    /// At the far host's receiving.
    Theirs,
    /// At my receiving.
    Mine,
    /// Somewhere on the way round; the reasons say how to find out.
    Unknown,
}

impl Place {
    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Nowhere => "both",
            Self::Theirs => "theirs",
            Self::Mine => "mine",
            Self::Unknown => "unknown",
        }
    }

    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Theirs => Self::Mine,
            Self::Mine => Self::Theirs,
            Self::Nowhere | Self::Unknown => Self::Unknown,
        }
    }
}

/// A hold that the data shows.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// The side that it is on.
    #[cfg_attr(feature = "serde", serde(rename = "side"))]
    pub place: Place,
    /// Of which packets.
    pub lengths: Lengths,
    /// Of which family.
    pub family: Family,
    /// `rx-usecs` as it is felt; of an adaptive hold the longest seen.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub usecs: Interval,
    /// `rx-frames`, where a burst showed one.
    pub frames: Option<u32>,
    /// How long after its first packet a quiet hold ends at the latest, in microseconds, where
    /// packets came for so long.
    #[cfg_attr(feature = "serde", serde(rename = "bound_usecs"))]
    pub bound: Option<f64>,
    /// How many polls in a row find nothing before a deferral ends.
    pub polls: Option<u32>,
    /// How long a lone packet waits for it in the middle, in microseconds.
    pub lone_usecs: f64,
    /// How sure the family is, from 0.5 to 1.
    pub confidence: f64,
    /// Families that the data does not exclude: packets of others hide what tells them apart.
    pub alike: Vec<Family>,
    /// A far program that gathers requests and answers them together would look the same.
    pub or_program: bool,
}

/// Something that costs time and is not a hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OtherDelay {
    /// A core that was idle longer than `after` takes `takes` to come back; microseconds.
    Waking {
        /// On which side's receiving.
        place: Place,
        /// Idle for longer than this.
        after: f64,
        /// Time to come back.
        takes: f64,
    },
    /// A share of packets is late for reasons that do not follow from what was sent, as it is
    /// behind a scheduler, a busy core or bulk; which of them, the data does not show.
    Stray {
        /// On which side's receiving.
        place: Place,
        /// The share of them, 0 to 1.
        share: f64,
        /// Their 90th percentile in microseconds.
        usecs: f64,
    },
    /// The far program takes so long, in microseconds, between its two timestamps.
    Server {
        /// The median time.
        median: f64,
        /// The 99th percentile of the times.
        p99: f64,
    },
    /// The very first packet took so much longer, in microseconds: address resolution, cold caches.
    First {
        /// By how much.
        usecs: f64,
    },
}

/// A place where longer holds are excluded.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoHold {
    /// The side that it is on.
    #[cfg_attr(feature = "serde", serde(rename = "side"))]
    pub place: Place,
    /// Of which packets.
    pub lengths: Lengths,
    /// No hold is longer than this, in microseconds.
    #[cfg_attr(feature = "serde", serde(rename = "above_usecs"))]
    pub above: f64,
}

/// A place where the data does not say whether something holds packets back.
#[derive(Clone, Debug, PartialEq)]
pub struct Unclear {
    /// Where; [`Place::Nowhere`] is the way round, both sides.
    pub place: Place,
    /// Of which packets.
    pub lengths: Lengths,
    /// Longer holds are excluded, in microseconds; nothing where none is.
    pub below: Option<f64>,
    /// All that keeps the data from telling.
    pub why: Vec<UnclearReason>,
}

/// Why the data cannot tell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UnclearReason {
    /// Too many probes were not answered.
    Lost,
    /// Most probes were sent no closer than this, in microseconds.
    Spacing {
        /// The distance between neighbours.
        usecs: f64,
    },
    /// Few probes were sent.
    Few {
        /// The number of probes that were sent.
        sent: usize,
    },
    /// The far host's answers left no closer than this, in microseconds.
    Answers {
        /// The distance between neighbours.
        usecs: f64,
    },
    /// Packets that came apart were delivered neither together nor as far apart.
    Noise,
    /// Round trips show the longer of two holds, and this is the other side.
    RoundTrips,
}

/// What a verdict says of one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlaceVerdict<'a> {
    /// There is this hold.
    Hold(&'a Finding),
    /// No hold that is longer than this, in microseconds.
    NoHold {
        /// Longer holds are excluded.
        above: f64,
    },
    /// The data cannot tell.
    CannotTell,
}

/// All that the probes show.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Which packets were sent.
    pub tried: Lengths,
    /// The holds, at most one a side and length.
    pub findings: Vec<Finding>,
    /// Where longer holds than some are excluded: *no hold*.
    pub excluded: Vec<NoHold>,
    /// Where the data cannot tell.
    pub unclear: Vec<Unclear>,
    /// What else costs time.
    pub other_delays: Vec<OtherDelay>,
    /// The step in which times move, in nanoseconds, if it is a coarse one.
    pub quantum: Option<u64>,
    /// By how much an NTP client's offset is bent, in microseconds: positive if it will believe
    /// that the far clock is ahead by that much more than it is. By the holds that were found;
    /// nothing without timestamps of the far host, or where none was found and one may be there.
    pub offset_bend: Option<f64>,
    /// How many probes were answered, and how many were sent for an answer.
    pub answered: (usize, usize),
    /// All of it in words, a sentence each; the first ones are of the findings, in their order.
    pub reasons: Vec<String>,
}

impl Verdict {
    /// The hold at `place`, if one was found there.
    #[must_use]
    pub fn at(&self, place: Place) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.place == place)
    }

    /// What is said of `place`; of both sides at once where the data has one judgement for them.
    #[must_use]
    pub fn verdict_at(&self, place: Place) -> PlaceVerdict<'_> {
        if let Some(finding) = self.at(place) {
            return PlaceVerdict::Hold(finding);
        }
        let all = |no_hold: &&NoHold| no_hold.lengths == self.tried;
        self.not_above(place, all).unwrap_or(PlaceVerdict::CannotTell)
    }

    /// The same, of packets of this length.
    #[must_use]
    pub fn verdict_for(&self, place: Place, length: Length) -> PlaceVerdict<'_> {
        let finding =
            self.findings.iter().find(|it| it.place == place && it.lengths.covers(length));
        let not_above = || self.not_above(place, |no_hold| no_hold.lengths.covers(length));
        finding.map(PlaceVerdict::Hold).or_else(not_above).unwrap_or(PlaceVerdict::CannotTell)
    }

    fn not_above(
        &self,
        place: Place,
        which: impl Fn(&&NoHold) -> bool,
    ) -> Option<PlaceVerdict<'_>> {
        let is_there = |it: &&NoHold| it.place == place || it.place == Place::Nowhere;
        let no_hold = self.excluded.iter().filter(is_there).find(which)?;
        Some(PlaceVerdict::NoHold { above: no_hold.above })
    }

    /// Whether it is certain that nothing holds packets back.
    #[must_use]
    pub fn is_free_of_holds(&self) -> bool {
        self.findings.is_empty() && self.unclear.is_empty()
    }
}

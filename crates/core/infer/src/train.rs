//! Trains of probes, and why they are sent.

use base::time::Duration;

/// Why a train is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// One probe after a silence.
    Lone,
    /// Two probes at a swept distance.
    Pair,
    /// Many probes, tens of microseconds apart.
    Dense,
    /// Many probes, hundreds of microseconds apart.
    Sparse,
    /// Many probes as fast as they go.
    Burst,
    /// As fast as they go, with answers at moments of their own.
    Spaced,
    /// Probes at a rate that rises by and by.
    Ramp,
    /// A silent packet and a probe.
    Primed,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Lone,
        Self::Pair,
        Self::Dense,
        Self::Sparse,
        Self::Burst,
        Self::Spaced,
        Self::Ramp,
        Self::Primed,
    ];

    /// Its name in recordings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lone => "lone",
            Self::Pair => "pair",
            Self::Dense => "dense",
            Self::Sparse => "sparse",
            Self::Burst => "burst",
            Self::Spaced => "spaced",
            Self::Ramp => "ramp",
            Self::Primed => "primed",
        }
    }
}

/// How long the packets of a train are: some NICs hold, or stop to hold, by length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Length {
    /// A few dozen bytes.
    #[default]
    Short,
    /// As long as the way there takes in one piece.
    Full,
}

impl Length {
    /// Both lengths, the short one first.
    pub const ALL: [Self; 2] = [Self::Short, Self::Full];
}

/// One packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedProbe {
    /// When, after the train's begin.
    pub at: Duration,
    /// Ask for no answer.
    pub silent: bool,
    /// Ask for the answer so much later.
    pub wait: Duration,
}

/// Packets to send at moments of their own, whatever comes back meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Train {
    /// Counts from 0.
    pub number: u32,
    /// What it is sent for.
    pub purpose: Purpose,
    /// Of all its packets, but silent ones.
    pub length: Length,
    /// Silence to keep before it, after the last answer or its time-out.
    pub quiet: Duration,
    /// What to send, by time.
    pub sends: Vec<PlannedProbe>,
}

//! What keeps probes from showing a hold: plans that send too little or too slowly, echoes that
//! answer few, machines that have more to do than they can.

use crate::decoy::Decoy;
use crate::random::Random;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Obstacle {
    /// Probes keep this distance at least, as `--rate` makes them; in nanoseconds.
    Spacing {
        /// The distance, in nanoseconds.
        nanos: u64,
    },
    /// No more probes than this, as `--count` makes it, at a distance in nanoseconds.
    Few {
        /// Probes in all.
        count: u32,
        /// The distance, in nanoseconds.
        nanos: u64,
    },
    /// The far side answers so many a second, and as many at once.
    Limit {
        /// Answers a second.
        per_second: f64,
        /// Answers at once.
        burst: f64,
    },
    /// More processes than cores, on both hosts and on the way: interrupts, packets and programs
    /// wait for their turn.
    Load {
        /// The share of interrupts and requests that wait.
        share: f64,
        /// The longest wait, in microseconds.
        longest: f64,
        /// How far apart the pauses are in which nothing moves at all, in microseconds.
        every: f64,
    },
}

impl Obstacle {
    /// Its name in tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Spacing { .. } => "spacing",
            Self::Few { .. } => "few probes",
            Self::Limit { .. } => "limit of answers",
            Self::Load { .. } => "load",
        }
    }

    pub(crate) fn draw(random: &mut Random) -> Self {
        // From a few hundred to some tens of thousand packets a second.
        let nanos = random.between(4.5, 6.5);
        let nanos = 10_f64.powf(nanos) as u64;
        match random.whole(0, 3) {
            0 => Self::Spacing { nanos },
            1 => Self::Few {
                count: random.whole(20, 1_000),
                nanos: if random.is(0.5) { nanos } else { 0 },
            },
            2 => Self::Limit {
                per_second: 10_f64.powf(random.between(1.0, 3.5)),
                burst: random.between(1.0, 50.0),
            },
            _ => Self::Load {
                share: random.between(0.2, 0.9),
                longest: random.between(200.0, 4_000.0),
                every: random.between(1_000.0, 20_000.0),
            },
        }
    }

    /// What a core, the wire, and the far program's scheduler have of it.
    pub(crate) const fn core(self) -> Option<Decoy> {
        match self {
            Self::Load { share, longest, .. } => Some(Decoy::BusyCore { share, longest }),
            _ => None,
        }
    }

    pub(crate) const fn path(self) -> Option<Decoy> {
        match self {
            Self::Load { longest, every, .. } => Some(Decoy::Queue { every, longest }),
            _ => None,
        }
    }

    pub(crate) fn scheduler(self) -> Option<(f64, f64)> {
        match self {
            Self::Load { share, longest, .. } => Some((share, 0.1 * longest * 1e3)),
            _ => None,
        }
    }
}

/// A bucket of answers that fills at a steady rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    per_second: f64,
    burst: f64,
    left: f64,
    filled: f64,
}

impl Bucket {
    pub(crate) fn of(obstacle: Option<Obstacle>) -> Option<Self> {
        match obstacle {
            Some(Obstacle::Limit { per_second, burst }) => {
                Some(Self { per_second, burst, left: burst, filled: 0.0 })
            }
            _ => None,
        }
    }

    /// Whether there is an answer left at `now`, in nanoseconds.
    pub(crate) fn take(&mut self, now: f64) -> bool {
        let more = (now - self.filled).max(0.0) * 1e-9 * self.per_second;
        self.left = (self.left + more).min(self.burst);
        self.filled = self.filled.max(now);
        let is_left = self.left >= 1.0;
        self.left -= f64::from(is_left);
        is_left
    }
}

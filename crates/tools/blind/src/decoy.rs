//! What costs time and is no hold.

use crate::random::Random;

/// Something that costs time and is no hold; microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Decoy {
    /// A core that was idle for longer than `after` takes `takes` to come back.
    Waking {
        /// Idle time that is needed, in us.
        after: f64,
        /// Time to come back, in us.
        takes: f64,
    },
    /// One interrupt in so many finds its core busy, for up to `longest`.
    BusyCore {
        /// Share of interrupts.
        share: f64,
        /// The longest wait.
        longest: f64,
    },
    /// The far program is woken late: a heavy tail.
    Scheduler {
        /// Share of wake-ups.
        share: f64,
        /// The scale of the tail.
        scale: f64,
    },
    /// The far program needs so long for each request.
    SlowServer {
        /// For one request.
        takes: f64,
    },
    /// The far program gathers requests, and answers them together.
    Gathering {
        /// As soon as there are so many,
        count: u32,
        /// or so long after the first of them.
        longest: f64,
    },
    /// Bursts of bulk queue in front of the probes, on the way there.
    Queue {
        /// Mean time between two bursts.
        every: f64,
        /// The longest queue that a burst leaves.
        longest: f64,
    },
    /// The first packet waits for address resolution.
    First {
        /// For so long.
        takes: f64,
    },
}

impl Decoy {
    /// Its name in tables.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Waking { .. } => "idle state",
            Self::BusyCore { .. } => "busy core",
            Self::Scheduler { .. } => "scheduler",
            Self::SlowServer { .. } => "slow server",
            Self::Gathering { .. } => "gathering program",
            Self::Queue { .. } => "bulk in front",
            Self::First { .. } => "first packet",
        }
    }

    pub(crate) fn draw_gathering(random: &mut Random) -> Self {
        Self::Gathering { count: random.whole(2, 16), longest: random.between(30.0, 500.0) }
    }

    pub(crate) fn draw(random: &mut Random) -> Self {
        match random.whole(0, 5) {
            0 => {
                // As cpuidle has it: no state is entered for less time than it takes to leave.
                let takes = random.between(10.0, 300.0);
                Self::Waking { after: takes.max(20.0) * random.between(1.0, 3.0), takes }
            }
            1 => Self::BusyCore {
                share: random.between(0.05, 0.35),
                longest: random.between(30.0, 600.0),
            },
            2 => Self::Scheduler {
                share: random.between(0.02, 0.3),
                scale: random.between(10.0, 200.0),
            },
            3 => Self::SlowServer { takes: random.between(10.0, 150.0) },
            4 => Self::Queue {
                every: random.between(500.0, 4_000.0),
                longest: random.between(50.0, 700.0),
            },
            _ => Self::First { takes: random.between(200.0, 3_000.0) },
        }
    }
}

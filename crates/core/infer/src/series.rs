//! One direction of what was measured, as a series of arrivals and releases.

use crate::measured::{MeasuredTrain, Probe};
use crate::stats::{median, quantile, slope, sorted};
use crate::train::Purpose;

/// A packet that comes so shortly after a release, in microseconds, may or may not have been found
/// by the poll that followed it.
pub(crate) const AT_ONCE: f64 = 0.5;

/// The quickest of so many packets in a row is taken for the lower edge of waits: even behind a
/// hold there is one in a few dozen that hardly waits.
const QUICKEST_OF: usize = 32;

/// The share of waits below the floor: not none, since a stamp may be off once. Of six thousand
/// packets, a dozen.
const BELOW_FLOOR: f64 = 0.002;

/// Fewer pairs do not tell how long a packet takes that is reported behind another.
const FEW_PAIRS: usize = 20;

/// Steps are up to this many times the middle one: a third more is what they vary by.
const LONG_STEP: f64 = 1.3;

/// Between which moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// From my sending to the far host's receiving.
    There,
    /// From the far host's sending to my receiving.
    Back,
    /// From my sending to my receiving.
    Round,
    /// From my sending to my NIC's receiving: a round trip without a hold of mine.
    ToNic,
    /// From my NIC's receiving to mine.
    FromNic,
}

impl Way {
    /// When a probe began this way and when it ended, each by the clock of that end.
    fn ends(self, probe: &Probe) -> Option<(u64, u64)> {
        let Probe { sent, received, nic, far, .. } = *probe;
        match self {
            Self::There => far.map(|far| (sent, far.received)),
            Self::Back => far.map(|far| far.sent).zip(received),
            Self::Round => received.map(|at| (sent, at)),
            Self::ToNic => nic.map(|at| (sent, at)),
            Self::FromNic => nic.zip(received),
        }
    }

    /// Whether it begins, and ends, on a clock that is not the kernel's here.
    const fn is_foreign(self) -> (bool, bool) {
        match self {
            Self::There | Self::ToNic => (false, true),
            Self::Back | Self::FromNic => (true, false),
            Self::Round => (false, false),
        }
    }
}

/// A packet: when it would have been reported without a hold, and when it was; in microseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reception {
    pub(crate) arrived: f64,
    pub(crate) released: f64,
    pub(crate) purpose: Purpose,
}

impl Reception {
    pub(crate) fn wait(&self) -> f64 {
        self.released - self.arrived
    }
}

/// One direction, in the order of arrival; waits are those above the floor.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) points: Vec<Reception>,
    /// What the path costs without a hold; with clocks that differ, only a number.
    pub(crate) floor: f64,
    /// Round trips, up to the kernel or up to the NIC.
    pub(crate) is_round: bool,
}

impl Series {
    /// What `way` shows; nothing where timestamps are missing. Primed trains are for
    /// [`side`](crate::side) alone: their silent packets are arrivals without a report.
    pub(crate) fn of(heard: &[MeasuredTrain], way: Way, drift: f64) -> Self {
        let probes = || heard.iter().flat_map(|heard| &heard.probes);
        let origin = probes().map(|probe| probe.sent).min().unwrap_or(0);
        let (begins, ends) = way.is_foreign();
        let foreign = |(begin, end)| if begins { begin } else { end };
        let foreign_origin = probes().find_map(|probe| way.ends(probe)).map_or(0, foreign);
        let since = |origin: u64, nanos: u64| (nanos as i128 - i128::from(origin)) as f64 / 1e3;
        let moment = |nanos: u64, is_foreign: bool| {
            if is_foreign {
                let micros = since(foreign_origin, nanos);
                micros - micros * drift
            } else {
                since(origin, nanos)
            }
        };
        let mut points = Vec::new();
        for MeasuredTrain { train, probes } in heard {
            if train.purpose == Purpose::Primed {
                continue;
            }
            points.extend(probes.iter().filter_map(|probe| way.ends(probe)).map(|(begin, end)| {
                let (arrived, released) = (moment(begin, begins), moment(end, ends));
                Reception { arrived, released, purpose: train.purpose }
            }));
        }
        points.sort_by(|a, b| a.arrived.total_cmp(&b.arrived));
        let is_round = matches!(way, Way::Round | Way::ToNic);
        let mut series = Self { points, floor: 0.0, is_round };
        series.settle();
        series
    }

    /// How fast waits grow, as their lower edge shows it: a line through the quickest of every few
    /// dozen packets.
    pub(crate) fn edge(&self) -> f64 {
        let quick = |group: &[Reception]| {
            let least = group.iter().min_by(|a, b| a.wait().total_cmp(&b.wait()));
            least.map(|point| (point.arrived, point.wait()))
        };
        // Where little comes, even the quickest may have had to wake a core.
        let is_dense = |point: &&Reception| {
            matches!(point.purpose, Purpose::Dense | Purpose::Burst | Purpose::Ramp)
        };
        let dense: Vec<Reception> = self.points.iter().filter(is_dense).copied().collect();
        let edge: Vec<_> = dense.chunks(QUICKEST_OF).filter_map(quick).collect();
        slope(&edge)
    }

    /// Moves arrivals to the moment at which the packet would have been reported without a hold.
    pub(crate) fn settle(&mut self) {
        let waits = sorted(self.points.iter().map(Reception::wait).collect());
        let floor = quantile(&waits, BELOW_FLOOR);
        self.raise(floor);
    }

    /// Moves the floor up, or down.
    pub(crate) fn raise(&mut self, by: f64) {
        for point in &mut self.points {
            point.arrived += by;
        }
        self.floor += by;
    }

    /// What one packet takes that is reported right behind another: a poll's step, or on the way
    /// round a server's answer. What comes within that time of a release may have queued for it.
    pub(crate) fn service(&self) -> f64 {
        let pairs = self.points.windows(2).filter(|pair| pair[1].arrived <= pair[0].released);
        let steps: Vec<f64> = pairs.map(|pair| pair[1].released - pair[0].released).collect();
        if steps.len() < FEW_PAIRS { 0.0 } else { median(steps).max(0.0) }
    }

    /// Packets that found nothing unreported, each with what was known when it arrived.
    pub(crate) fn starters(&self) -> Vec<Starter> {
        let service = LONG_STEP * self.service() + AT_ONCE;
        let mut starters: Vec<Starter> = Vec::new();
        for (at, point) in self.points.iter().enumerate() {
            let before = at.checked_sub(1).map(|before| &self.points[before]);
            if before.is_some_and(|before| point.arrived <= before.released + service) {
                continue;
            }
            starters.push(Starter {
                at,
                arrived: point.arrived,
                released: point.released,
                idle: before.map_or(f64::INFINITY, |before| point.arrived - before.released),
                last: starters.last().map_or(f64::NEG_INFINITY, |last| last.released),
            });
        }
        starters
    }
}

/// A packet that found nothing unreported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Starter {
    pub(crate) at: usize,
    pub(crate) arrived: f64,
    pub(crate) released: f64,
    /// How long nothing had been reported when it arrived.
    pub(crate) idle: f64,
    /// When the starter before it was reported: the last interrupt that is known.
    pub(crate) last: f64,
}

impl Starter {
    pub(crate) fn wait(&self) -> f64 {
        self.released - self.arrived
    }
}

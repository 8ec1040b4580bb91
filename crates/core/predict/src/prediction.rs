//! All that is said of a capture.

use alloc::string::String;
use alloc::vec::Vec;

use base::time::Instant;
use capture::CaptureCounts;
use infer::Clumping;

use crate::arrival::ArrivedPacket;
use crate::grid::Grid;
use crate::outcome::SettingOutcome;
use crate::proposal::Proposal;
use crate::spread::SpreadCounts;

/// What settings would do to the arrivals of a capture.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Prediction {
    /// `pcap` or `pcapng`.
    pub format: String,
    /// Packets in the capture.
    pub packets: u64,
    /// Packets that the host received.
    pub arrivals: u64,
    /// Their bytes, Ethernet headers included.
    pub bytes: u64,
    /// From the first arrival to the last.
    pub seconds: f64,
    /// The interface whose packets count, if the capture names it.
    pub interface: Option<String>,
    /// All interfaces of the capture.
    pub interfaces: Vec<String>,
    /// Which packets count as arrivals, in words.
    pub whose: String,
    /// Whether the capture leaves no doubt about that.
    pub is_sure: bool,
    /// What was wrong with the capture.
    pub counts: CaptureFlaws,
    /// What its stamps are worth.
    pub stamps: Stamps,
    /// What the stamps tell of the hold that packets went through.
    pub clumping: Clumping,
    /// What was in force, where the capture has the hold of each packet.
    pub recorded: Option<SettingOutcome>,
    /// Each setting that was asked for.
    pub settings: Vec<SettingOutcome>,
    /// Arrivals, from the first, that the grid and the proposals are made of.
    pub sampled: u64,
    /// The grid of settings, if it was asked for.
    pub grid: Option<Grid>,
    /// Rules that would mark what waits in vain, the best first.
    pub proposals: Vec<Proposal>,
}

/// [`CaptureCounts`] without those that are said elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaptureFlaws {
    /// Packets of which the capture has only the beginning.
    pub cut: u64,
    /// Packets whose headers are cut or contradict themselves.
    pub malformed: u64,
    /// Packets whose stamp is before that of the packet before.
    pub backwards: u64,
    /// Packets and blocks that were left out.
    pub left_out: u64,
    /// Bytes at the end that are no whole record.
    pub rest: u64,
}

impl From<CaptureCounts> for CaptureFlaws {
    fn from(counts: CaptureCounts) -> Self {
        let CaptureCounts { cut, malformed, backwards, rest, .. } = counts;
        let CaptureCounts { unknown_link, unknown_interface, unstamped, damaged, .. } = counts;
        let left_out = unknown_link + unknown_interface + unstamped + damaged;
        Self { cut, malformed, backwards, left_out, rest }
    }
}

/// What the stamps of a capture are worth.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stamps {
    /// Nanoseconds in whose steps they count.
    pub step_ns: u64,
    /// The part of arrivals that were moved back since the wire cannot have brought them so close
    /// together; none if its rate is not known.
    pub moved: Option<f64>,
    /// Microseconds by which those were moved, in the mean.
    pub moved_mean_us: Option<f64>,
    /// The longest of these.
    pub moved_max_us: Option<f64>,
}

impl Stamps {
    pub(crate) fn new(step_ns: u64, spread: Option<(SpreadCounts, u64)>) -> Self {
        let moved = |of: fn(SpreadCounts, f64) -> f64| {
            spread.map(|(counts, arrivals)| of(counts, arrivals.max(1) as f64))
        };
        Self {
            step_ns,
            moved: moved(|counts, arrivals| counts.moved as f64 / arrivals),
            moved_mean_us: moved(|it, _| it.sum_ns as f64 / it.moved.max(1) as f64 / 1e3),
            moved_max_us: moved(|counts, _| counts.max_ns as f64 / 1e3),
        }
    }
}

/// What is counted of arrivals on their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quality {
    pub(crate) arrivals: u64,
    pub(crate) bytes: u64,
    pub(crate) first: Instant,
}

impl Quality {
    #[inline]
    pub(crate) fn count(&mut self, arrival: &ArrivedPacket) {
        if self.arrivals == 0 {
            self.first = arrival.at;
        }
        self.arrivals += 1;
        self.bytes += u64::from(arrival.length);
    }
}

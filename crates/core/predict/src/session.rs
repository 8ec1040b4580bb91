//! A capture, from its first byte to the prediction.

use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;

use base::time::Instant;
use capture::{CapturedPacket, Interface, Owner, ReadError, Reader, Sure};
use infer::Clumps;
use nic::lanes::LaneError;
use nic::marker::Rules;
use nic::moderation::{Moderation, TimerKind};

use crate::arrival::{ArrivedPacket, Sample};
use crate::grid::Grid;
use crate::group::{By, Groups, flow_number};
use crate::prediction::{Prediction, Quality, Stamps};
use crate::proposal::propose;
use crate::recorded::RecordedHolds;
use crate::run::{RunSettings, SettingRun};
use crate::spread::WireSpread;

/// Packets after which it is decided whose arrivals count.
const LOOKED_AT: usize = 2_048;

/// What is asked of a capture.
#[derive(Clone, Debug)]
pub struct Question {
    /// The settings to compare.
    pub compare: Vec<Moderation>,
    /// What they have in common.
    pub run: RunSettings,
    /// By what holds are grouped.
    pub by: By,
    /// The host whose arrivals count, if it is named.
    pub host: Option<IpAddr>,
    /// The interface of the capture, if it is named.
    pub interface: Option<String>,
    /// Bits per second of the wire, if it is known: clumps are undone as far as it proves them
    /// wrong.
    pub link_rate: Option<u64>,
    /// The timer to search a grid of settings for.
    pub grid: Option<TimerKind>,
    /// The setting to propose marks for.
    pub propose: Option<Moderation>,
    /// Arrivals that the grid and proposals are made of, at most.
    pub sample: usize,
}

/// Why there is no prediction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PredictError {
    /// It is no capture.
    Read(ReadError),
    /// The capture has no packet that can be read.
    Empty,
    /// None of its packets has arrived.
    NoArrivals(Sure),
    /// There is no such interface; those that there are.
    NoInterface(String, Vec<String>),
    /// There are no queues for the lanes.
    Lanes(LaneError),
}

impl fmt::Display for PredictError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Empty => f.write_str("the capture has no packets that can be read"),
            Self::NoArrivals(Sure::Address(address)) => write!(
                f,
                "no packet of the capture goes to {address}; name the host that received them with --host"
            ),
            Self::NoArrivals(_) => f.write_str(
                "the capture has only packets that its host has sent; name the host that \
                 received them with --host",
            ),
            Self::NoInterface(name, known) => {
                write!(f, "the capture has no interface {name}; it has {}", known.join(", "))
            }
            Self::Lanes(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for PredictError {}

impl From<ReadError> for PredictError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<LaneError> for PredictError {
    fn from(error: LaneError) -> Self {
        Self::Lanes(error)
    }
}

/// A prediction that is being made.
#[derive(Debug)]
pub struct Predictor {
    reader: Reader,
    question: Question,
    /// The first packets, until it is decided whose arrivals count.
    first: Option<Vec<CapturedPacket>>,
    arrivals: Arrivals,
}

/// What becomes of packets.
#[derive(Debug)]
struct Arrivals {
    owner: Owner,
    interface: usize,
    begin_ns: Option<u64>,
    last: Instant,
    spread: Option<WireSpread>,
    quality: Quality,
    clumps: Clumps,
    sinks: Sinks,
}

/// What becomes of arrivals.
#[derive(Debug)]
struct Sinks {
    groups: Groups,
    runs: Vec<SettingRun>,
    sample: Sample,
    recorded: RecordedHolds,
}

impl Sinks {
    #[inline]
    fn take(&mut self, arrival: &ArrivedPacket) {
        let group = self.groups.number(&arrival.headers);
        self.runs.iter_mut().for_each(|run| run.arrive(arrival, group));
        self.sample.push(arrival);
    }
}

impl Predictor {
    /// A session to which nothing has come.
    ///
    /// # Errors
    /// If there are no queues for the lanes.
    pub fn new(question: Question) -> Result<Self, PredictError> {
        let run = |moderation: &Moderation| SettingRun::new(*moderation, &question.run);
        let sinks = Sinks {
            groups: Groups::new(question.by, rules_of(&question)),
            runs: question.compare.iter().map(run).collect::<Result<_, _>>()?,
            sample: Sample::of_at_most(question.sample),
            recorded: RecordedHolds::default(),
        };
        let arrivals = Arrivals {
            owner: Owner::new(question.host),
            interface: 0,
            begin_ns: None,
            last: Instant::ZERO,
            spread: None,
            quality: Quality::default(),
            clumps: Clumps::default(),
            sinks,
        };
        Ok(Self { reader: Reader::new(), question, first: Some(Vec::new()), arrivals })
    }

    /// The next bytes of the capture.
    ///
    /// # Errors
    /// If it is no capture, or it lacks the interface that was named.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), PredictError> {
        let Self { reader, first, arrivals, .. } = self;
        reader.feed(bytes, &mut |packet| match first {
            Some(first) => first.push(packet.clone()),
            None => arrivals.packet(packet),
        })?;
        if self.first.as_ref().is_some_and(|first| first.len() >= LOOKED_AT) {
            self.decide()?;
        }
        Ok(())
    }

    /// Decides whose arrivals count, and goes on with what was kept until then.
    fn decide(&mut self) -> Result<(), PredictError> {
        let Some(first) = self.first.take() else { return Ok(()) };
        let interfaces = self.reader.interfaces();
        self.arrivals.interface = match &self.question.interface {
            None => busiest(&first, interfaces.len()),
            Some(name) => {
                let is_it = |it: &Interface| it.name.as_ref() == Some(name);
                interfaces.iter().position(is_it).ok_or_else(|| {
                    let known = interfaces.iter().map(name_of).collect();
                    PredictError::NoInterface(name.clone(), known)
                })?
            }
        };
        let chosen = self.arrivals.interface;
        for packet in first.iter().filter(|packet| packet.interface == chosen) {
            self.arrivals.owner.look(packet);
        }
        self.arrivals.owner.decide();
        let said = interfaces.get(chosen).and_then(|interface| interface.speed);
        let is_recorded = first.iter().any(|packet| packet.recorded.is_some());
        let rate = self.question.link_rate.or(said).filter(|rate| *rate > 0 && !is_recorded);
        self.arrivals.spread = rate.map(WireSpread::new);
        first.iter().for_each(|packet| self.arrivals.packet(packet));
        Ok(())
    }

    /// No more bytes come: the prediction.
    ///
    /// # Errors
    /// If there was no capture, or nothing in it arrived.
    pub fn finish(mut self) -> Result<Prediction, PredictError> {
        self.reader.finish()?;
        if self.reader.counts().packets == 0 {
            return Err(PredictError::Empty);
        }
        self.decide()?;
        let Self { reader, question, arrivals, .. } = self;
        let Arrivals { owner, interface, last, mut spread, quality, clumps, mut sinks, .. } =
            arrivals;
        let whose = owner.decided().unwrap_or(Sure::All);
        if quality.arrivals == 0 {
            return Err(PredictError::NoArrivals(whose));
        }
        if let Some(spread) = &mut spread {
            spread.finish(&mut |arrival| sinks.take(arrival));
        }
        let lasted = last.since(quality.first);
        let Sinks { groups, runs, sample, recorded } = sinks;
        let settings: Vec<_> = runs.into_iter().map(|run| run.finish(lasted, &groups)).collect();
        let sampled = sample.arrivals();
        let grid = question.grid.map(|timer| Grid::search(timer, sampled, &question.run));
        let proposals = question.propose.map(|base| propose(base, sampled, &question.run));
        let interfaces = reader.interfaces();
        let step_ns = interfaces.get(interface).map_or(1, |it| it.resolution.step_ns());
        Ok(Prediction {
            format: reader.format().map_or_else(String::new, |it| it.to_string()),
            packets: reader.counts().packets,
            arrivals: quality.arrivals,
            bytes: quality.bytes,
            seconds: lasted.as_nanos() as f64 / 1e9,
            interface: interfaces.get(interface).and_then(|it| it.name.clone()),
            interfaces: interfaces.iter().map(name_of).collect(),
            whose: crate::words::whose(whose),
            is_sure: !matches!(whose, Sure::Either(..) | Sure::All),
            counts: (*reader.counts()).into(),
            stamps: Stamps::new(step_ns, spread.map(|it| (it.counts(), quality.arrivals))),
            clumping: clumps.judge(),
            recorded: recorded.finish(lasted, &groups),
            settings,
            sampled: sampled.len() as u64,
            grid: grid.transpose()?,
            proposals: proposals.transpose()?.unwrap_or_default(),
        })
    }
}

impl Arrivals {
    #[inline]
    fn packet(&mut self, packet: &CapturedPacket) {
        if packet.interface != self.interface || !self.owner.received(packet) {
            return;
        }
        if self.clumps.has_room() {
            self.clumps.add(packet.at_ns, flow_number(&packet.headers), packet.length);
        }
        // What our own NIC has held is known exactly, so the arrival is.
        let hold_ns = packet.recorded.map_or(0, |recorded| recorded.hold_ns);
        let came_ns = packet.at_ns.saturating_sub(hold_ns);
        let begin_ns = *self.begin_ns.get_or_insert(came_ns);
        let mut arrival = ArrivedPacket::of(packet, begin_ns + hold_ns);
        if let Some(recorded) = &packet.recorded {
            let group = self.sinks.groups.number(&arrival.headers);
            self.sinks.recorded.add(recorded, group);
        }
        self.quality.count(&arrival);
        arrival.at = arrival.at.max(self.last);
        self.last = arrival.at;
        match &mut self.spread {
            Some(spread) => {
                let sinks = &mut self.sinks;
                spread.push(&arrival, &mut |arrival| sinks.take(arrival));
            }
            None => self.sinks.take(&arrival),
        }
    }
}

/// Which interface has received most of these packets.
fn busiest(packets: &[CapturedPacket], interfaces: usize) -> usize {
    let mut counts = alloc::vec![0_u64; interfaces.max(1)];
    for packet in packets.iter().filter(|packet| packet.direction != capture::PacketDirection::Out)
    {
        if let Some(count) = counts.get_mut(packet.interface) {
            *count += 1;
        }
    }
    let most = (0..counts.len()).max_by_key(|at| (counts[*at], core::cmp::Reverse(*at)));
    most.unwrap_or(0)
}

fn name_of(interface: &Interface) -> String {
    interface.name.clone().unwrap_or_else(|| "(without a name)".into())
}

fn rules_of(question: &Question) -> Rules {
    question.run.rules.clone()
}

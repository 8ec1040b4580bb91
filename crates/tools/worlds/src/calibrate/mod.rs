//! What hosts of this machine cost: the constants of virtual time and of a model, measured.
//!
//! As the Open-MX paper did (section IV): packets that the host drops at once, with an interrupt
//! each and with an interrupt for many. What a packet takes in the receive path of the host then
//! depends on the interrupts that there are for each packet, in a straight line:
//!
//! ```text
//! ns for each packet = packet cost + interrupt cost x interrupts for each packet
//! ```
//!
//! Two settings of the NIC would do for the two constants; with three, each round has a check.
//! Datagrams take the same path and go on, through IP and UDP up to a socket, and that is the
//! packet cost of everything but MX. What sending costs is the CPU time of a program that sends
//! frames, for each of them.
//!
//! What programs pay beside packets needs no hosts ([`CoreCosts`]).

mod cores;
mod machine;

use anyhow::{Context, Result};
use nic::moderation::Moderation;
use serde::Serialize;
use sys::privilege::Privilege;

use crate::{Terminal, open};
use bench::compare;
use bench::environment::Environment;
use bench::experiment::Experiment;
use bench::measurement::Measurement;
use bench::options::{ExperimentOptions, NicOptions, Text};
use bench::ratio::Spread;
use bench::scenario::Run;
use bench::turns::Turns;
use bench::world::WorldKind;
pub use cores::CoreCosts;
use report::progress::Progress;

/// An interrupt for each packet, for some and for many.
const SETTINGS: [&str; 3] = ["disabled", "delay:20", "delay:200"];

/// What was measured, and where.
#[derive(Debug, Serialize)]
pub struct Calibration {
    /// Packets that the host drops as soon as it has looked at their EtherType.
    pub invalid_frames: Constants,
    /// Datagrams, up to their socket.
    pub datagrams: Constants,
    /// Nanoseconds for a frame that is sent.
    pub send_ns: Spread,
    /// What programs pay beside packets.
    pub cores: CoreCosts,
    /// Each measurement behind them.
    pub points: Vec<Point>,
    /// Those that have no figures.
    pub missed: Vec<Missed>,
    /// Machine and way of measuring.
    pub environment: Environment,
}

/// The line through the measurements of each round.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Constants {
    /// Nanoseconds for an interrupt: the slope. None if the host was so busy that it polled all the
    /// time, under every setting.
    pub interrupt_ns: Option<Spread>,
    /// Nanoseconds for a packet without one: where the line begins.
    pub packet_ns: Spread,
}

/// What one measurement has shown.
#[derive(Clone, Debug, Serialize)]
pub struct Point {
    /// Name of the experiment.
    pub experiment: String,
    /// The setting in force.
    pub setting: String,
    /// The round, from 1.
    pub round: u32,
    /// Interrupts for each packet.
    pub interrupts_per_packet: f64,
    /// Nanoseconds of the host's receive path for each packet.
    pub receive_ns: f64,
    /// Nanoseconds of the hosts' programs for each packet that was sent.
    pub programs_ns: f64,
}

/// A measurement without figures.
#[derive(Clone, Debug, Serialize)]
pub struct Missed {
    /// Name of the experiment.
    pub experiment: String,
    /// The setting in force.
    pub setting: String,
    /// The round, from 1.
    pub round: u32,
    /// What was seen instead.
    pub why: String,
}

impl Calibration {
    /// The options of virtual time that these constants are.
    pub fn options(&self) -> String {
        let interrupt = self.invalid_frames.interrupt_ns.map(|ns| ("interrupt", ns));
        let others = [("packet", self.datagrams.packet_ns), ("send", self.send_ns)];
        let option =
            |(name, ns): (&str, Spread)| format!("--{name}-cost {:.0}", ns.median.max(0.0));
        interrupt.into_iter().chain(others).map(option).collect::<Vec<_>>().join(" ")
    }
}

/// Measures, `rounds` times, each setting for so many seconds. A measurement that has no figures,
/// on a machine that is too busy, costs the others nothing.
pub fn run(
    seconds: f64,
    rounds: u32,
    privilege: Privilege,
    progress: &Progress,
) -> Result<Calibration> {
    let cores = CoreCosts::measure(rounds)?;
    let (mut points, mut missed) = (Vec::new(), Vec::new());
    let mut environment = None;
    for round in 1..=rounds {
        for experiment in [Experiment::InvalidFrames, Experiment::Pps] {
            for measured in measure(experiment, seconds, privilege, progress)? {
                match Point::of(experiment, round, &measured) {
                    Some(point) => points.push(point),
                    None => missed.push(Missed::of(experiment, round, &measured)),
                }
                environment.get_or_insert(measured.environment);
            }
        }
    }
    let nothing = "nothing was sent in time; give --duration more seconds";
    let send = of(&points, Experiment::InvalidFrames).filter(|point| point.setting == SETTINGS[0]);
    Ok(Calibration {
        invalid_frames: constants(&points, Experiment::InvalidFrames, rounds)?,
        datagrams: constants(&points, Experiment::Pps, rounds)?,
        send_ns: spread(send.map(|point| point.programs_ns)).context(nothing)?,
        cores,
        points,
        missed,
        environment: environment.context("nothing was measured; give --rounds 1 or more")?,
    })
}

fn measure(
    experiment: Experiment,
    seconds: f64,
    privilege: Privilege,
    progress: &Progress,
) -> Result<Vec<Measurement>> {
    let settings = SETTINGS.iter().map(|setting| Ok(Text(setting.parse::<Moderation>()?)));
    let options = ExperimentOptions {
        duration: Some(seconds),
        rounds: Some(1),
        compare: Some(settings.collect::<Result<_>>()?),
        ..ExperimentOptions::default()
    };
    let asked = Run { experiment, world: None, nic: NicOptions::default(), options };
    let turns = Turns::new(&asked, WorldKind::Live, 0)?;
    let world = open(WorldKind::Live, &asked.nic, Some(privilege))?;
    Ok(compare::run(&turns, world, &Terminal(progress))?.results)
}

impl Point {
    /// None of a measurement without figures.
    fn of(experiment: Experiment, round: u32, measured: &Measurement) -> Option<Self> {
        let cpu = measured.cpu?;
        let packets = measured.packets.filter(|packets| *packets > 0)? as f64;
        let interrupts = measured.interrupts? as f64;
        let dropped: u64 = measured.ports.iter().map(|port| port.ring_full + port.refused).sum();
        let nanos = measured.seconds * 1e9;
        Some(Self {
            experiment: experiment.name(),
            setting: measured.setting.clone(),
            round,
            interrupts_per_packet: interrupts / packets,
            receive_ns: cpu.host_receive * nanos / packets,
            programs_ns: (cpu.host - cpu.host_receive) * nanos / (packets + dropped as f64),
        })
    }
}

impl Missed {
    fn of(experiment: Experiment, round: u32, measured: &Measurement) -> Self {
        let why = measured.rounds.iter().find_map(|round| round.not_measured.clone());
        Self {
            experiment: experiment.name(),
            setting: measured.setting.clone(),
            round,
            why: why.unwrap_or_else(|| "the hosts took no packets".into()),
        }
    }
}

fn of(points: &[Point], experiment: Experiment) -> impl Iterator<Item = &Point> {
    points.iter().filter(move |point| point.experiment == experiment.name())
}

/// The line through the points of each round.
fn constants(points: &[Point], experiment: Experiment, rounds: u32) -> Result<Constants> {
    let lines = (1..=rounds).filter_map(|round| {
        let of_round = of(points, experiment).filter(|point| point.round == round);
        line(of_round.map(|point| (point.interrupts_per_packet, point.receive_ns)))
    });
    let lines: Vec<StraightLine> = lines.collect();
    Ok(Constants {
        interrupt_ns: spread(lines.iter().filter_map(|line| line.slope)),
        packet_ns: spread(lines.iter().map(|line| line.start)).context(
            "the settings did not differ in their interrupts for each packet, so that nothing tells \
             their cost from that of packets; give --duration more seconds",
        )?,
    })
}

fn spread(values: impl Iterator<Item = f64>) -> Option<Spread> {
    Spread::of(values.map(|value| (value, 1.0)))
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct StraightLine {
    /// Unknown where all points are at 0.
    slope: Option<f64>,
    /// Its value at 0.
    start: f64,
}

/// The line from which `points` differ least, in squares; none through points of one place, unless
/// that is 0.
fn line(points: impl Iterator<Item = (f64, f64)>) -> Option<StraightLine> {
    let points: Vec<_> = points.collect();
    let count = points.len() as f64;
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let width = mean(&|point| (point.0 - x).powi(2));
    if width > 1e-6 {
        let slope = mean(&|point| (point.0 - x) * (point.1 - y)) / width;
        return Some(StraightLine { slope: Some(slope), start: y - slope * x });
    }
    (x.abs() < 1e-3).then_some(StraightLine { slope: None, start: y })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn papers_two_measurements_give_its_two_constants() {
        // 965 ns with an interrupt each, 774 ns with next to none.
        let line = line([(1.0, 965.0), (0.0, 774.0)].into_iter()).unwrap();
        assert_eq!((line.slope.map(f64::round), line.start.round()), (Some(191.0), 774.0));
    }

    #[test]
    fn a_third_point_off_the_line_moves_it_a_little() {
        let line = line([(0.0, 100.0), (0.5, 160.0), (1.0, 200.0)].into_iter()).unwrap();
        assert!((line.slope.unwrap() - 100.0).abs() < 1e-9 && (line.start - 103.333).abs() < 0.001);
    }

    #[test]
    fn points_of_one_place_have_no_line() {
        assert_eq!(line([(1.0, 5.0), (1.0, 7.0)].into_iter()), None);
        // Of hosts that never were interrupted: what a packet costs, and no more.
        let polled = line([(0.0, 5.0), (0.0, 7.0)].into_iter());
        assert_eq!(polled, Some(StraightLine { slope: None, start: 6.0 }));
        assert_eq!(line(std::iter::empty()), None);
    }
}

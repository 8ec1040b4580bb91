//! The bench: experiments on a NIC between two hosts, and what they measure.
//!
//! # Theory of operation
//!
//! An [`experiment`] says which host does what. Its parts are workloads of the crate `workload`,
//! state machines without I/O, each driven by an [`agent`]. A [`world`] plays an experiment, on
//! namespaces in real time or on guests in virtual time, and returns records and counters;
//! [`measurement`] makes one type of them, whatever the world. [`turns`] are settings in rounds,
//! A B A B, and [`compare`] takes ratios within a round, so that a machine that drifts drifts under
//! all settings. A [`sweep`] spreads the cases of a command over processes.
//!
//! # Example
//!
//! Not run as a test: a world takes the rights to create hosts.
//!
//! ```no_run
//! use bench::compare::{open, run};
//! use bench::experiment::Experiment;
//! use bench::options::{ExperimentOptions, NicOptions, Text};
//! use bench::scenario::Run;
//! use bench::turns::Turns;
//! use bench::world::WorldKind;
//! use report::progress::Progress;
//!
//! let settings = [Text("disabled".parse()?), Text("delay:75".parse()?)];
//! let options = ExperimentOptions { compare: Some(settings.to_vec()), ..Default::default() };
//! let (experiment, nic) = (Experiment::TcpRr, NicOptions::default());
//! let asked = Run { experiment, world: None, nic, options };
//! let world = open(WorldKind::Live, &asked.nic, WorldKind::privilege([WorldKind::Live])?)?;
//! let turns = Turns::new(&asked, WorldKind::Live, 0)?;
//! let comparison = run(&turns, world, &Progress::new(true))?;
//! for ratio in &comparison.ratios {
//!     println!("{}: {} is {:.2} times {}", ratio.figure.title(), ratio.of, ratio.spread.median,
//! ratio.to); }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! - [`experiment`], [`agent`], [`world`]: as above;
//! - [`turns`], [`attempt`], [`sweep`]: what is played, by which agents;
//! - [`records`], [`mod@slice`], [`measurement`], [`histogram`], [`one_way`], [`ratio`],
//!   [`compare`]: figures;
//! - [`options`], [`applicability`], [`suggestions`], [`marks`], [`scenario`]: what is asked for;
//! - [`calibrate`], [`costs`]: what an interrupt and a packet cost a host, measured and modelled;
//! - [`environment`]: this machine.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod agent;
pub mod applicability;
pub mod attempt;
pub mod calibrate;
pub mod compare;
pub mod costs;
pub mod environment;
pub mod experiment;
pub mod histogram;
mod keys;
pub mod marks;
pub mod measurement;
pub mod nic_kind;
pub mod one_way;
pub mod options;
pub mod parallel;
pub mod polling;
pub mod ratio;
pub mod records;
pub mod scenario;
pub mod slice;
pub mod suggestions;
pub mod sweep;
pub mod turns;
pub mod world;

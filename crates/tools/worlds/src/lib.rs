//! Worlds of this machine: hosts that play experiments of the crate `bench`, in real time on
//! namespaces and guests, in virtual time on guests.
//!
//! # Theory of operation
//!
//! An experiment's parts are workloads of the crate `workload`, state machines without I/O, each
//! driven by an [`agent`], a process on its host. [`live`] and [`virtual_time`] play a round of
//! them and return what agents and NIC have counted; the rest is `bench`'s, which has the model
//! world and needs no machine.
//!
//! # Example
//!
//! Not run as a test: a world takes the rights to create hosts.
//!
//! ```no_run
//! use bench::compare::run;
//! use bench::experiment::Experiment;
//! use bench::options::{ExperimentOptions, NicOptions, Text};
//! use bench::scenario::Run;
//! use bench::turns::Turns;
//! use bench::world::WorldKind;
//! use report::progress::Progress;
//! use worlds::{Terminal, open, privilege};
//!
//! let settings = [Text("disabled".parse()?), Text("delay:75".parse()?)];
//! let options = ExperimentOptions { compare: Some(settings.to_vec()), ..Default::default() };
//! let (experiment, nic) = (Experiment::TcpRr, NicOptions::default());
//! let asked = Run { experiment, world: None, nic, options };
//! let world = open(WorldKind::Live, &asked.nic, privilege([WorldKind::Live])?)?;
//! let turns = Turns::new(&asked, WorldKind::Live, 0)?;
//! let comparison = run(&turns, world, &Terminal(&Progress::new(true)))?;
//! for ratio in &comparison.ratios {
//!     println!("{}: {} is {:.2} times {}", ratio.figure.title(), ratio.of, ratio.spread.median,
//! ratio.to); }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! - [`agent`], [`agents`]: what plays on a host, and what starts it there;
//! - [`live`], [`virtual_time`], [`virtual_lab`], [`served`], [`adaptive`]: worlds;
//! - [`setup`]: options in terms of ports and devices;
//! - [`calibrate`]: what an interrupt and a packet cost a host, measured;
//! - [`sweep`]: cases spread over processes;
//! - [`mod@environment`]: this machine.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod adaptive;
pub mod agent;
pub mod agents;
pub mod calibrate;
mod counted;
pub mod environment;
mod eta;
mod guests;
mod host_settings;
pub mod live;
mod opened;
mod preload;
mod script;
pub mod served;
pub mod setup;
pub mod sweep;
mod terminal;
pub mod virtual_lab;
mod virtual_run;
pub mod virtual_time;

pub use opened::{open, privilege};
pub use terminal::Terminal;

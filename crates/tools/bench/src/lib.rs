//! The bench: experiments on a NIC between two hosts, and what they measure.
//!
//! # Theory of operation
//!
//! An [`experiment`] says which host does what. Its parts are workloads of the crate `workload`,
//! state machines without I/O. A [`world`] plays an experiment and returns records and counters:
//! the model here, hosts of a machine in the crate `worlds`. [`measurement`] makes one type of
//! them, whatever the world. [`turns`] are settings in rounds, A B A B, and [`compare`] takes
//! ratios within a round, so that a machine that drifts drifts under all settings.
//!
//! Nothing here needs a machine, so all of it works in a browser as well.
//!
//! # Example
//!
//! ```
//! use bench::compare::run;
//! use bench::environment::Environment;
//! use bench::experiment::Experiment;
//! use bench::options::{ExperimentOptions, NicOptions, Text};
//! use bench::scenario::Run;
//! use bench::turns::Turns;
//! use bench::world::WorldKind;
//! use bench::world::model::ModelWorld;
//!
//! let compare = Some(vec![Text("disabled".parse()?), Text("delay:75".parse()?)]);
//! let options = ExperimentOptions { compare, duration: Some(0.1), ..Default::default() };
//! let (experiment, nic) = (Experiment::TcpRr, NicOptions::default());
//! let asked = Run { experiment, world: None, nic, options };
//! let world = ModelWorld::new(&asked.nic, Environment::of("model"))?;
//! let turns = Turns::new(&asked, WorldKind::Model, 0)?;
//! let ratios = run(&turns, Box::new(world), &())?.ratios;
//! assert!(ratios.iter().any(|ratio| ratio.to == "disabled" && ratio.spread.median > 2.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! - [`experiment`], [`agent`], [`world`]: what is played, and where;
//! - [`turns`], [`attempt`], [`shard`], [`caller`]: in which order, and for which program;
//! - [`records`], [`mod@slice`], [`measurement`], [`histogram`], [`one_way`], [`ratio`],
//!   [`compare`]: figures;
//! - [`options`], [`applicability`], [`suggestions`], [`marks`], [`scenario`], [`mod@line`]: what
//!   is asked for;
//! - [`costs`]: what an interrupt and a packet cost a modelled host;
//! - [`mod@environment`]: where a result comes from.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod agent;
pub mod applicability;
pub mod attempt;
pub mod caller;
pub mod compare;
pub mod costs;
pub mod environment;
pub mod experiment;
pub mod histogram;
mod keys;
pub mod line;
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
pub mod shard;
pub mod slice;
pub mod suggestions;
pub mod turns;
pub mod world;

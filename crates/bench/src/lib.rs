//! The bench: experiments, worlds, measurements.
//!
//! An [`experiment`] says who does what on which host; its parts are [`workload`]s, state machines
//! without I/O, each driven by an [`agent`]. A [`world`] plays an experiment and returns
//! [`records`] and counters, of which [`measurement`] makes one type whatever the world.
//! [`compare`] plays settings in turns, and takes ratios within a turn.
#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod agent;
pub mod applicability;
pub mod calibrate;
pub mod compare;
pub mod costs;
pub mod environment;
pub mod experiment;
pub mod files;
pub mod histogram;
pub mod kernel;
mod keys;
pub mod marks;
pub mod measurement;
pub mod one_way;
pub mod options;
pub mod ratio;
pub mod records;
pub mod scenario;
pub mod suggestions;
pub mod workload;
pub mod world;

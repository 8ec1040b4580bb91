//! Changes device settings safely, and finds the settings that suit a workload: `earmark apply`,
//! `tune`, `rollback`, `persist`.
//!
//! # Theory of operation
//!
//! A change is a transaction: lock, journal on disk, change, read back, keep or undo. A guard
//! process undoes it if this one is killed. A search measures settings in turns, A B C, C B A, so
//! that a machine that drifts drifts under all of them. Along the hold time figures change
//! smoothly: a few points far apart predict where the goal is met best, and pairs of rounds decide
//! between the last few. The pick is measured again against how the device was, and kept only if it
//! is no worse.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod answers;
pub mod device;
mod expectation;
mod failpoint;
mod figures;
mod front;
mod goal;
pub mod guard;
mod journal;
pub mod lane;
pub mod lone;
mod output;
pub mod peer;
pub mod persist;
mod recommendation;
pub mod recover;
mod search;
mod session;
mod setting;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod texts;
pub mod threads;
pub mod transaction;
mod trial;
mod workload;
mod world;

pub use expectation::Expectation;
pub use figures::Metric;
pub use goal::{Goal, Sense};
pub use journal::{Journal, Kept, Store};
pub use output::Locator;
pub use recommendation::Recommendation;
pub use search::{Budget, Method, Space};
pub use session::{Progress, Request, tune_device, tune_world};
pub use setting::{Change, Knob, Setting, State, Value};
pub use trial::Play;
pub use workload::Workload;
pub use world::TunedWorld;

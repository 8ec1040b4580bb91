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
//!
//! # Example
//!
//! A search needs no device; here latency rises and interrupts fall with `rx-usecs`.
//!
//! ```
//! use tune::figures::{Figures, Metric};
//! use tune::search::{Budget, Method, Space, search};
//! use tune::setting::{Setting, Value};
//!
//! let space = Space::of(&"rx-usecs 100".parse()?, 512);
//! let goal = "min interrupts, p50 < 60us".parse()?;
//! let found = search(&space, &goal, Method::Guided(Budget::USUAL), &mut |point| {
//!     let usecs = match space.change(point).get(Setting::RxUsecs) {
//!         Some(Value::Number(usecs)) => *usecs as f64,
//!         _ => 100.0,
//!     };
//!     let figures = [(Metric::P50, 30.0 + usecs), (Metric::Interrupts, 1e6 / (10.0 + usecs))];
//!     Ok(Figures(figures.into()))
//! })?;
//! assert!(goal.misses(&found.trials[found.best].mean()).is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! - [`setting`]: settings as text, by ethtool's names;
//! - [`device`]: an interface of this machine, or a port of a NIC of ours;
//! - [`journal`], [`transaction`], [`guard`], [`recover`]: a change that is undone whatever
//!   happens;
//! - [`figures`], [`goal`], [`search`]: what is measured, what is wanted, how to find it;
//! - [`workload`], [`peer`], [`trial`]: what is played meanwhile, with a far host; [`output`]: the
//!   number of a user's command that counts;
//! - [`world`]: the same with a NIC of ours between two hosts of ours;
//! - [`session`], [`recommendation`]: a whole run, and what it finds;
//! - [`lone`]: changes under which a lone packet may wait for others;
//! - [`lane`]: a queue for urgent packets, of what a device has;
//! - [`persist`]: files that bring settings back at each boot.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod answers;
pub mod device;
mod failpoint;
pub mod figures;
mod front;
pub mod goal;
pub mod guard;
pub mod journal;
pub mod lane;
pub mod lone;
pub mod output;
pub mod peer;
pub mod persist;
pub mod recommendation;
pub mod recover;
pub mod search;
pub mod session;
pub mod setting;
#[cfg(test)]
mod testing;
pub mod transaction;
pub mod trial;
pub mod workload;
pub mod world;

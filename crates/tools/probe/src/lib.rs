//! Finds holds of NICs from outside: `earmark probe` and `earmark echo`.
//!
//! # Theory of operation
//!
//! A NIC that holds packets shows in the times of small ones. A plan of [`infer`] asks for trains
//! of them at swept distances. [`run`](mod@run) sends each at its moment, whatever comes back
//! meanwhile, and takes the kernel's timestamps of what was sent and received. [`infer::judge`]
//! fits the families of moderation to these times. An echo that adds its own timestamps, such as
//! [`echo`], separates the two directions.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod echo;
pub mod fleet;
pub mod prober;
pub mod recording;
pub mod report;
pub mod run;
mod spin;

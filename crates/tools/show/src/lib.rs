//! What delays the packets that a device receives, and for how long at most.
//!
//! # Theory of operation
//!
//! On its way from the wire to the application, a packet may wait at several places: coalescing in
//! the NIC, NAPI deferral, offloads that merge, a processor that sleeps, a socket that is polled.
//! The kernel says of each how it is set. A [`Report`] has all of it: the crate `observe` fills it
//! from the kernel of this machine, `read` from text. The bounds of each delay follow from the
//! settings, [`check`] holds them against a policy, and [`screen`] puts them on one screen.
//! There is no I/O here; it works in a browser as well.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod check;
mod delays;
mod lab;
mod lanes;
mod lines;
mod rates;
mod report;
mod role;
mod screen;
mod sleep;
pub mod suspension;

pub use delays::{Delay, delays_of};
pub use lab::LabPort;
pub use lanes::Lane;
pub use lines::{count, us};
pub use rates::{QueueRates, Rates, Reading, VectorRates};
pub use report::{FILES, Report, Unreadable, Vector, part, vectors};
pub use role::{are_for_receiving, cpu_of, crowded_cpu};
pub use screen::{screen, summary};

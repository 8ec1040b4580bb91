//! What delays the packets that a device receives, and for how long at most: `earmark show` and
//! `earmark watch`.
//!
//! # Theory of operation
//!
//! On its way from the wire to the application, a packet may wait at several places: coalescing in
//! the NIC, NAPI deferral, offloads that merge, a processor that sleeps, a socket that is polled.
//! The kernel says of each how it is set. [`Report::read`] reads a device in one pass, the bounds
//! of each delay follow from the settings, and [`screen`] puts them on one screen.
//! Nothing here changes anything.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod check;
mod delays;
mod lab;
mod lanes;
mod lines;
mod rates;
mod read;
mod report;
mod role;
mod screen;
mod sleep;

pub use delays::{Delay, delays_of};
pub use lab::LabPort;
pub use lanes::Lane;
pub use lines::Lines;
pub use rates::{Meter, QueueRates, Rates};
pub use read::{all_devices, nics};
pub use report::Report;
pub use role::are_for_receiving;
pub use screen::{screen, summary};

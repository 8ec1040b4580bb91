//! What delays the packets that a device receives, and for how long at most: `earmark show` and
//! `earmark watch`.
//!
//! # Theory of operation
//!
//! On its way from the wire to the application, a packet may wait at several places: coalescing in
//! the NIC, NAPI deferral, offloads that merge, a processor that sleeps, a socket that is polled.
//! The kernel says of each how it is set. [`read`] reads a device in one pass into a [`report`],
//! the bounds of each delay follow from the settings, and [`screen`] puts them on one screen.
//! Nothing here changes anything.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "names say it, or a comment does")]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod check;
mod crowding;
pub mod delay;
pub mod delays;
pub mod lab;
pub mod lanes;
pub mod lines;
pub mod rates;
pub mod read;
pub mod report;
pub mod role;
pub mod screen;
mod sleep;

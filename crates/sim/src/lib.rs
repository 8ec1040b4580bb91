//! A simulated network of MX endpoints.
//!
//! Everything happens in one thread, in the order of (time, sequence number), and everything random
//! comes from one seed: a run that went wrong goes wrong again, in the same way, as often as one
//! likes. Hosts are ideal here: what an endpoint does takes no time.
//!
//! - [`world`]: endpoints, a switch and cables, and the faults of the latter;
//! - [`seeds`]: what is different from seed to seed: settings, faults, habits of applications;
//! - [`drive`]: applications that send, receive, probe, cancel, restart and close at random;
//! - [`load`]: streams of messages, and how fast they are;
//! - [`model`]: what applications may expect, found out without looking into an endpoint.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod drive;
pub mod load;
pub mod model;
pub mod network;
pub mod queue;
pub mod seeds;
pub mod world;

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
//!
//! # Example
//!
//! ```
//! let root = netdev::Root::here();
//! for name in show::read::nics(&root)? {
//!     println!("{name}");
//! }
//! # Ok::<(), anyhow::Error>(())
//! ```
//!
//! # Modules
//!
//! - [`read`], [`report`]: all that the kernel says of a device;
//! - [`delays`], [`delay`]: what holds a lone packet back, and for how long at most;
//! - [`lanes`]: queues that rules choose; [`lab`]: the NIC of a lab behind a device;
//! - [`screen`], [`lines`]: for people;
//! - [`check`]: devices held against a policy of rules;
//! - [`rates`], [`role`]: packets, interrupts and drops a second; what an interrupt is for.

#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "the command alone uses this: names say what their comments do not"
)]
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

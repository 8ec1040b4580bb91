//! What people paste and send, as the records of a device: `earmark read`.
//!
//! # Theory of operation
//!
//! Bytes in, records out. A text is cut into parts (`block`) by commands and by lines that
//! only one kind of output has. Each part fills the records that `observe` fills from the kernel of
//! this machine, and the rules of [`show`] say what follows, so that a paste and a machine get the
//! same sentences. Files of a report (`sosreport`, `supportconfig`) and of programs that configure
//! devices become a tree, which the readers of the kernel's files and of such programs read as they
//! read those of this machine. Round trips have rules of their own (`round_trips`).
//!
//! What is not recognised is said and counted. Texts are streamed, some megabytes at a time
//! (`stream`), and what is kept of them is bounded. It builds for `wasm32-unknown-unknown`: no
//! files, no clock.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod answer;
pub mod archive;
mod between;
mod block;
mod command;
mod configuration;
mod device_report;
mod ethtool;
mod gather;
mod kind;
mod known;
mod machine;
pub mod packed;
mod parts;
mod place;
mod round_trips;
mod screen;
mod stream;
mod text;
mod tree;
mod unknown;

pub use answer::{FileSetting, Ratio, ReadResult, Taken};
pub use gather::{Input, Options, ReadSession, read};
pub use kind::InputKind;
pub use place::{LARGEST, is_looked_at};
pub use round_trips::{RoundTripBounds, RoundTrips};
pub use screen::screen;

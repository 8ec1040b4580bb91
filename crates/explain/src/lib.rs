//! One request's path, as stages with microseconds, and what to make of it.
//!
//! ```text
//! kernel ─▶ tracer ─▶ decode ─▶ engine ─▶ stages ─▶ summary ─▶ evidence, verdict ─▶ report
//!           windows   records   paths     lengths   quantiles  words
//! ```
//!
//! From [`decode`] to [`verdict`] nothing does I/O. Around them are [`own`], which asks a host
//! ([`traffic`], [`stamped`]), and [`program`], which runs a program or watches a device.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod decode;
pub mod engine;
pub mod event;
pub mod event_requests;
pub mod evidence;
pub mod hold;
pub mod own;
pub mod program;
pub mod report;
pub mod routes;
mod signals;
pub mod sockets;
pub mod stages;
pub mod stamped;
pub mod summary;
pub mod target;
pub mod task_filter;
pub mod tracer;
pub mod traffic;
pub mod verdict;

//! Where the time of a request goes: its path through this host, as stages with microseconds.
//!
//! # Theory of operation
//!
//! ```text
//! kernel ─▶ tracer ─▶ decode ─▶ engine ─▶ stages ─▶ summary ─▶ evidence, verdict ─▶ report
//!           windows   records   paths     lengths   quantiles  words
//! ```
//!
//! Tracepoints mark the moments of a packet: interrupt, softirq, socket, wake-up, system call. The
//! engine joins them into paths by the addresses that events carry (socket, buffer, thread), and
//! the stages of a path add up to its whole. What the far side and the NIC do is known from
//! references that are sent meanwhile, and from time stamps. From `decode` to `verdict` nothing
//! does I/O.
//!
//! ```
//! # fn explain(report: explain::report::Explanation) {
//! let text = report.text(report::terminal::Width::columns(80));
//! println!("{text}");
//! # }
//! ```

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod answer;
pub mod cause;
mod decode;
mod engine;
mod event;
mod event_requests;
mod evidence;
mod hold;
pub mod own;
pub mod program;
pub mod report;
mod signals;
pub mod sockets;
pub mod stages;
mod stamped;
mod summary;
mod task_filter;
mod tracer;
mod traffic;
mod verdict;

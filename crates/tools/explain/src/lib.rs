//! Where the time of a request goes: its path through this host, as stages with microseconds.
//!
//! # Theory of operation
//!
//! ```text
//! kernel ─▶ flows ─▶ following ─▶ program, own ─▶ cause ─▶ report
//!           requests with stages  by subject      words
//! ```
//!
//! [`flows`] follows requests in the kernel: at each moment a request waits for one thing, so the
//! stages of a request add up to its whole. What the far side and the NIC do is known from
//! references that are sent meanwhile ([`own`], `traffic`, `evidence`), and from time stamps. What
//! follows from all of that is pure: [`cause`]. With a host that runs `earmark serve --explain`,
//! both ends of a request are one table: [`far`] follows it there, `both` joins the two.
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
mod both;
pub mod cause;
mod evidence;
pub mod far;
mod following;
mod hold;
pub mod own;
pub mod program;
pub mod report;
mod signals;
mod stamped;
pub mod surroundings;
mod symbols;
mod traffic;

//! Finds holds of NICs from outside: `earmark probe` and `earmark echo`.
//!
//! # Theory of operation
//!
//! A NIC that holds packets shows in the times of small ones. A plan of [`infer`] asks for trains
//! of them at swept distances. [`run`](mod@run) sends each at its moment, whatever comes back
//! meanwhile, and takes the kernel's timestamps of what was sent and received. [`infer::judge`]
//! fits the families of moderation to these times. An echo that adds its own timestamps, such as
//! [`echo`], separates the two directions.
//!
//! # Example
//!
//! The wire format of our own echo:
//!
//! ```
//! let request = probe::echo::request(7, 0);
//! assert_eq!(request.len(), probe::echo::LENGTH);
//! // A request is no answer, so two echoes never answer each other.
//! assert_eq!(probe::echo::answer(b"no answer of an echo"), None);
//! ```
//!
//! # Modules
//!
//! - [`prober`]: requests to the echoes that far hosts have, and their replies;
//! - [`run`](mod@run): sends what a plan asks for;
//! - [`fleet`]: many hosts;
//! - [`echo`]: the far side of our own;
//! - [`recording`]: measurements in a file, to be judged again;
//! - [`report`]: the verdict for people and as JSON.

#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    reason = "the command alone uses this: names say what their comments do not"
)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod echo;
pub mod fleet;
pub mod prober;
pub mod recording;
pub mod report;
pub mod run;
mod spin;

//! What `show` knows of a device, read from the kernel of this machine: in one pass ([`read`]), and
//! counters again and again ([`Meter`]); what a server polls ([`pollers()`]), and who did
//! ([`PollMeter`]). Nothing here changes anything.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod lanes;
mod meter;
mod pollers;
mod polls;
mod read;

pub use meter::Meter;
pub use pollers::{pollers, pollers_here};
pub use polls::PollMeter;
pub use read::{nics, read};

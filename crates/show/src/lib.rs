//! What delays a received packet on a device: read, ordered, and said in words.
//!
//! [`read`] reads a device in one pass into a [`report`], [`delays`] finds what holds a lone packet
//! back and for how long at most, [`screen`] puts it all on one screen, from the wire to the
//! application. [`rates`] is what a device does over time. Nothing here changes anything.
#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod delay;
pub mod delays;
mod drivers;
pub mod lines;
pub mod rates;
pub mod read;
pub mod report;
pub mod screen;

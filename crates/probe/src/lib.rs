//! `earmark probe`: what a round trip costs and where a hold sits, measured from here.
//!
//! [`prober`] speaks to the echo that the far side has, [`run`](mod@run) sends the trains that
//! [`infer::Plan`] asks for at the moments it asks for, whatever comes back meanwhile, and
//! [`report`] says what [`infer::judge`] makes of the kernel's timestamps. [`echo`] is a far side
//! of our own. [`recording`] keeps what was heard, to be judged again.

#![forbid(unsafe_code)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod echo;
pub mod prober;
pub mod recording;
pub mod report;
pub mod run;
mod spin;

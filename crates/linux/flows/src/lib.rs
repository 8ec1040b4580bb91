//! Requests of TCP and UDP flows, followed in the kernel by BPF.
//!
//! [`record`] is what is known of one request: who asked whom, when, and for what it waited how
//! long.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod record;

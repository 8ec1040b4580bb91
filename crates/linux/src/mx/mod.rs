//! MX on Linux: what moves the frames of the `mx` crate, and what lives on it.

pub mod endpoint;
pub mod port;
pub mod report;

//! A software NIC's receive path.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod counters;
pub mod descriptor;
#[cfg(test)]
mod frames;
pub mod headers;
pub mod link;
pub mod marker;
pub mod moderation;
pub mod observer;
pub mod port;
pub mod prng;
pub mod queue;
pub mod rss;
pub mod time;
pub mod vector;

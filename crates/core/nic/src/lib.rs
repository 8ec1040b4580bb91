#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub use base::{prng, time};

pub mod claim;
pub mod counters;
pub mod descriptor;
#[cfg(test)]
mod frames;
pub mod handler;
pub mod headers;
pub mod lanes;
pub mod marker;
pub mod moderation;
pub mod observer;
pub mod port;
pub mod processor;
pub mod queue;
pub mod rss;
pub mod vector;

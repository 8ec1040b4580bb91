#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod address;
pub mod buffers;
pub mod config;
pub mod counters;
pub mod endpoint;
pub mod ids;
mod large;
pub mod matching;
pub mod outgoing;
mod pattern;
mod peer;
pub mod seq;
pub mod status;
mod waiting;
pub mod wire;

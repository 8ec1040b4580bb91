//! What the pure cores share: time that is passed in, and random numbers that come from a seed.
//!
//! `nic` and `mx` know nothing of each other, and yet a simulator hands both the same moment.
#![no_std]
#![forbid(unsafe_code)]

pub mod prng;
pub mod time;

#![doc = include_str!("../README.md")]

pub mod discovery;
pub mod endpoint;
pub mod memory;
pub mod port;
pub mod report;

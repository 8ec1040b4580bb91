#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod cpu;
pub mod device;
pub mod frame;
pub mod machine;
pub mod napi;
mod network;
pub mod npb;
pub mod stack;
pub mod watch;
pub mod world;

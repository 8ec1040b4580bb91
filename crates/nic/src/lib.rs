//! A software NIC's receive path.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod time;

//! What joins the NICs of a lab, of a simulation and of the model: cables and a switch, and who is
//! who on them.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod link;
pub mod station;
pub mod switch;

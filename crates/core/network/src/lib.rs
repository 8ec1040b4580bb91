//! What joins the NICs of a lab, of a simulation and of the model: cables and a switch.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod link;
pub mod switch;

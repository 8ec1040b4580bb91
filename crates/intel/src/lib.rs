//! Intel's gigabit NICs, for Linux's own drivers, with our NIC in them.
mod card;
mod configuration;
mod device;
mod message;

pub use card::Model;
pub use device::{Device, DeviceSettings};

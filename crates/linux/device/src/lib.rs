//! What Linux says of a network device, as records: bytes and text in, no I/O, no clock.
//!
//! [`ethtool`] and [`napi`] take answers of netlink ([`tlv`]), the rest takes the text of files
//! below `/sys` and `/proc`; [`drivers`] has what drivers mean by settings, [`setters`] what files
//! of the programs that set up devices say. The crate `netdev` reads all of it from this machine's
//! kernel; other sources, such as pasted text, fill the same records.
//!
//! It builds for any target, `wasm32-unknown-unknown` included.

#![forbid(unsafe_code)]

pub mod aspm;
pub mod cpus;
pub mod deferral;
pub mod drivers;
pub mod ethtool;
mod files;
pub mod frequency;
pub mod idle;
pub mod interrupts;
pub mod kernel;
pub mod link;
pub mod napi;
pub mod preemption;
pub mod queue_names;
pub mod setters;
pub mod softnet;
pub mod steering;
pub mod tlv;
pub mod virtualisation;

pub use files::{DeviceFiles, read_device, read_machine, read_statistics};

//! Earmark on Linux: what its other crates ask of the system, each thing in a module of its own.

pub mod address;
pub mod busy_poll;
pub mod clock;
pub mod cpu;
pub mod ctrl_c;
pub mod descriptors;
pub mod ethtool;
pub mod files;
pub mod icmp;
pub mod kernel;
pub mod memory;
pub mod netlink;
pub mod option;
pub mod packet;
pub mod page;
pub mod peer;
pub mod privilege;
pub mod refusals;
pub mod replies;
pub mod ring;
pub mod seed;
pub mod sigint;
pub mod signals;
pub mod stamps;
pub mod streams;
pub mod wait;

pub use device::cpus;

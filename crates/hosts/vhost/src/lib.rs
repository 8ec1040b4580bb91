#![doc = include_str!("../README.md")]

pub mod driver;
pub mod net;
pub mod transport;

pub use hostside::{Attachment, Fetched, HostPort, HostSide, VirtualHost};
pub use net::{Device, DeviceSettings, coalesce};

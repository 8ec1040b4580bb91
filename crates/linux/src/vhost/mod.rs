//! A port whose host is a virtual machine: a vhost-user virtio-net device.

mod coalesce;
pub mod config;
pub mod connection;
mod control;
pub mod device;
pub mod memory;
pub mod message;
mod notify;
mod receive;
pub mod ring;
mod send;
pub mod session;
mod sigbus;

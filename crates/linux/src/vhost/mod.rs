//! A port whose host is a virtual machine: a vhost-user virtio-net device.

mod coalesce;
pub mod config;
pub mod connection;
mod control;
pub mod memory;
pub mod message;
mod notify;
pub mod ring;
mod sigbus;

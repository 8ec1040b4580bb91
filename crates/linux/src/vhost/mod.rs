//! A port whose host is a virtual machine: a vhost-user virtio-net device.

pub mod message;

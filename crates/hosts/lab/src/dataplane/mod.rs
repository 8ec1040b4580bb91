//! The data plane: one thread that owns a [`Plane`](crate::plane::Plane) and decides what
//! happens when.
//!
//! There are two owners. In real time (`real.rs`) the thread waits until a host has sent something
//! or a deadline has come. In virtual time (`virtual_time.rs`) it is the calendar of its guests,
//! too, and nothing that it does depends on when it gets to do it.
//!
//! A [`Handle`] reads and changes the data plane by commands, which run in the plane's thread
//! between two events and get the time from its owner.

mod handle;
mod real;
mod virtual_time;

pub use handle::{DataPlane, DataPlaneError, Handle};
pub use virtual_time::{Outlook, VirtualHandle, VirtualSettings};

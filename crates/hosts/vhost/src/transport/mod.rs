//! vhost-user for devices of any kind: a socket, its frontend, the guest's memory and its rings.
//!
//! A device has a [`Frontend`](frontend::Frontend). In each round it asks that for its
//! [`Session`](session::Session), takes buffers of live [rings](ring::Ring), reads and writes them
//! in the guest's [`Memory`](memory::Memory), and has the guest called. Nothing here is about
//! networks: [`net`](crate::net) is one user, PCI devices of `earmark-intel` are another.
//!
//! ```text
//!   frontend ── socket ──▶ connection ─▶ message ─▶ session: features, memory, rings
//! ```

mod connection;
pub mod frontend;
pub mod memory;
pub mod message;
mod notify;
pub mod reaper;
pub mod ring;
pub mod session;
mod sigbus;
mod signal;
mod violation;

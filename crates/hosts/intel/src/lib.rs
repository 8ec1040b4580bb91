//! Intel's gigabit NICs and adaptive virtual functions, as PCI devices for the guests of
//! vhost-user, with our NIC in them.
//!
//! Linux's own drivers find an 82574L (`e1000e`), an 82545GM (`e1000`) or a virtual function
//! (`iavf`), bring their link up, and moderate as on the real one: by `ITR`, `EITR`, `RDTR` and
//! `RADV`, or `ITRN` of each queue pair, with whatever their adaptive algorithms write there. In
//! virtual time a microsecond of theirs is one. Or a strategy of ours is in force in place of the
//! registers, under the same driver.
//!
//! ```text
//!   guest ── ring 0: reads and writes of registers ──▶ device ─▶ message ─▶ card ─┬─ configuration
//!   guest ◀── ring 1: MSI-X, pin A ───────────────── device ◀─ interrupts ◀───────┤
//!   guest's memory ◀── receive ring, transmit ring ──────────────────────────────┘
//!                                   ▲ queue of the port ◀── the wire
//! ```
//!
//! # Moderation
//!
//! The port's setting says who decides. Under `driver` it is the card: its timers are those of
//! `nic`, driven by its registers, and each of its interrupts is one of the port's queue, so that
//! counters, holds and captures are as for any host. Under every other setting the queue decides,
//! as for a virtio device, and the registers of the receive side count for nothing. `marked+driver`
//! is both: marks interrupt at once, and what else there is follows the registers.
//!
//! A queue is armed anew when the driver unmasks the cause of received frames. Until then the
//! driver polls, and what arrives counts as taken at that moment.
//!
//! A driver says which frames it wants, by addresses, groups and VLANs. That is asked when a frame
//! is off the wire: one that is refused takes no place in a queue and starts no timer.
//!
//! A virtual function has a vector for each queue pair, and its driver says on which queue it wants
//! a frame: by rules of its flow director, and the hash under its key. What it sends interrupts by
//! the same vector as what it receives, and takes along what has come.
//!
//! # What is not there
//!
//! Of the cards: the second queues of the 82574, timestamps, wake on LAN, the flash. Descriptors
//! are written back at once, whatever `RXDCTL` and `TXDCTL` say of bursts: only the interrupt
//! waits. Of the virtual function: what its driver is not offered, such as VLANs of virtchnl's
//! second version, cloud filters, tunnels, and hashes over other fields.
//! Access to registers costs no time.
//!
//! # A guest that breaks rules
//!
//! Registers take any value, and messages that are wrong are refused with their proper status.
//! Rings that cannot be are not used; a descriptor that points to no memory of the guest's costs it
//! the port, as a broken ring of virtio does. Frames and segments are bounded, and so is the work
//! of one round.

#![forbid(unsafe_code)]

mod adapter;
mod address;
mod card;
mod configuration;
mod device;
mod dma;
mod function;
mod inspect;
mod message;
mod model;
mod offload;
#[cfg(test)]
mod testing;
mod vf;

pub use adapter::Adapter;
pub use device::{Device, DeviceSettings};
pub use model::Model;

//! Intel's gigabit NICs, as PCI devices for the guests of vhost-user, with our NIC in them.
//!
//! Linux's own drivers find an 82574L (`e1000e`) or an 82545GM (`e1000`), bring their link up, and
//! moderate as on the real card: by `ITR`, `EITR`, `RDTR` and `RADV`, with whatever their adaptive
//! algorithms write there. In virtual time a microsecond of theirs is one. Or a strategy of ours is
//! in force in place of the registers, under the same driver.
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
//! # What is not there
//!
//! One receive queue and one transmit queue, of the 82574's two each; no packet split, so packets
//! have 1,500 bytes at most; received frames are not checked, nor are their VLAN tags removed, and
//! the descriptors say so; no timestamps, no wake on LAN, no flash, no loopback for self-tests.
//! Descriptors are written back at once, whatever `RXDCTL` and `TXDCTL` say of bursts: only the
//! interrupt waits. Access to registers costs no time.
//!
//! # A guest that breaks rules
//!
//! Registers take any value. Rings that cannot be are not used; a descriptor that points to no
//! memory of the guest's costs it the port, as a broken ring of virtio does. Frames and segments
//! are bounded, and so is the work of one round.

#![forbid(unsafe_code)]

mod card;
mod configuration;
mod device;
mod dma;
mod message;
mod model;

pub use device::{Device, DeviceSettings};
pub use model::Model;

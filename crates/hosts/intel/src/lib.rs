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
//! The port's setting says who decides. Under `driver` it is the function: its timers are those of
//! `nic`, driven by its registers, and each of its interrupts is one of the port's queue. Under
//! every other setting the queue decides, as for a virtio device, and the registers of the receive
//! side have no effect. `marked+driver` is both. A queue is armed anew when the driver unmasks the
//! cause of received frames; until then the driver polls.
//!
//! `docs/intel.md` of the repository has what each driver finds, and what is not there. Access to
//! registers costs no time. Registers take any value, and messages that are wrong are refused with
//! their proper status. A descriptor that points outside the guest's memory costs it the port, as
//! broken ring of virtio does. Frames, segments and the work of one round are bounded.

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

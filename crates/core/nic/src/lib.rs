//! A software NIC's receive path, with interrupt moderation that can be swapped and that
//! understands marks.
//!
//! A NIC that interrupts for each packet drowns its host; one that waits makes every lone packet
//! late. Here the strategy is a [setting](moderation::Moderation), and two of the strategies end
//! the trade-off: the sender *marks* the packets that complete a message, and the NIC interrupts
//! for those (Goglin and Furmento, "Finding a tradeoff between host interrupt load and MPI latency
//! over Ethernet", 2009).
//!
//! ```text
//!        ┌ Port ─────────────────────────────────────────────────────────────────┐
//!        │                       ┌ Queue ──────────────────────────────────────┐ │
//! frame ─┼▶ classify ─▶ choose a ┼▶ ring ─▶ DMA ─▶ ┌ Vector ─────────────────┐ │ │
//!        │  (marked?)   queue    │                 │ moderator ─▶ interrupt? ┼─┼─┼▶ host polls,
//!        │                       │                 └──────▲──────────────────┘ │ │  takes packets,
//!        │                       └────────────────────────┼────────────────────┘ │  re-arms
//!        └────────────────────────────────────────────────┼──────────────────────┘     │
//!                                                         └────────────────────────────┘
//! ```
//!
//! # Which part do you need?
//!
//! | you have | take |
//! |---|---|
//! | a device with its own rings (virtio, ...) | [`vector::Vector`], as in `examples/device.rs` |
//! | packets that are classified already, and no ring | [`queue::Queue`] |
//! | frames off a wire | [`port::Port`] |
//! | a strategy of your own | [`moderation::Moderator`] for [`vector::Vector::with_moderator`] |
//!
//! ```
//! use nic::descriptor::Descriptor;
//! use nic::queue::Queue;
//! use nic::time::Instant;
//!
//! let at = Instant::from_micros;
//! let mut queue = Queue::new(0, 256, "marked:75".parse()?, at(0));
//!
//! // Two fragments; the second is marked, because it completes the message. Each DMA takes 2 us.
//! for (now, marked, frame) in [(10, false, "mess"), (12, true, "age")] {
//!     let length = frame.len() as u32;
//!     let packet =
//!         Descriptor { length, marked, arrived_at: at(now), completed_at: at(now + 2) };
//!     queue.arrive(at(now), packet, frame).expect("room in the ring");
//! }
//!
//! // The owner of the clock calls when the queue asks for it, and then interrupts the host.
//! let mut now = at(12);
//! while !queue.take_interrupt() {
//!     now = queue.deadline().expect("something is pending");
//!     queue.advance(now, &mut ());
//! }
//! assert_eq!(now, at(14));
//!
//! // The host polls until a poll finds less than its budget, then re-arms.
//! let mut message = String::new();
//! while queue.poll(now, 64, &mut (), |_, frame| message.push_str(frame)) == 64 {}
//! queue.rearm(now, &mut ());
//! assert_eq!(message, "message");
//! assert_eq!(queue.deadline(), None);
//! # Ok::<(), nic::moderation::SettingError>(())
//! ```
//!
//! # What the owner and the host must do
//!
//! - The owner passes `now`, which never goes back, to every call, and calls `advance` at each
//!   `deadline`: a late call makes a late interrupt, and nothing worse.
//! - An interrupt is raised once and then masked. The host takes packets until there are no more,
//!   and **re-arms**: what slipped in between its last poll and the re-arm is handed over there,
//!   and interrupts again if it is due. A host that never re-arms is never interrupted again.
//!
//! Given that, no packet is held past its timer, none is signalled before its DMA has completed, no
//! interrupt is lost, and unmarked traffic sees exactly the timer it would see without marks.
//! `tests/properties.rs` holds every strategy against a model that says so, `tests/exhaustive.rs`
//! runs every interleaving of small cases. One promise is `marked`'s alone: a marked packet is
//! never later than under `delay`; `stream`, or a gap, may make it later, within its timer.
//!
//! # What it costs
//!
//! No I/O, no clock, no threads, no floats in a decision; `no_std`, no unsafe code. A ring is
//! allocated when its queue is made, and nothing after that. A packet costs its moderator a few
//! compares and no search; a setting's strategy is an enum, so there is no dynamic dispatch.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub use base::{prng, time};

pub mod counters;
pub mod descriptor;
#[cfg(test)]
mod frames;
pub mod headers;
pub mod lanes;
pub mod link;
pub mod marker;
pub mod moderation;
pub mod observer;
pub mod port;
pub mod queue;
pub mod rss;
pub mod switch;
pub mod vector;

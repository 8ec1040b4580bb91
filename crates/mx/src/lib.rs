//! MX: message passing over plain Ethernet, as a state machine without I/O.
//!
//! What Open-MX does in a kernel module, after the API of Myrinet Express: endpoints send messages
//! to each other, receives are matched by 64 bits and a mask, nothing is lost, and messages of one
//! sender arrive in the order in which they were sent. Every frame that a host waits for is
//! *marked* by its sender, so that a NIC can interrupt for these and for no others.
//!
//! # How a message travels
//!
//! | class | bytes | frames |
//! |---|---|---|
//! | small | up to 128 | one |
//! | medium | up to 32 KiB | as many as the MTU makes, sent unasked |
//! | large | any; all synchronous ones | an announcement, frames that are asked for, a notice |
//! | to oneself | any | none |
//!
//! A small or medium send ends when its last frame is on its way, all others when the message was
//! received. Of a large message its receiver asks for 32 frames at a time.
//!
//! Frames are described in [`wire`]. Numbered ones are processed in order, acknowledged, and sent
//! again when they are lost; the frames of large messages are asked for again by their receiver,
//! who alone keeps account of them. Peers learn each other's tokens when they connect, and take no
//! frame without.
//!
//! # Memory
//!
//! Nothing is dropped for want of memory without the sender's knowledge. Each peer may send so many
//! bytes before anybody has asked for them ([`Config::peer_credit`](config::Config::peer_credit));
//! beyond that it announces its messages, however short. When too many messages wait, peers begin
//! no new ones until some have been received.
//!
//! # How to drive it
//!
//! ```
//! use base::time::{Duration, Instant};
//! use bytes::Bytes;
//! use mx::address::{Address, NicId};
//! use mx::config::Config;
//! use mx::endpoint::Endpoint;
//! use mx::matching::Match;
//! use mx::status::Event;
//!
//! // Two endpoints. A program has one, and a port to send its frames through.
//! let at = |number| Address { nic: NicId([2, 0, 0, 0, 0, number]), endpoint: 0 };
//! let mut ends = [1, 2].map(|number| {
//!     Endpoint::<Bytes, Vec<u8>>::new(Config::default(), at(number), number.into()).unwrap()
//! });
//! let now = Instant::ZERO;
//!
//! let peer = ends[0].connect(now, at(2), 0, Duration::from_millis(100))?;
//! ends[0].isend(now, peer, 42, Bytes::from_static(b"message"), 0)?;
//! ends[1].irecv(now, None, Match::exact(42), vec![0; 100], 0)?;
//!
//! // Whoever drives them carries frames until there are no more; with a clock it would also call
//! // `handle_timeout` at each `deadline`.
//! let mut frame = [0; 1500];
//! loop {
//!     let mut quiet = true;
//!     for from in [0, 1] {
//!         while let Some(outgoing) = ends[from].transmit(now, &mut frame) {
//!             let sender = ends[from].address().nic;
//!             ends[1 - from].handle_frame(now, sender, &frame[..outgoing.length]);
//!             quiet = false;
//!         }
//!     }
//!     if quiet {
//!         break;
//!     }
//! }
//!
//! let Some(Event::Received(_, status, place)) = ends[1].poll_event() else { panic!() };
//! assert_eq!(&place[..status.transferred as usize], b"message");
//! # Ok::<(), mx::status::Refusal>(())
//! ```
//!
//! # What proves it
//!
//! The crate `sim` runs 2 to 64 endpoints on a network that loses, doubles, delays and damages
//! frames, from a seed, with applications that ask for anything at any time, and holds them against
//! a model of what must happen. `fuzz/` feeds it frames and requests.
//!
//! # Limits
//!
//! One segment: there is no IP. Frames are neither encrypted nor authenticated: whoever can read
//! them can forge them. An eager send has ended before its message has arrived; if the peer dies
//! then, later requests say so, and that one does not.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod address;
pub mod buffers;
pub mod config;
pub mod counters;
pub mod endpoint;
pub mod ids;
mod large;
pub mod matching;
pub mod outgoing;
mod peer;
pub mod seq;
pub mod status;
pub mod wire;

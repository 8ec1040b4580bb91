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
//! received. The receiver of a large message asks for 32 frames at a time.
//!
//! Frames are described in [`wire`]. Numbered frames are processed in order, acknowledged, and
//! retransmitted by their sender, with the loss detection of RFC 9002. Frames of large messages
//! have no such numbers: their receiver pulls them, and asks again for those that are lost. Peers
//! exchange random tokens when they connect, and drop frames with another token.
//!
//! # Memory
//!
//! A receiver limits what it stores. Each peer has a credit of bytes that it may send before a
//! receive asks for them ([`Config::peer_credit`](config::Config::peer_credit)); beyond that it
//! announces its messages, however short. A peer that has too many messages waiting for a receive
//! begins no new ones until some have been received. Whatever peers share is divided so that one
//! cannot take the part of the others (`docs/mx-protocol.md`, Shares).
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
//! // The owner carries frames until there are none; with a clock it would also call
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
//! # Modules
//!
//! | module | what |
//! |---|---|
//! | [`endpoint`] | the state machine: requests, frames in and out, timers, events |
//! | [`config`], [`address`], [`matching`], [`buffers`] | what its calls take |
//! | [`ids`], [`status`] | what they return |
//! | [`wire`], [`seq`], [`outgoing`] | frames, for ports, dissectors and tests |
//! | [`counters`] | what an endpoint counts |
//!
//! Behind them, `peer` holds what is known of another endpoint (congestion, round-trip time, what
//! is sent and received), `large` the transfer of large messages, and `waiting` those that no
//! receive has taken.
//!
//! # Tests
//!
//! The crate `sim` runs 2 to 64 endpoints on a network that loses, duplicates, delays and damages
//! frames, from a seed, with applications that make any request at any time, and compares them with
//! a model of the semantics. `fuzz/` feeds an endpoint frames and requests.
//!
//! # Limits
//!
//! One segment: there is no IP. Frames are neither encrypted nor authenticated: a host that can
//! read them can forge them. An eager send completes before its message has arrived; if the peer
//! dies then, later requests report that, and this one does not.
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
mod pattern;
mod peer;
pub mod seq;
pub mod status;
mod waiting;
pub mod wire;

//! A simulated network of MX endpoints, for tests of the protocol.
//!
//! A discrete-event simulation in one thread: events run in the order of (time, sequence number),
//! and all randomness comes from one seed, so a failed run is repeated exactly. Hosts are ideal:
//! what an endpoint does takes no time. Applications make any request at any time, the network
//! loses, duplicates, delays and damages frames, and a model checks that what endpoints report is
//! possible.
//!
//! ```
//! use base::time::Duration;
//! use bytes::Bytes;
//! use mx::config::Config;
//! use mx::matching::Match;
//! use mx::status::Event;
//! use sim::network::Wires;
//! use sim::world::{Occurrence, World, address};
//!
//! let mut world = World::new(Wires { queue: 64, ..Wires::default() }, 2, 1);
//! for host in 0..2 {
//!     world.start(host, Config::default(), host as u64);
//! }
//! let peer = world
//!     .with(0, |end, now| end.connect(now, address(1), 0, Duration::from_millis(100)))
//!     .unwrap();
//! world.with(1, |end, now| end.irecv(now, None, Match::ANY, vec![0; 8], 0)).unwrap();
//! world.with(0, |end, now| end.isend(now, peer, 7, Bytes::from_static(b"hello"), 0)).unwrap();
//! let end = world.now() + Duration::from_millis(1);
//! let mut received = None;
//! while let Some(occurrence) = world.next(end) {
//!     if let Occurrence::Event(1, Event::Received(_, status, place)) = occurrence {
//!         received = Some(place[..status.transferred as usize].to_vec());
//!     }
//! }
//! assert_eq!(received.as_deref(), Some(&b"hello"[..]));
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`world`] | hosts with an endpoint each, and the clock |
//! | [`network`] | a switch and cables, with faults |
//! | [`seeds`] | what differs from seed to seed: settings, faults, habits of applications |
//! | [`drive`] | applications that send, receive, probe, cancel, restart and close at random |
//! | [`model`] | what applications may expect, without looking into an endpoint |
//! | [`load`] | streams of messages, and their rates and latencies |
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod drive;
pub mod load;
mod marks;
pub mod model;
pub mod network;
pub mod seeds;
pub mod world;

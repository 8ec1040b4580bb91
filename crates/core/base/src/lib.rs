//! What the pure cores share: time that is passed in, random numbers that come from a seed,
//! times that are counted, and numbers with units as text.
//!
//! `nic` and `mx` know nothing of each other, and yet a simulator hands both the same moment. A
//! moment counts nanoseconds from whatever the caller chose as zero: no clock is read here. Spans
//! do not go below zero. Numbers from one seed are the same in all versions, so that a result can
//! be repeated years later.
//!
//! ```
//! use base::prng::Prng;
//! use base::time::{Duration, Instant};
//!
//! let sent_at = Instant::from_micros(10);
//! let arrived_at = sent_at + Duration::from_micros(75);
//! assert_eq!(arrived_at.since(sent_at).as_micros(), 75);
//! assert_eq!(sent_at.since(arrived_at), Duration::ZERO);
//! assert_eq!(Prng::new(7).next_u64(), Prng::new(7).next_u64());
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`time`] | moments and spans |
//! | [`calendar`] | events to come, in the order of time |
//! | [`prng`] | random numbers from a seed |
//! | [`times`] | spans of time, counted: holds, round trips |
//! | [`distribution`] | the same as results have them; its feature `serde` reads and writes it |
//! | [`quantiles`] | the figures of a distribution that are printed |
//! | [`quantity`] | numbers with units, read from text |
//! | [`waiting`] | how a thread waits for a moment |
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod calendar;
pub mod distribution;
pub mod prng;
pub mod quantiles;
pub mod quantity;
pub mod time;
pub mod times;
pub mod waiting;

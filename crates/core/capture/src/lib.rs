//! Arrivals of packets, out of a capture.
//!
//! # Theory of operation
//!
//! ```text
//! bytes in pieces ─▶ reader: records of pcap, blocks of pcapng ─▶ link: headers as Ethernet has them
//!                                                                  └▶ Packet ─▶ owner: is it an arrival?
//! ```
//!
//! [`Reader::feed`] takes bytes in pieces of any length and calls back for each packet, in the order
//! of the file; it keeps no more than one record that has come in part. [`Owner`] says of each
//! packet whether the host of interest has received it: by what the capture says of directions, by
//! an address, or by the station that most frames belong to.
//!
//! Nothing is trusted. A record that is cut, a stamp that goes back, a length that contradicts
//! itself and a link type that is not known are counted in [`Counts`].
//!
//! Times are nanoseconds since 1970, whatever the resolution of the file. Formats: IETF
//! draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod counts;
mod interface;
mod link;
mod owner;
mod reader;
mod recorded;

pub use counts::Counts;
pub use interface::{Interface, Resolution};
pub use link::{Direction, Packet};
pub use owner::{Owner, Station, Sure};
pub use reader::{Format, ReadError, Reader, format_of};
pub use recorded::Recorded;

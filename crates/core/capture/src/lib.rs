//! Arrivals of packets, out of a capture.
//!
//! # Theory of operation
//!
//! ```text
//! bytes in pieces ─▶ reader: records of pcap, blocks of pcapng
//!                    ─▶ link: headers as Ethernet has them ─▶ CapturedPacket
//!                    ─▶ owner: has the host received it?
//! ```
//!
//! [`Reader::feed`] takes bytes in pieces of any length and calls back for each packet, in the
//! order of the file; it keeps no more than one record that has come in part. [`Owner`] says of
//! each packet whether the host of interest has received it: by what the capture says of
//! directions, by an address, or by the station that most frames belong to.
//!
//! Nothing is trusted. A record that is cut, a stamp that goes back, a length that contradicts
//! itself and a link type that is not known are counted in [`CaptureCounts`].
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

pub use counts::CaptureCounts;
pub use interface::{Interface, Resolution};
pub use link::{CapturedPacket, PacketDirection};
pub use owner::{Owner, Station, Sure};
pub use reader::{CaptureFormat, ReadError, Reader, format_of};
pub use recorded::Recorded;

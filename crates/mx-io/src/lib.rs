//! MX on Linux: what moves the frames of the `mx` crate, and what lives on it.
//!
//! ```
//! use std::time::Duration;
//!
//! use bytes::Bytes;
//! use mx_io::endpoint::{Endpoint, Life};
//! use mx_io::port::NicId;
//! use mx_io::port::wire::Wire;
//! use mx::config::Config;
//! use mx::matching::Match;
//! use mx::status::Code;
//!
//! // Within this process; `PacketPort::open("eth0", 1, &PacketSettings::default())` is Ethernet.
//! let wire = Wire::new(1500, 512)?;
//! let open = |number| {
//!     let port = wire.port(NicId([2, 0, 0, 0, 0, number]), number)?;
//!     Endpoint::<Bytes, Vec<u8>>::open(Box::new(port), Config::default(), Life::default())
//! };
//! let (a, b) = (open(1)?, open(2)?);
//! let patience = Duration::from_secs(5);
//! let peer = a.connect(b.address(), 0, patience)?;
//!
//! // Match information 7, and all bits of it count.
//! let receive = b.irecv(None, Match::exact(7), vec![0; 1024])?;
//! let send = a.isend(peer, 7, Bytes::from_static(b"hello"))?;
//! let sent = a.wait(send, Some(patience))?.expect("there was time");
//! let received = b.wait(receive, Some(patience))?.expect("there was time");
//! assert_eq!((sent.status.code, received.status.code), (Code::Success, Code::Success));
//! let length = received.status.transferred as usize;
//! assert_eq!(&received.sink.expect("it is a receive")[..length], b"hello");
//!
//! b.close(patience)?;
//! a.close(patience)?;
//! # Ok::<(), mx_io::endpoint::MxError>(())
//! ```

pub mod discovery;
pub mod endpoint;
pub mod memory;
pub mod port;
pub mod report;

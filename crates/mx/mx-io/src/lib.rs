//! MX on Linux: ports that move the frames of the [`mx`] crate, endpoints with threads, discovery.
//!
//! A [`port`] sends and receives frames: through a packet socket, in UDP datagrams, through shared
//! memory, or on a virtual NIC. An [`Endpoint`](endpoint::Endpoint) is the engine of `mx` with a
//! port, a clock and a progress thread; its calls are those of the MX API and may come from any
//! thread. A thread that waits receives frames itself and sleeps on the port, so that the NIC's
//! interrupt wakes the thread that wants the message and no other.
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
//!
//! // Within this process; `PacketPort::open("eth0", 1)` is Ethernet.
//! let wire = Wire::new(1500, 512)?;
//! let open = |number| {
//!     let port = wire.port(NicId([2, 0, 0, 0, 0, number]), number)?;
//!     Endpoint::<Bytes, Vec<u8>>::open(Box::new(port), Config::default(), Life::default())
//! };
//! let (a, b) = (open(1)?, open(2)?);
//! let timeout = Duration::from_secs(5);
//! let peer = a.connect(b.address(), 0, timeout)?;
//!
//! // Match information 7, and all bits of it count.
//! let receive = b.irecv(None, Match::exact(7), vec![0; 1024])?;
//! let send = a.isend(peer, 7, Bytes::from_static(b"hello"))?;
//! let sent = a.wait(send, Some(timeout))?.expect("there was time");
//! let received = b.wait(receive, Some(timeout))?.expect("there was time");
//! assert_eq!((sent.status.result, received.status.result), (Ok(()), Ok(())));
//! let length = received.status.transferred as usize;
//! assert_eq!(&received.sink.expect("it is a receive")[..length], b"hello");
//!
//! b.close(timeout)?;
//! a.close(timeout)?;
//! # Ok::<(), mx_io::endpoint::MxError>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`endpoint`] | endpoints: requests, waiting, progress, the completion queue |
//! | [`port`] | the trait, and the kinds of ports; [`port::open`] opens one by its name |
//! | [`discovery`] | endpoints by the names of their hosts |
//! | [`memory`] | messages in memory of a C program |
//! | [`report`] | counters and state of a running endpoint, for `earmark mx counters` |

pub mod discovery;
pub mod endpoint;
pub mod memory;
pub mod port;
pub mod report;

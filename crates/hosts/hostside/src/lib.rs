//! The host's end of a port, and the port joined with it.
//!
//! A [`nic::port::Port`] moderates interrupts; it does not know what a host is. [`HostSide`] says
//! what a host is to it: where its frames come from, when it polls and re-arms, how it is
//! interrupted. There are two kinds. A kernel behind a TAP has no driver for our NIC, so the data
//! plane does what a driver would (`NapiDriver` of the crate `lab`). A guest behind a vhost-user
//! port brings its own driver (the crate `vhost`).
//!
//! A [`HostPort`] is one port with its host and what is recorded of both. Its owner, the data
//! plane of `lab` or a hypervisor, calls it in rounds. It reads no clock and does not wait.
//!
//! ```
//! use std::collections::VecDeque;
//! use std::io;
//! use std::os::fd::BorrowedFd;
//!
//! use base::time::Instant;
//! use hostside::{Fetched, HostPort, HostSide, Service};
//! use nic::port::PortSettings;
//!
//! /// A host that polls as soon as it is interrupted, and sends what it receives back.
//! #[derive(Default)]
//! struct Echo(VecDeque<Vec<u8>>);
//!
//! impl HostSide for Echo {
//!     fn fds(&self) -> Vec<BorrowedFd<'_>> {
//!         Vec::new()
//!     }
//!
//!     fn transmit(&mut self, _: Instant, _: usize, frame: &mut Vec<u8>) -> io::Result<Fetched> {
//!         let Some(next) = self.0.pop_front() else { return Ok(Fetched::Nothing) };
//!         *frame = next;
//!         Ok(Fetched::Frame)
//!     }
//!
//!     fn serve(&mut self, now: Instant, service: &mut Service<'_>) -> io::Result<()> {
//!         let queue = &mut service.port.queues_mut()[0];
//!         if queue.take_interrupt() {
//!             queue.poll(now, 64, service.watch, |_, frame| self.0.push_back(frame));
//!             queue.rearm(now, service.watch);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let moderation = "delay:75".parse()?;
//! let settings = PortSettings { moderation, ..PortSettings::default() };
//! let mut port = HostPort::new(Box::new(Echo::default()), settings, Instant::ZERO);
//! port.receive(Instant::ZERO, vec![0; 60]).expect("room in the ring");
//! port.advance(Instant::ZERO);
//!
//! // The frame is held until the timer runs out. Then the host polls, and answers.
//! let now = port.deadline().expect("a timer runs");
//! assert_eq!(now, Instant::from_micros(75));
//! port.advance(now);
//! port.serve(now, &mut Vec::new(), &mut |_, _| ())?;
//! assert_eq!(port.transmit(now, 0, &mut Vec::new())?, Fetched::Frame);
//! assert_eq!(port.watch.holds.counts(), [(75_000, 1)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`trace`] | the last events of a port |
//! | [`processor`], [`charge`], [`work`] | what a host costs its processor, where time is virtual |

#![forbid(unsafe_code)]

pub mod charge;
mod host;
mod port;
pub mod trace;
pub mod work;

pub use host::{Attachment, Fetched, HostSide, Route, Service, VirtualHost};
pub use nic::processor;
pub use port::{HostPort, discard};

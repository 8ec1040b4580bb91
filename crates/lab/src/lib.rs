//! A lab: hosts made of namespaces or guests, and the data plane that joins them through ports of
//! the `nic` crate, in real time and in virtual time.
//!
//! A command calls [`sys::privilege::become_capable`] before its first thread, then builds a
//! [`Lab`]: [`host::Host`]s, each with one [`tap::Tap`] that is up and addressed. Whatever the host
//! sends can be read from its TAP as Ethernet frames; whatever is written there, the host receives.
//! A [`dataplane::Handle`] does both, with a port of the `nic` crate in between ([`plane`]). The
//! other kind of host is a [`guest`], a Linux in user mode, whose port is a vhost-user device; its
//! time may be ours ([`calendar`]).

pub mod calendar;
pub mod capture;
pub mod control;
pub mod dataplane;
pub mod guest;
pub mod host;
mod lab;
pub mod machine;
pub mod napi;
pub mod plane;
pub mod snapshot;
pub mod tap;
pub mod wait;

pub use lab::{Lab, LabError, LabSettings, MAX_HOSTS, MAX_MTU, MIN_MTU, names};

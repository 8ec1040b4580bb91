//! Earmark on Linux: hosts made of namespaces, TAP ports, and the data plane that joins them.
//!
//! This is the only crate with `unsafe` code. Every block says why it is sound and why it is
//! needed.
//!
//! A command calls [`privilege::become_capable`] before its first thread, then builds a
//! [`lab::Lab`]: two [`host::Host`]s, each with one [`tap::Tap`] that is up and addressed. Whatever
//! the host sends can be read from its TAP as Ethernet frames; whatever is written there, the host
//! receives. A [`dataplane::Handle`] does both, with a port of the `nic` crate in between.

pub mod calendar;
pub mod capture;
pub mod clock;
pub mod cpu;
pub mod dataplane;
pub mod device;
pub mod ethtool;
pub mod guest;
pub mod host;
pub mod hostside;
pub mod interrupts;
pub mod lab;
pub mod machine;
pub mod mx;
pub mod netlink;
pub mod packet;
pub mod page;
pub mod perf;
pub mod plane;
pub mod played;
pub mod privilege;
pub mod snapshot;
pub mod stamps;
pub mod station;
pub mod tap;
pub mod times;
pub mod trace;
pub mod vhost;
pub mod wait;

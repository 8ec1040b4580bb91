//! Earmark on Linux: hosts made of namespaces, TAP ports, and what joins them.
//!
//! This is the only crate with `unsafe` code. Every block says why it is sound and why it is needed.
//!
//! A command calls [`privilege::become_capable`] before its first thread, then builds a [`lab::Lab`]:
//! two [`host::Host`]s, each with one [`tap::Tap`] that is up and addressed. Whatever the host sends
//! can be read from its TAP as Ethernet frames; whatever is written there, the host receives.

pub mod host;
pub mod lab;
pub mod netlink;
pub mod privilege;
pub mod station;
pub mod tap;

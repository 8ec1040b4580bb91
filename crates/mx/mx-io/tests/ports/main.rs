//! What every port of MX does, whatever its kind; and what only some can do.
//!
//! These tests need root, or the rights that `become_capable` gives.

#[path = "../../../../hosts/lab/tests/common/mod.rs"]
mod common;
mod conformance;
mod frames;
mod interface;
mod kinds;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../../hosts/vhost/tests/ports/nic.rs"]
mod nic_of_tests;
mod tcp_bulk;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../../hosts/vhost/tests/ports/traffic.rs"]
mod traffic;
mod waiting;

//! MX within one host and on one segment: processes that die, peers that lie, hosts by name.
//!
//! These tests need root, or the rights that `become_capable` gives.

mod bulk;
#[path = "../../../../hosts/lab/tests/common/mod.rs"]
mod common;
mod discovery;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../ports/frames.rs"]
mod frames;
mod hostile;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../ports/kinds.rs"]
mod kinds;
mod messages;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../../hosts/vhost/tests/ports/nic.rs"]
mod nic_of_tests;
mod processes;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../../../hosts/vhost/tests/ports/traffic.rs"]
mod traffic;

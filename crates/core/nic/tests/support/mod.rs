//! What the tests of moderation share: operations, a reference model, and a harness that holds a
//! queue against it.
//!
//! The fuzz target `queue_ops` includes this module, too, so that a crash it finds is a test case
//! here.
#![allow(dead_code, unused_imports, unreachable_pub, missing_docs)]

pub mod frames;
pub mod harness;
pub mod model;
pub mod op;

pub use harness::Harness;
pub use op::Op;

/// What the fuzz target `queue_ops` does with its input.
pub fn replay(bytes: &[u8]) {
    let (setting, ops) = op::decode(bytes);
    if let Err(difference) = Harness::run(setting, nic::moderation::Phase::default(), &ops) {
        panic!("{difference}\n{ops:#?}");
    }
}

//! Tests of the simulated networks.

mod figures;
mod hostile;
#[path = "../../mx/tests/engine/support/lies.rs"]
mod lies;
mod regressions;
mod seeds;

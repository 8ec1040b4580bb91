//! The `earmark` command.

mod agent;
pub mod records;
#[allow(dead_code, unused_imports)]
mod report;
pub mod workload;

fn main() {}

//! The `earmark` command.
#[allow(dead_code, unused_imports)]
mod report;

fn main() {}

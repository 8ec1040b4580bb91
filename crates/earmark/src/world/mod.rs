//! Worlds: where experiments run.

pub mod agents;
pub mod live;

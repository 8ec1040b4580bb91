//! Worlds: where experiments run. The model is here; those of a machine are in the crate `worlds`.

#[cfg(test)]
pub(crate) mod fake;
mod kind;
pub mod model;
pub mod setup;
pub mod trace;

use anyhow::Result;
use nic::moderation::Moderation;

use crate::environment::Environment;
use crate::experiment::Plan;
use crate::slice::Slice;

pub use kind::WorldKind;

/// Where experiments run: hosts, a NIC, and a time.
pub trait World {
    /// What a result says of its origin.
    fn environment(&self) -> &Environment;

    /// Runs one round of `plan` under `moderation`; in the middle of the measurement, it changes to
    /// `change_to`.
    fn round(
        &self,
        plan: &Plan,
        moderation: Moderation,
        change_to: Option<Moderation>,
    ) -> Result<Slice>;

    /// The same world for several threads, if its rounds have nothing in common.
    fn parallel(&self) -> Option<&(dyn World + Sync)> {
        None
    }

    /// Ends the world; the capture, if there is one, is complete afterwards.
    fn finish(self: Box<Self>) -> Result<()>;
}

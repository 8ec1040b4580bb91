//! Worlds: where experiments run.

pub mod adaptive;
pub mod agents;
mod guests;
pub mod live;
mod pace;
mod script;
pub mod served;
pub mod setup;
mod stage;
pub mod virtual_lab;
pub mod virtual_time;

use anyhow::Result;
use nic::moderation::Moderation;

use crate::environment::Environment;
use crate::experiment::Plan;
use crate::measurement::Slice;

/// Where experiments run: hosts, a NIC, and a time.
pub trait World {
    /// What a result says of its origin.
    fn environment(&self) -> &Environment;

    /// Runs one round of `plan` under `moderation`; in the middle of the measurement, it changes to
    /// `change_to`.
    ///
    /// # Errors
    /// If a player fails or a port vanishes; the message says which.
    fn round(
        &self,
        plan: &Plan,
        moderation: Moderation,
        change_to: Option<Moderation>,
    ) -> Result<Slice>;

    /// Ends the world; the capture, if there is one, is complete afterwards.
    ///
    /// # Errors
    /// If the capture could not be written.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// The worlds that an experiment can run in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WorldKind {
    /// Two hosts made of namespaces, real time
    #[default]
    Live,
    /// Two hosts with kernels of their own, virtual time: exact, and the same in every run
    Virtual,
}

//! The names of the worlds.

use sys::privilege::{Privilege, PrivilegeError, become_capable};

/// The worlds that an experiment can run in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum WorldKind {
    /// Two hosts made of namespaces, real time
    #[default]
    Live,
    /// Two hosts with kernels of their own, virtual time: exact, and the same in every run
    Virtual,
    /// Hosts of many cores in simulated time, up to --hosts 1000: exact, soon, on any machine
    Model,
}

impl WorldKind {
    /// Makes this process able to create the hosts of these worlds, once for all of them; `None`
    /// if they have none.
    ///
    /// # Errors
    /// If this user may not.
    pub fn privilege(
        worlds: impl IntoIterator<Item = Self>,
    ) -> Result<Option<Privilege>, PrivilegeError> {
        let has_hosts = worlds.into_iter().any(|world| world != Self::Model);
        has_hosts.then(become_capable).transpose()
    }
}

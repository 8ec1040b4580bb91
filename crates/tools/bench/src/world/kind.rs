//! The names of the worlds.

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

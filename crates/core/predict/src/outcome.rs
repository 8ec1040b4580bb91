//! What a setting does to the arrivals.

use alloc::string::String;
use alloc::vec::Vec;

use base::quantiles::Quantiles;

/// What one setting does.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SettingOutcome {
    /// The setting as text.
    pub setting: String,
    /// Packets that the host took.
    pub packets: u64,
    /// Packets that found the ring full, and were dropped.
    pub missed: u64,
    /// Packets that a rule marked.
    pub marked: u64,
    /// Interrupts that the host took.
    pub interrupts: u64,
    /// The same per second of the capture.
    pub interrupts_per_s: f64,
    /// Packets that the host took per interrupt.
    pub packets_per_interrupt: f64,
    /// How long packets waited for their interrupt.
    pub hold_us: Option<Quantiles>,
    /// How long packets waited until the host had them, where its processor has costs.
    pub taken_us: Option<Quantiles>,
    /// The part of the time in which the processor was busy, where it has costs.
    pub host_busy: Option<f64>,
    /// The holds of each group, those of most packets first.
    pub groups: Vec<GroupHolds>,
}

/// The holds of the packets of one group.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupHolds {
    /// Its name, such as `tcp 11211`.
    pub name: String,
    /// How long its packets waited.
    pub hold_us: Quantiles,
}

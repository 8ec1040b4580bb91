//! What drivers do with the parameters of receive coalescing, where that differs from what
//! `ethtool` says of them, or is not what their names say.
//!
//! The knowledge is a table, `table.toml`: a row for each driver and field, with its source in the
//! kernel or a manual. [`wait`] and [`meaning`] are what follows from it for a device, so that all
//! commands say the same.

mod meaning;
#[cfg(test)]
mod tests;
mod wait;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

pub use meaning::meaning;
pub use wait::{Bound, Wait, lacks_timer, wait};

use crate::ethtool::Parameter;

const TEXT: &str = include_str!("table.toml");

#[derive(Debug, Deserialize)]
struct Table {
    software: Vec<String>,
    names: BTreeMap<String, Vec<String>>,
    #[serde(flatten)]
    drivers: BTreeMap<String, toml::Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Rows {
    rx_usecs: Time,
    rx_frames: Frames,
    adaptive_rx: Adaptive,
    rx_usecs_high: High,
    receive_delay: ReceiveDelay,
}

/// What the driver makes of `rx-usecs`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Time {
    is: Option<Timer>,
    zero: Option<Zero>,
    codes: BTreeMap<String, u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Timer {
    /// It starts at the first packet without an interrupt.
    Delay,
    /// It is the least time between two interrupts; a packet after a longer pause does not wait.
    Gap,
}

/// What `rx-usecs 0` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Zero {
    /// No moderation, whatever `rx-frames` is.
    Off,
    /// No timer: `rx-frames` packets have to come.
    Frames,
    /// The shortest time that the hardware has, in microseconds at most.
    LeastUs(u32),
    /// The driver refuses it.
    Refused,
}

/// What the driver makes of `rx-frames`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Frames {
    is: Option<Count>,
    zero: Option<Zero>,
    limit_us: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Count {
    /// Packets that are there are handed over together; none waits for the next.
    Batch,
    /// Any number but 0 ends the wait with the first packet.
    Any,
    /// Reported, and no setting in force.
    Fixed,
}

/// What adaptive moderation chooses from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Adaptive {
    longest_us: Option<u32>,
    longest_cqe_us: Option<u32>,
    up_to: Option<Parameter>,
    shown: Option<Shown>,
}

/// What `rx-usecs` is while adaptive moderation is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Shown {
    /// What is in force when adaptive moderation is off.
    Configured,
    /// What the driver has chosen last.
    Current,
    /// The longest that it chooses.
    Ceiling,
}

/// What the driver makes of `rx-usecs-high`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct High {
    is: Option<Highest>,
    /// Whether it holds while adaptive moderation is on.
    adaptive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Highest {
    /// The least time between two interrupts, whatever `rx-usecs` is.
    Gap,
    /// The largest `rx-usecs` that the driver takes.
    Range,
}

/// A delay that the driver sets by itself, and that no command shows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct ReceiveDelay {
    us: f64,
    /// Cards, by vendor and device.
    pci: Vec<String>,
}

/// The table of this build, and the rows of each driver by each of its names.
fn table() -> &'static (Table, BTreeMap<String, Rows>) {
    static TABLE: OnceLock<(Table, BTreeMap<String, Rows>)> = OnceLock::new();
    TABLE.get_or_init(|| {
        let table: Table = toml::from_str(TEXT).expect("the table of drivers is well-formed");
        let mut rows = BTreeMap::new();
        for (name, value) in &table.drivers {
            // What is no driver has no rows.
            let Ok(of_driver) = read(value) else { continue };
            for other in table.names.get(name).into_iter().flatten() {
                rows.insert(other.clone(), of_driver.clone());
            }
            rows.insert(name.clone(), of_driver);
        }
        (table, rows)
    })
}

/// Reads the rows of a driver. Their sources are for people, and for `cargo xtask drivers`.
fn read(value: &toml::Value) -> Result<Rows, toml::de::Error> {
    let mut value = value.clone();
    for (_, row) in value.as_table_mut().into_iter().flatten() {
        row.as_table_mut().map(|row| row.remove("source"));
    }
    value.try_into()
}

/// The rows of a driver; empty ones if nothing is known of it.
fn rows_of(driver: &str) -> &'static Rows {
    static NONE: OnceLock<Rows> = OnceLock::new();
    table().1.get(driver).unwrap_or_else(|| NONE.get_or_init(Rows::default))
}

/// Whether a device is made of software that calls the stack itself: no interrupt, no ring.
pub fn is_software(driver: &str) -> bool {
    table().0.software.iter().any(|name| name == driver)
}

/// The receive delay in microseconds that a driver sets by itself, and that neither `ethtool -c`
/// nor another command shows; `pci_id` is vendor and device.
pub fn receive_delay(driver: &str, pci_id: &str) -> Option<f64> {
    let delay = &rows_of(driver).receive_delay;
    delay.pci.iter().any(|card| card == pci_id).then_some(delay.us)
}

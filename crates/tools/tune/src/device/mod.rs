//! What can be tuned: a device whose settings can be read, changed, and read back.

mod interface;
mod napi;
mod open;
mod port;
mod request;
mod rules;
mod steering;

use anyhow::Result;
use serde::{Deserialize, Serialize};

pub use napi::is_unpolled;
pub use open::{name_now, open, reopen};

use super::setting::{Change, Setting, State};

/// Which device it is, so that one that took its name later is not taken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// What kind it is.
    pub kind: DeviceKind,
    /// Its name, such as `eth0`.
    pub name: String,
    /// Where that name counts: a network namespace by its number, or a lab by its name.
    pub place: String,
    /// What tells it from another one of that name: the number of an interface, or the one
    /// that a lab says.
    pub number: u64,
    /// The Ethernet address of an interface, by which it is known after it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

impl Identity {
    /// Whether it is the same device: of the same name, or renamed since.
    pub fn is(&self, other: &Self) -> bool {
        let place = (self.kind, &self.place, self.number);
        let renamed = self.address.is_some() && self.address == other.address;
        place == (other.kind, &other.place, other.number) && (self.name == other.name || renamed)
    }
}

/// The kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A network interface of this machine.
    Interface,
    /// A port of a NIC of ours, in a lab.
    Port,
}

/// What a device has counted since some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Interrupts; `None` where they are not counted.
    pub(crate) interrupts: Option<u64>,
    /// Packets received since that moment.
    pub packets: u64,
}

/// A device whose settings can be changed.
///
/// Reading takes no rights; changing may. A change is one request wherever the system has one
/// request for it, so that it happens as a whole or not at all.
pub trait TunedDevice {
    /// What the journal tells the device by.
    fn identity(&self) -> &Identity;

    /// What drives it, for people: a driver's name.
    fn driver(&self) -> String;

    /// The name of its driver, as `ethtool -i` prints it, if it is one of the kernel's.
    fn driver_name(&self) -> Option<String> {
        None
    }

    /// Reads the settings of the whole device, and of `named` those that are not: of single queues
    /// and NAPI instances, and sysctls.
    fn read_with(&self, named: &[Setting]) -> Result<State>;

    /// Reads the settings of the whole device.
    fn read(&self) -> Result<State> {
        self.read_with(&[])
    }

    /// Changes settings.
    ///
    /// # Errors
    /// If the device refuses; some of the settings may have been changed all the same.
    fn change(&self, change: &Change) -> Result<()>;

    /// What the device counted since its driver was loaded.
    fn counted(&self) -> Result<Counted>;

    /// What has to be set so that the device, which is in state `now`, is in state `before`.
    fn way_back(&self, before: &State, now: &State) -> Change {
        let mut way = before.restored_from(now);
        way.0.extend(before.overwritten_by(&way).0);
        way
    }
}

/// A device that a journal names.
pub enum Reopened {
    /// It is there.
    Here(Box<dyn TunedDevice>),
    /// It is gone, and its settings with it.
    Gone,
    /// It is, or was, in another network namespace, and cannot be seen from here.
    Elsewhere,
}

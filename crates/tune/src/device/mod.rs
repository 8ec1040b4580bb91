//! What can be tuned: a device whose settings can be read, changed, and read back.

pub mod interface;
pub mod port;
#[cfg(test)]
pub mod pretended;

use anyhow::{Context, Result, ensure};
use netdev::{Root, device_name};
use serde::{Deserialize, Serialize};

use super::setting::{Change, State};
use interface::Interface;
use lab::control::client;
use port::Port;

/// Which device it is, so that one that took its name later is not taken for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// What kind it is.
    pub kind: Kind,
    /// Its name, such as `eth0`.
    pub name: String,
    /// Where that name counts: a network namespace by its number, or a lab by its name.
    pub place: String,
    /// What tells it from another one of that name: the number of an interface, or of the socket
    /// of a lab.
    pub number: u64,
    /// The Ethernet address of an interface, by which it is known after it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
}

impl Identity {
    /// Whether it is the same device: of the same name, or renamed since.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        let place = (self.kind, &self.place, self.number);
        let renamed = self.address.is_some() && self.address == other.address;
        place == (other.kind, &other.place, other.number) && (self.name == other.name || renamed)
    }
}

/// The kinds of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A network interface of this machine.
    Interface,
    /// A port of a NIC of ours, in a lab.
    Port,
}

/// What a device has counted since some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Interrupts; `None` where nobody counts them.
    pub interrupts: Option<u64>,
    /// Packets received.
    pub packets: u64,
}

/// A device whose settings can be changed.
///
/// Reading takes no rights; changing may. A change is one request wherever the system has one
/// request for it, so that it happens as a whole or not at all.
pub trait Device {
    /// Which device it is.
    fn identity(&self) -> &Identity;

    /// What drives it, for people: a driver's name.
    fn driver(&self) -> String;

    /// Reads all settings that can be changed.
    ///
    /// # Errors
    /// If the device is gone, or does not say.
    fn read(&self) -> Result<State>;

    /// Changes settings.
    ///
    /// # Errors
    /// If the device refuses; some of the settings may have been changed all the same.
    fn change(&self, change: &Change) -> Result<()>;

    /// What it has counted.
    ///
    /// # Errors
    /// If the device is gone.
    fn counted(&self) -> Result<Counted>;

    /// What has to be set so that the device, which is in state `now`, is in state `before`.
    fn way_back(&self, before: &State, now: &State) -> Change {
        before.restored_from(now)
    }
}

/// Opens a device by its name: an interface of this network namespace, or, where a lab is named (or
/// `Some("")` says that there is one), a port of its NIC.
///
/// # Errors
/// If there is no such device.
pub fn open(name: &str, lab: Option<&str>) -> Result<Box<dyn Device>> {
    let is_name =
        |text: &str| !text.is_empty() && !text.contains('/') && text != "." && text != "..";
    ensure!(is_name(name), "`{name}` is no name of a device; look at: ip link");
    Ok(match lab {
        None => Box::new(Interface::open(&device_name(&Root::here(), name))?),
        Some(lab) => {
            let lab = client::choose(Some(lab).filter(|lab| !lab.is_empty()))?;
            Box::new(Port::open(&lab, name)?)
        }
    })
}

/// A device that a journal names.
pub enum Reopened {
    /// It is there.
    Here(Box<dyn Device>),
    /// It is gone, and its settings with it.
    Gone,
    /// It is, or was, in another network namespace, and cannot be seen from here.
    Elsewhere,
}

/// The name that the device of a journal has now, if it is an interface that is here.
#[must_use]
pub fn name_now(identity: &Identity) -> Option<String> {
    match reopen(identity) {
        Ok(Reopened::Here(device)) => Some(device.identity().name.clone()),
        _ => None,
    }
}

/// Opens the device that a journal names.
///
/// # Errors
/// If it is there and cannot be opened.
pub fn reopen(identity: &Identity) -> Result<Reopened> {
    match identity.kind {
        Kind::Interface => Interface::reopen(identity)
            .with_context(|| format!("look for {}, which has a journal", identity.name)),
        Kind::Port => {
            let runs = client::labs()?.contains(&identity.place)
                && client::socket(&identity.place)? == identity.number;
            if !runs {
                return Ok(Reopened::Gone);
            }
            Ok(Reopened::Here(Box::new(Port::open(&identity.place, &identity.name)?)))
        }
    }
}

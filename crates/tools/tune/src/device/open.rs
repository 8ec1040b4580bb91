//! Opening devices, by their names or as a journal has them.

use anyhow::{Context, Result, ensure};
use labctl::client;
use netdev::{Root, device_name};

use super::interface::Interface;
use super::port::LabPort;
use super::{DeviceKind, Identity, Reopened, TunedDevice};

/// Opens a device by its name: an interface of this network namespace, with the port of a lab's NIC
/// that is behind it, if one is; or, where a lab is named (or `Some("")` says that there is one), a
/// port of its NIC.
pub fn open(name: &str, lab: Option<&str>) -> Result<Box<dyn TunedDevice>> {
    let is_name =
        |text: &str| !text.is_empty() && !text.contains('/') && text != "." && text != "..";
    ensure!(is_name(name), "`{name}` is no name of a device; look at: ip link");
    Ok(match lab {
        None => LabPort::behind(Interface::open(&device_name(&Root::here(), name))?)?,
        Some(lab) => {
            let lab = client::choose(Some(lab).filter(|lab| !lab.is_empty()))?;
            Box::new(LabPort::open(&lab, name)?)
        }
    })
}

/// The name that the device of a journal has now, if it is an interface that is here.
pub fn name_now(identity: &Identity) -> Option<String> {
    match reopen(identity) {
        Ok(Reopened::Here(device)) => Some(device.identity().name.clone()),
        _ => None,
    }
}

/// Opens the device that a journal names.
pub fn reopen(identity: &Identity) -> Result<Reopened> {
    match identity.kind {
        DeviceKind::Interface => Interface::reopen(identity)
            .with_context(|| format!("look for {}, which has a journal", identity.name)),
        DeviceKind::Port => {
            if client::instance(&identity.place)? != Some(identity.number) {
                return Ok(Reopened::Gone);
            }
            Ok(Reopened::Here(Box::new(LabPort::reopen(identity)?)))
        }
    }
}

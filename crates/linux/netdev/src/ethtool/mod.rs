//! The kernel's `ethtool` family: what a driver says of its device, and takes.
//!
//! Numbers of commands and attributes: Linux, `include/uapi/linux/ethtool_netlink.h` and
//! `ethtool_netlink_generated.h`; their meaning: `Documentation/networking/ethtool-netlink.rst`. An
//! attribute that a driver does not support is absent, so it is `None` here, never 0.
//!
//! Kernels before 5.6 lack the family, and some of its requests are younger. Coalescing and the
//! driver's name are then asked for by ioctl (`legacy.rs`, `driver.rs`).

mod bitset;
mod channels;
mod coalesce;
mod driver;
mod eee;
mod features;
mod flow_rule;
mod flow_rules;
mod legacy;
mod link;
mod parameter;
mod per_queue;
mod rings;
mod rss;
mod strings;
mod timestamps;

use std::collections::BTreeMap;

use super::error::DeviceError;
use super::genl::{About, Failure, Family};
use super::tlv::{Malformed, Writer};
use sys::ethtool::{Control, check_name};

pub use channels::{Channels, encode_combined, parse_channels};
pub use coalesce::{Coalesce, ProfileStep, encode_coalesce, parse_coalesce};
pub use driver::{Driver, parse_driver};
pub use eee::{Eee, parse_eee};
pub use features::{Features, parse_features};
pub use flow_rule::{Action, Field, Flow, FlowRule, parse_flow_rule};
pub use flow_rules::{FlowRules, PlacedRule};
pub use legacy::parse_legacy;
pub use link::{Link, parse_link_modes, parse_link_state};
pub use parameter::{Parameter, UnknownParameter};
pub use per_queue::QueueCoalesce;
pub use rings::{Rings, parse_rings};
pub use rss::{HashFields, Rss, parse_rss};
pub use strings::parse_strings;
pub use timestamps::{Timestamps, parse_timestamps};

/// Requests (`ETHTOOL_MSG_..._GET` and `_SET`).
mod command {
    pub(super) const STRINGS: u8 = 1;
    pub(super) const LINK_MODES: u8 = 4;
    pub(super) const LINK_STATE: u8 = 6;
    pub(super) const FEATURES: u8 = 11;
    pub(super) const RINGS: u8 = 15;
    pub(super) const CHANNELS: u8 = 17;
    pub(super) const SET_CHANNELS: u8 = 18;
    pub(super) const COALESCE: u8 = 19;
    pub(super) const SET_COALESCE: u8 = 20;
    pub(super) const EEE: u8 = 23;
    pub(super) const TIMESTAMPS: u8 = 25;
}

/// In each request, which device it is about (`ETHTOOL_A_..._HEADER`).
const HEADER: u16 = 1;
/// Its name (`ETHTOOL_A_HEADER_DEV_NAME`).
const DEVICE_NAME: u16 = 2;

/// Speaks to drivers in the network of the thread that opened it.
///
/// Reading takes no rights; changing takes `CAP_NET_ADMIN`.
///
/// ```no_run
/// # fn example() -> Result<(), netdev::DeviceError> {
/// use netdev::ethtool::{Coalesce, Ethtool, Parameter};
/// let ethtool = Ethtool::open()?;
/// let before = ethtool.coalesce("eth0")?;
/// if before.get(Parameter::RxUsecs).is_some() {
///     ethtool.set_coalesce("eth0", &Coalesce::new().with(Parameter::RxUsecs, 8))?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Ethtool {
    /// `None` on kernels without the family.
    family: Option<Family>,
    control: Control,
}

impl Ethtool {
    /// Opens a socket in the network of this thread.
    pub fn open() -> Result<Self, DeviceError> {
        let control = Control::open();
        let control = control.map_err(|cause| DeviceError::Family { family: "ethtool", cause })?;
        let family = match Family::open("ethtool") {
            Err(error) if error.is_unsupported() => None,
            outcome => Some(outcome?),
        };
        Ok(Self { family, control })
    }

    /// How the device waits before it interrupts.
    pub fn coalesce(&self, device: &str) -> Result<Coalesce, DeviceError> {
        let action = "read the coalescing of";
        if self.family.is_none() {
            return legacy::coalesce(&self.control, device)
                .map_err(|cause| refused(action, device, cause));
        }
        self.read(action, device, command::COALESCE, parse_coalesce)
    }

    /// Changes what `change` has, and nothing else.
    ///
    /// The driver may round what it takes, or change something else with it: read it back.
    ///
    /// # Errors
    /// If there is no such device, or its driver refuses; then nothing is changed.
    pub fn set_coalesce(&self, device: &str, change: &Coalesce) -> Result<(), DeviceError> {
        let action = "change the coalescing of";
        let Some(family) = &self.family else {
            let outcome = legacy::set_coalesce(&self.control, device, change);
            return outcome.map_err(|cause| refused(action, device, cause));
        };
        let fail = |failure: Failure| failure.of(action, device);
        let mut request = about(device).map_err(fail)?;
        encode_coalesce(change, &mut request);
        family.ask(command::SET_COALESCE, About::One, &request).map(drop).map_err(fail)
    }

    /// The coalescing of single queues, for drivers that have it: queue number and settings.
    ///
    /// Netlink has no such request, so this goes through `ETHTOOL_PERQUEUE`, and a value of 0 may
    /// mean that the driver does not have it.
    pub fn queue_coalesce(
        &self,
        device: &str,
        queues: u32,
    ) -> Result<Vec<QueueCoalesce>, DeviceError> {
        let action = "read the coalescing of the queues of";
        per_queue::queue_coalesce(&self.control, device, queues)
            .map_err(|cause| refused(action, device, cause))
    }

    /// Changes what `change` has on one queue.
    pub fn set_queue_coalesce(
        &self,
        device: &str,
        queue: u32,
        change: &Coalesce,
    ) -> Result<(), DeviceError> {
        per_queue::set_queue_coalesce(&self.control, device, queue, change)
            .map_err(|cause| refused("change the coalescing of a queue of", device, cause))
    }

    /// How many descriptors the rings have.
    pub fn rings(&self, device: &str) -> Result<Rings, DeviceError> {
        self.read("read the rings of", device, command::RINGS, parse_rings)
    }

    /// How many queues there are.
    pub fn channels(&self, device: &str) -> Result<Channels, DeviceError> {
        self.read("read the channels of", device, command::CHANNELS, parse_channels)
    }

    /// Sets how many queues both receive and send (`ethtool -L DEV combined N`).
    pub fn set_combined_channels(&self, device: &str, count: u32) -> Result<(), DeviceError> {
        let action = "change the channels of";
        let fail = |failure: Failure| failure.of(action, device);
        let mut request = about(device).map_err(fail)?;
        encode_combined(count, &mut request);
        let family = self.family(action, device)?;
        family.ask(command::SET_CHANNELS, About::One, &request).map(drop).map_err(fail)
    }

    /// How many queues receive: for drivers that do not say how many channels there are.
    pub fn receive_queues(&self, device: &str) -> Result<u32, DeviceError> {
        flow_rules::receive_queues(&self.control, device)
            .map_err(|cause| refused("read the receive queues of", device, cause))
    }

    /// How the device spreads packets over its queues (`ethtool -x`).
    pub fn rss(&self, device: &str) -> Result<Rss, DeviceError> {
        rss::read(&self.control, device).map_err(|cause| refused("read the hash of", device, cause))
    }

    /// Sets the table that makes queues of hashes (`ethtool -X`); it is as long as before.
    pub fn set_rss_table(&self, device: &str, table: &[u32]) -> Result<(), DeviceError> {
        rss::set_table(&self.control, device, table)
            .map_err(|cause| refused("change the hash's table of", device, cause))
    }

    /// What the hash of these packets is made of.
    pub fn hash_fields(&self, device: &str, flow: Flow) -> Result<HashFields, DeviceError> {
        rss::hash_fields(&self.control, device, flow)
            .map_err(|cause| refused("read what is hashed by", device, cause))
    }

    /// Where the device has rules that choose queues (`ethtool -n`).
    pub fn flow_rules(&self, device: &str) -> Result<FlowRules, DeviceError> {
        flow_rules::rules(&self.control, device)
            .map_err(|cause| refused("read the rules of", device, cause))
    }

    /// The rule at a location; `None`: there is none.
    pub fn flow_rule(
        &self,
        device: &str,
        location: u32,
    ) -> Result<Option<PlacedRule>, DeviceError> {
        flow_rules::rule(&self.control, device, location)
            .map_err(|cause| refused("read a rule of", device, cause))
    }

    /// Adds a rule; without a location, where the driver likes, if it can choose. Drivers replace
    /// one that is at the location without a word.
    pub fn insert_flow_rule(
        &self,
        device: &str,
        location: Option<u32>,
        rule: &FlowRule,
    ) -> Result<(), DeviceError> {
        flow_rules::insert(&self.control, device, location, rule)
            .map_err(|cause| refused("add a rule to", device, cause))
    }

    /// Removes the rule at a location.
    pub fn delete_flow_rule(&self, device: &str, location: u32) -> Result<(), DeviceError> {
        flow_rules::delete(&self.control, device, location)
            .map_err(|cause| refused("remove a rule of", device, cause))
    }

    /// Whether rules count: `ntuple-filters` of `ethtool -k`.
    pub fn has_ntuple(&self, device: &str) -> Result<bool, DeviceError> {
        driver::flags(&self.control, device)
            .map(|flags| flags & driver::NTUPLE != 0)
            .map_err(|cause| refused("read the flags of", device, cause))
    }

    /// Makes rules count or not (`ethtool -K DEV ntuple on`). Off removes them.
    pub fn set_ntuple(&self, device: &str, on: bool) -> Result<(), DeviceError> {
        driver::set_flag(&self.control, device, driver::NTUPLE, on)
            .map_err(|cause| refused("switch the rules of", device, cause))
    }

    /// Which offloads are on, and which could be.
    pub fn features(&self, device: &str) -> Result<Features, DeviceError> {
        self.read("read the features of", device, command::FEATURES, parse_features)
    }

    /// Speed, duplex, and whether the link is there.
    pub fn link(&self, device: &str) -> Result<Link, DeviceError> {
        let action = "read the link of";
        let mut link = self.read(action, device, command::LINK_MODES, parse_link_modes)?;
        link.is_up = self.read(action, device, command::LINK_STATE, parse_link_state)?;
        Ok(link)
    }

    /// Whether the link sleeps while it is idle (`ethtool --show-eee`).
    pub fn eee(&self, device: &str) -> Result<Eee, DeviceError> {
        self.read("read the EEE of", device, command::EEE, parse_eee)
    }

    /// Which timestamps the device makes.
    pub fn timestamps(&self, device: &str) -> Result<Timestamps, DeviceError> {
        self.read("read the timestamping of", device, command::TIMESTAMPS, parse_timestamps)
    }

    /// The driver, as `ethtool -i` has it.
    pub fn driver(&self, device: &str) -> Result<Driver, DeviceError> {
        driver::read(&self.control, device)
            .map_err(|cause| refused("read the driver of", device, cause))
    }

    /// The driver's own counters by name, as `ethtool -S` has them.
    pub fn statistics(&self, device: &str) -> Result<BTreeMap<String, u64>, DeviceError> {
        let action = "read the driver's counters of";
        let fail = |failure: Failure| failure.of(action, device);
        let mut request = about(device).map_err(fail)?;
        strings::of_statistics(&mut request);
        let answer = self.family(action, device)?.ask_one(command::STRINGS, &request);
        let names = answer.and_then(|answer| Ok(parse_strings(&answer)?)).map_err(fail)?;
        let values = driver::statistics(&self.control, device, names.len());
        let values = values.map_err(|cause| refused(action, device, cause))?;
        Ok(names.into_iter().zip(values).collect())
    }

    fn read<T>(
        &self,
        action: &'static str,
        device: &str,
        command: u8,
        parse: impl FnOnce(&[u8]) -> Result<T, Malformed>,
    ) -> Result<T, DeviceError> {
        let family = self.family(action, device)?;
        let read = || Ok(parse(&family.ask_one(command, &about(device)?)?)?);
        read().map_err(|failure: Failure| failure.of(action, device))
    }

    fn family(&self, action: &'static str, device: &str) -> Result<&Family, DeviceError> {
        let missing = || refused(action, device, std::io::Error::from_raw_os_error(libc::ENOSYS));
        self.family.as_ref().ok_or_else(missing)
    }
}

fn refused(action: &'static str, device: &str, cause: std::io::Error) -> DeviceError {
    Failure::from(cause).of(action, device)
}

/// The start of each request: the device.
fn about(device: &str) -> Result<Writer, Failure> {
    check_name(device)?;
    let mut request = Writer::default();
    request.nest(HEADER, |header| {
        header.put_text(DEVICE_NAME, device);
    });
    Ok(request)
}

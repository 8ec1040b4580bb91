//! The kernel's `ethtool` family: what a driver says of its device, and takes.
//!
//! Numbers of commands and attributes: Linux, `include/uapi/linux/ethtool_netlink.h` and
//! `ethtool_netlink_generated.h`; their meaning: `Documentation/networking/ethtool-netlink.rst`. An
//! attribute that a driver does not support is absent, so it is `None` here, never 0.
//!
//! Kernels before 5.6 lack the family, and some of its requests are younger. Coalescing and the
//! driver's name are then asked for by ioctl (`legacy.rs`, `driver.rs`).

mod coalesce;
mod driver;
mod flow_rule;
mod flow_rules;
mod legacy;
mod parameter;
mod per_queue;
mod reply;
mod rss;

use std::collections::BTreeMap;
use std::io;

use super::error::DeviceError;
use super::genl::{About, Failure, Family};
use super::tlv::{Reply, Writer, parse};
use sys::ethtool::{Control, check_name};

pub use coalesce::{Coalesce, ProfileStep, encode_coalesce};
pub use driver::{Driver, parse_driver};
pub use flow_rule::{Action, Field, Flow, FlowRule, parse_flow_rule};
pub use flow_rules::{FlowRules, PlacedRule};
pub use legacy::parse_legacy;
pub use parameter::{Parameter, UnknownParameter};
pub use per_queue::QueueCoalesce;
pub use reply::{Channels, Eee, Features, Link, LinkState, Rings, Strings, Timestamps};
pub use rss::{HashFields, Rss, parse_rss};

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
        let control = control.map_err(|cause| DeviceError::Family("ethtool", cause))?;
        let family = match Family::open("ethtool") {
            Err(error) if error.is_unsupported() => None,
            outcome => Some(outcome?),
        };
        Ok(Self { family, control })
    }

    /// How the device waits before it interrupts.
    pub fn coalesce(&self, device: &str) -> Result<Coalesce, DeviceError> {
        let action = "read the coalescing of";
        match self.family {
            Some(_) => self.read(action, device, command::COALESCE),
            None => self.control(action, device, legacy::coalesce),
        }
    }

    /// Changes what `change` has, and nothing else.
    ///
    /// The driver may round what it takes, or change something else with it: read it back.
    ///
    /// # Errors
    /// If there is no such device, or its driver refuses; then nothing is changed.
    pub fn set_coalesce(&self, device: &str, change: &Coalesce) -> Result<(), DeviceError> {
        let action = "change the coalescing of";
        let by_ioctl =
            |control: &Control, device: &str| legacy::set_coalesce(control, device, change);
        match self.family {
            Some(_) => self.change(action, device, command::SET_COALESCE, |request| {
                encode_coalesce(change, request);
            }),
            None => self.control(action, device, by_ioctl),
        }
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
        self.control("read the coalescing of the queues of", device, |control, device| {
            per_queue::queue_coalesce(control, device, queues)
        })
    }

    /// Changes what `change` has on one queue.
    pub fn set_queue_coalesce(
        &self,
        device: &str,
        queue: u32,
        change: &Coalesce,
    ) -> Result<(), DeviceError> {
        self.control("change the coalescing of a queue of", device, |control, device| {
            per_queue::set_queue_coalesce(control, device, queue, change)
        })
    }

    /// How many descriptors the rings have.
    pub fn rings(&self, device: &str) -> Result<Rings, DeviceError> {
        self.read("read the rings of", device, command::RINGS)
    }

    /// How many queues there are.
    pub fn channels(&self, device: &str) -> Result<Channels, DeviceError> {
        self.read("read the channels of", device, command::CHANNELS)
    }

    /// Sets how many queues both receive and send (`ethtool -L DEV combined N`).
    pub fn set_combined_channels(&self, device: &str, count: u32) -> Result<(), DeviceError> {
        self.change("change the channels of", device, command::SET_CHANNELS, |request| {
            request.put_u32(reply::COMBINED, count);
        })
    }

    /// How many queues receive: for drivers that do not say how many channels there are.
    pub fn receive_queues(&self, device: &str) -> Result<u32, DeviceError> {
        self.control("read the receive queues of", device, flow_rules::receive_queues)
    }

    /// How the device spreads packets over its queues (`ethtool -x`).
    pub fn rss(&self, device: &str) -> Result<Rss, DeviceError> {
        self.control("read the hash of", device, rss::read)
    }

    /// Sets the table that makes queues of hashes (`ethtool -X`); it is as long as before.
    pub fn set_rss_table(&self, device: &str, table: &[u32]) -> Result<(), DeviceError> {
        self.control("change the hash's table of", device, |control, device| {
            rss::set_table(control, device, table)
        })
    }

    /// What the hash of these packets is made of.
    pub fn hash_fields(&self, device: &str, flow: Flow) -> Result<HashFields, DeviceError> {
        self.control("read what is hashed by", device, |control, device| {
            rss::hash_fields(control, device, flow)
        })
    }

    /// Where the device has rules that choose queues (`ethtool -n`).
    pub fn flow_rules(&self, device: &str) -> Result<FlowRules, DeviceError> {
        self.control("read the rules of", device, flow_rules::rules)
    }

    /// The rule at a location; `None`: there is none.
    pub fn flow_rule(&self, device: &str, at: u32) -> Result<Option<PlacedRule>, DeviceError> {
        self.control("read a rule of", device, |control, device| {
            flow_rules::rule(control, device, at)
        })
    }

    /// Adds a rule; without a location, where the driver likes, if it can choose. Drivers replace
    /// one that is at the location without a word.
    pub fn insert_flow_rule(
        &self,
        device: &str,
        location: Option<u32>,
        rule: &FlowRule,
    ) -> Result<(), DeviceError> {
        self.control("add a rule to", device, |control, device| {
            flow_rules::insert(control, device, location, rule)
        })
    }

    /// Removes the rule at a location.
    pub fn delete_flow_rule(&self, device: &str, location: u32) -> Result<(), DeviceError> {
        self.control("remove a rule of", device, |control, device| {
            flow_rules::delete(control, device, location)
        })
    }

    /// Whether rules count: `ntuple-filters` of `ethtool -k`.
    pub fn has_ntuple(&self, device: &str) -> Result<bool, DeviceError> {
        let flags = self.control("read the flags of", device, driver::flags)?;
        Ok(flags & driver::NTUPLE != 0)
    }

    /// Makes rules count or not (`ethtool -K DEV ntuple on`). Off removes them.
    pub fn set_ntuple(&self, device: &str, on: bool) -> Result<(), DeviceError> {
        self.control("switch the rules of", device, |control, device| {
            driver::set_flag(control, device, driver::NTUPLE, on)
        })
    }

    /// Which offloads are on, and which could be.
    pub fn features(&self, device: &str) -> Result<Features, DeviceError> {
        self.read("read the features of", device, command::FEATURES)
    }

    /// Speed, duplex, and whether the link is there.
    pub fn link(&self, device: &str) -> Result<Link, DeviceError> {
        let action = "read the link of";
        let link: Link = self.read(action, device, command::LINK_MODES)?;
        let LinkState(is_up) = self.read(action, device, command::LINK_STATE)?;
        Ok(Link { is_up, ..link })
    }

    /// Whether the link sleeps while it is idle (`ethtool --show-eee`).
    pub fn eee(&self, device: &str) -> Result<Eee, DeviceError> {
        self.read("read the EEE of", device, command::EEE)
    }

    /// Which timestamps the device makes.
    pub fn timestamps(&self, device: &str) -> Result<Timestamps, DeviceError> {
        self.read("read the timestamping of", device, command::TIMESTAMPS)
    }

    /// The driver, as `ethtool -i` has it.
    pub fn driver(&self, device: &str) -> Result<Driver, DeviceError> {
        self.control("read the driver of", device, driver::read)
    }

    /// The driver's own counters by name, as `ethtool -S` has them.
    pub fn statistics(&self, device: &str) -> Result<BTreeMap<String, u64>, DeviceError> {
        let action = "read the driver's counters of";
        let family = self.family(action, device)?;
        let names = || {
            let mut request = about(device)?;
            request.nest(reply::SETS, |sets| {
                // `ETHTOOL_A_STRINGSET_ID`, `ETH_SS_STATS`
                sets.nest(reply::SET, |set| {
                    set.put_u32(1, 1);
                });
            });
            Ok(parse(&family.ask_one(command::STRINGS, &request)?)?)
        };
        let Strings(names) = names().map_err(|failure: Failure| failure.of(action, device))?;
        let values = self.control(action, device, |control, device| {
            driver::statistics(control, device, names.len())
        })?;
        Ok(names.into_iter().zip(values).collect())
    }

    fn read<R: Reply>(
        &self,
        action: &'static str,
        device: &str,
        command: u8,
    ) -> Result<R, DeviceError> {
        let family = self.family(action, device)?;
        let read = || Ok(parse(&family.ask_one(command, &about(device)?)?)?);
        read().map_err(|failure: Failure| failure.of(action, device))
    }

    fn control<T>(
        &self,
        action: &'static str,
        device: &str,
        ask: impl FnOnce(&Control, &str) -> io::Result<T>,
    ) -> Result<T, DeviceError> {
        ask(&self.control, device).map_err(|cause| refused(action, device, cause))
    }

    fn change(
        &self,
        action: &'static str,
        device: &str,
        command: u8,
        fill: impl FnOnce(&mut Writer),
    ) -> Result<(), DeviceError> {
        let family = self.family(action, device)?;
        let ask = || {
            let mut request = about(device)?;
            fill(&mut request);
            family.ask(command, About::One, &request).map(drop)
        };
        ask().map_err(|failure: Failure| failure.of(action, device))
    }

    fn family(&self, action: &'static str, device: &str) -> Result<&Family, DeviceError> {
        let missing = || refused(action, device, io::Error::from_raw_os_error(libc::ENOSYS));
        self.family.as_ref().ok_or_else(missing)
    }
}

fn refused(action: &'static str, device: &str, cause: io::Error) -> DeviceError {
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

//! The kernel's `ethtool` family: what a driver says of its device, and takes.
//!
//! Numbers of commands and attributes: Linux, `include/uapi/linux/ethtool_netlink.h` and
//! `ethtool_netlink_generated.h`; their meaning: `Documentation/networking/ethtool-netlink.rst`. An
//! attribute that a driver does not support is absent, so it is `None` here, never 0.
//!
//! Kernels before 5.6 lack the family, and some of its requests are younger. Coalescing and the
//! driver's name are then asked for by ioctl (`legacy.rs`, `driver.rs`).

mod driver;
mod flow_rule;
mod flow_rules;
mod legacy;
mod rss;

use std::io;

use super::error::DeviceError;
use super::genl::{About, Failure, Family, failed};
use super::tlv::{Reply, Writer, parse};
use sys::ethtool::{Control, check_name};

pub use device::ethtool::{
    Channels, Coalesce, Driver, Eee, Features, Link, LinkState, Parameter, ProfileStep,
    QueueCoalesce, Rings, Strings, Timestamps, UnknownParameter, differing_queues, encode_coalesce,
    parse_driver, parse_legacy,
};
pub use flow_rule::{Field, Flow, FlowRule, parse_flow_rule};
pub use flow_rules::{FlowRules, PlacedRule};
pub use legacy::set_coalescing;
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
            None => self.coalesce_by_ioctl(action, device),
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
        let fill = |request: &mut Writer| encode_coalesce(change, request);
        match self.family {
            Some(_) => self.ask(action, device, command::SET_COALESCE, fill).map(drop),
            None => self.set_coalesce_by_ioctl(action, device, change),
        }
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
        self.ask("change the channels of", device, command::SET_CHANNELS, |request| {
            request.put_u32(device::ethtool::COMBINED, count);
        })
        .map(drop)
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

    fn read<R: Reply>(
        &self,
        action: &'static str,
        device: &str,
        command: u8,
    ) -> Result<R, DeviceError> {
        self.read_with(action, device, command, |_| ())
    }

    fn read_with<R: Reply>(
        &self,
        action: &'static str,
        device: &str,
        command: u8,
        fill: impl FnOnce(&mut Writer),
    ) -> Result<R, DeviceError> {
        let mut answers = self.ask(action, device, command, fill)?;
        let missing = || refused(action, device, io::Error::from_raw_os_error(libc::ENODATA));
        let answer = answers.pop().ok_or_else(missing)?;
        parse(&answer).map_err(|malformed| failed(malformed.into(), action, device))
    }

    /// Sends a request about a device, with what `fill` adds; the attributes of each answer.
    fn ask(
        &self,
        action: &'static str,
        device: &str,
        command: u8,
        fill: impl FnOnce(&mut Writer),
    ) -> Result<Vec<Vec<u8>>, DeviceError> {
        let missing = || refused(action, device, io::Error::from_raw_os_error(libc::ENOSYS));
        let family = self.family.as_ref().ok_or_else(missing)?;
        let ask = || {
            check_name(device)?;
            let mut request = Writer::default();
            request.nest(HEADER, |header| {
                header.put_text(DEVICE_NAME, device);
            });
            fill(&mut request);
            family.ask(command, About::One, &request)
        };
        ask().map_err(|failure: Failure| failed(failure, action, device))
    }

    fn ioctl(
        &self,
        action: &'static str,
        device: &str,
        words: &mut [u32],
    ) -> Result<(), DeviceError> {
        self.control.ethtool(device, words).map_err(|cause| refused(action, device, cause))
    }
}

fn refused(action: &'static str, device: &str, cause: io::Error) -> DeviceError {
    failed(cause.into(), action, device)
}

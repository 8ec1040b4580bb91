//! Two hosts with a network interface each, ready for a wire between them.
//!
//! Host `a` has the interface `a0`, host `b` has `b0`. Both are up, addressed (see
//! [`Station`]) and know each other by name. What is missing is the wire: whoever owns the two TAPs
//! carries the frames from one to the other.

use crate::host::{Host, HostError};
use crate::netlink::{LinkSettings, Netlink, NetlinkError};
use crate::station::Station;
use crate::tap::{Tap, TapError};

/// The smallest MTU that IPv6 works with.
pub const MIN_MTU: u32 = 1280;

/// The largest MTU of a TAP device.
pub const MAX_MTU: u32 = 65_521;

/// What a lab looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabSettings {
    /// The names of the two hosts.
    pub names: [String; 2],
    /// How many queues each interface has.
    pub queues: u16,
    /// The largest packet on the wire, without the Ethernet header, in bytes.
    pub mtu: u32,
    /// How many packets may wait in front of an interface before it drops.
    pub tx_queue_len: u32,
}

impl Default for LabSettings {
    /// Hosts `a` and `b`, one queue each, the MTU and the queue length of a usual Ethernet
    /// interface.
    fn default() -> Self {
        Self { names: ["a".to_owned(), "b".to_owned()], queues: 1, mtu: 1500, tx_queue_len: 1000 }
    }
}

/// Why a lab could not be built.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Both hosts would have the same name.
    #[error("create two hosts named {0}: the names must differ; choose another for one of them")]
    SameName(String),
    /// The MTU does not fit.
    #[error("create a lab with mtu {0}: out of range; use {MIN_MTU} to {MAX_MTU}")]
    Mtu(u32),
    /// A host could not be made.
    #[error(transparent)]
    Host(#[from] HostError),
    /// An interface could not be made.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// An interface could not be set up.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// Two hosts and the wire ends of their interfaces, in the same order.
#[derive(Debug)]
pub struct Lab {
    // Fields are dropped in this order, and an open tap would keep its host's network alive.
    /// The wire end of each host's interface.
    pub taps: [Tap; 2],
    /// The hosts.
    pub hosts: [Host; 2],
    /// Their names and addresses.
    pub stations: [Station; 2],
}

impl Lab {
    /// Builds both hosts and brings their interfaces up.
    ///
    /// # Errors
    ///
    /// If the settings make no sense, or the kernel refuses a namespace or a device.
    pub fn create(settings: &LabSettings) -> Result<Self, LabError> {
        let [first, second] = &settings.names;
        if first == second {
            return Err(LabError::SameName(first.clone()));
        }
        if !(MIN_MTU..=MAX_MTU).contains(&settings.mtu) {
            return Err(LabError::Mtu(settings.mtu));
        }
        let stations = [Station::new(first, 1), Station::new(second, 2)];
        let hosts = [Host::create(first, &stations)?, Host::create(second, &stations)?];
        let taps =
            [plug(&hosts[0], &stations[0], settings)?, plug(&hosts[1], &stations[1], settings)?];
        Ok(Self { taps, hosts, stations })
    }
}

/// Gives a host its interface, addressed and up.
fn plug(host: &Host, station: &Station, settings: &LabSettings) -> Result<Tap, LabError> {
    let interface = station.interface();
    let tap = Tap::create(host, &interface, settings.queues, settings.mtu)?;
    host.enter_net(|| {
        let netlink = Netlink::open()?;
        let link = LinkSettings {
            mac: Some(station.mac),
            tx_queue_len: Some(settings.tx_queue_len),
            ..LinkSettings::default()
        };
        netlink.configure(&interface, &link)?;
        netlink.silence_ipv6(&interface)?;
        netlink.up(&interface)?;
        for (ip, prefix) in station.addresses() {
            match netlink.add_address(&interface, ip, prefix) {
                // A kernel without IPv6 still makes a lab, with IPv4 alone.
                Err(error) if ip.is_ipv6() && error.is_no_ipv6() => {}
                outcome => outcome?,
            }
        }
        Ok(tap)
    })?
}

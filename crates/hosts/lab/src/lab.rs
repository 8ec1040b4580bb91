//! Hosts with a network interface each, ready for a wire between them.
//!
//! Host `a` has the interface `a0`, host `b` has `b0`. All are up, addressed (see
//! [`Station`]) and know each other by name. What is missing is the wire: the owner of the TAPs
//! carries the frames from one to the other.

use crate::error::LabError;
use crate::host::Host;
use crate::station::{self, Station};
use crate::tap::Tap;
use sys::netlink::{LinkSettings, Netlink};

/// The smallest MTU that IPv6 works with.
const MIN_MTU: u32 = 1280;

/// The largest MTU of a TAP device.
const MAX_MTU: u32 = 65_521;

/// What a lab looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabSettings {
    /// The names of the hosts.
    pub names: Vec<String>,
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
        Self { names: crate::names(2), queues: 1, mtu: 1500, tx_queue_len: 1000 }
    }
}

/// Refuses an MTU that no interface of a lab can have.
pub fn check_mtu(mtu: u32) -> Result<(), LabError> {
    if (MIN_MTU..=MAX_MTU).contains(&mtu) {
        return Ok(());
    }
    Err(LabError::refused(format!(
        "create a lab with mtu {mtu}: out of range; use {MIN_MTU} to {MAX_MTU}"
    )))
}

/// Hosts and the wire ends of their interfaces, in the same order.
#[derive(Debug)]
pub struct Lab {
    // Fields are dropped in this order, and an open tap would keep its host's network alive.
    /// The wire end of each host's interface.
    pub taps: Vec<Tap>,
    /// The hosts, by number.
    pub hosts: Vec<Host>,
    /// Their names and addresses.
    pub stations: Vec<Station>,
}

impl Lab {
    /// Builds the hosts and brings their interfaces up.
    pub fn create(settings: &LabSettings) -> Result<Self, LabError> {
        let mut earlier = settings.names.iter().enumerate();
        if let Some((_, twice)) = earlier.find(|(at, name)| settings.names[..*at].contains(name)) {
            return Err(LabError::refused(format!(
                "create two hosts named {twice}: the names must differ; choose another for one of them"
            )));
        }
        check_mtu(settings.mtu)?;
        let stations = Station::all(&settings.names);
        let mut hosts = Vec::new();
        let mut taps = Vec::new();
        for station in &stations {
            let host = Host::create(&station.name, &stations)?;
            taps.push(plug(&host, station, settings)?);
            hosts.push(host);
        }
        Ok(Self { taps, hosts, stations })
    }
}

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
        station::join(station, &netlink, &link)?;
        Ok(tap)
    })?
}

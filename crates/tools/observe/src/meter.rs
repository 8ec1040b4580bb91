//! Counters of a device, read again and again.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, anyhow};

use netdev::ethtool::Ethtool;
use netdev::interrupts::{of_device, read_interrupts};
use netdev::netdev::{Direction, Netdev, QueueCounters};
use netdev::queue_names::queues_among;
use netdev::softnet::read_softnet;
use netdev::{Root, list_devices};
use report::names::no_device;
use show::{Rates, Reading};
use sys::netlink::Netlink;

/// Reads counters of a device again and again.
#[derive(Debug)]
pub struct Meter<'a> {
    start: Instant,
    root: &'a Root,
    device: String,
    ethtool: Ethtool,
    netdev: Option<Netdev>,
    netlink: Netlink,
    vectors: BTreeMap<u32, u32>,
}

impl<'a> Meter<'a> {
    /// For a device of this network.
    pub fn open(root: &'a Root, device: &str) -> Result<Self> {
        let netlink = Netlink::open()?;
        netlink.link(device).map_err(|_| {
            anyhow!("{}", no_device(device, &list_devices(root).unwrap_or_default()))
        })?;
        let netdev = Netdev::open().ok();
        let vectors = netdev.as_ref().map(|it| vectors_of_queues(it, device)).unwrap_or_default();
        Ok(Self {
            start: Instant::now(),
            root,
            device: device.to_owned(),
            ethtool: Ethtool::open()?,
            netdev,
            netlink,
            vectors,
        })
    }

    /// Reads the counters.
    pub fn read(&self) -> Result<Reading> {
        let link = self.netlink.link(&self.device)?.stats;
        let at = self.start.elapsed();
        let all = read_interrupts(self.root).unwrap_or_default();
        Ok(Reading {
            at,
            link,
            interrupts: of_device(self.root, &self.device, &all).unwrap_or_default(),
            softnet: read_softnet(self.root).unwrap_or_default(),
            queues: self.queues(),
        })
    }

    fn queues(&self) -> Vec<QueueCounters> {
        let reported = self.netdev.as_ref().and_then(|it| it.queue_counters(&self.device).ok());
        // Some drivers answer, and count nothing.
        let counts = |queues: &Vec<QueueCounters>| {
            queues.iter().any(|it| it.counters.keys().any(|name| name.ends_with("packets")))
        };
        reported.filter(counts).unwrap_or_else(|| {
            queues_among(&self.ethtool.statistics(&self.device).unwrap_or_default())
        })
    }

    /// What the device did between two readings.
    pub fn between(&self, before: &Reading, after: &Reading) -> Rates {
        Rates::between(&self.device, &self.vectors, before, after)
    }
}

fn vectors_of_queues(netdev: &Netdev, device: &str) -> BTreeMap<u32, u32> {
    let napis = netdev.napis(device).unwrap_or_default();
    let queues = netdev.queues(device).unwrap_or_default();
    let receiving = queues.iter().filter(|queue| queue.direction == Direction::Rx);
    let vector = |napi: u32| napis.iter().find(|it| it.id == napi)?.irq;
    receiving.filter_map(|queue| Some((queue.id, vector(queue.napi?)?))).collect()
}

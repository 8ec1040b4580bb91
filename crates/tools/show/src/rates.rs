//! What a device does over time: packets, interrupts, drops, for each queue where the kernel
//! counts them.
//!
//! A [`Meter`] reads counters, [`Meter::between`] makes rates of two readings.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::Result;
use netdev::Root;
use netdev::ethtool::Ethtool;
use netdev::interrupts::{Interrupt, of_device, read_interrupts};
use netdev::netdev::{Direction, Netdev, QueueCounters};
use netdev::queue_names::queues_among;
use netdev::softnet::{Softnet, read_softnet};
use schemars::JsonSchema;
use serde::Serialize;
use sys::netlink::{LinkStats, Netlink};

use super::read::no_device;
use super::role::{InterruptRole, roles_of};

#[derive(Debug)]
pub struct Reading {
    pub at: Instant,
    pub link: LinkStats,
    pub interrupts: Vec<Interrupt>,
    pub softnet: Vec<Softnet>,
    /// What each queue has counted; empty if neither kernel nor driver counts.
    pub queues: Vec<QueueCounters>,
}

/// Reads counters of a device again and again.
#[derive(Debug)]
pub struct Meter<'a> {
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
        netlink.link(device).map_err(|_| no_device(root, device))?;
        let netdev = Netdev::open().ok();
        let vectors = netdev.as_ref().map(|it| vectors_of_queues(it, device)).unwrap_or_default();
        Ok(Self {
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
        let at = Instant::now();
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

/// What a device did in a while. All rates are per second.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Rates {
    /// The name of the device.
    pub device: String,
    /// How long the while was, in seconds.
    pub seconds: f64,
    /// Packets that were received, a second.
    pub rx_packets_per_s: f64,
    /// Bytes that were received, a second.
    pub rx_bytes_per_s: f64,
    /// Packets that were sent, a second.
    pub tx_packets_per_s: f64,
    /// Bytes that were sent, a second.
    pub tx_bytes_per_s: f64,
    /// Packets dropped, by the device or for want of room.
    pub drops_per_s: f64,
    /// Interrupts of the device; `None` if it has none.
    pub interrupts_per_s: Option<f64>,
    /// Packets received for each interrupt that is for receiving; `None` if there was none.
    pub rx_packets_per_interrupt: Option<f64>,
    /// How often a softirq stopped with work left, on all processors, for all devices.
    pub squeezes_per_s: f64,
    /// Each queue, receiving ones first; empty if neither kernel nor driver counts.
    pub queues: Vec<QueueRates>,
    /// Each interrupt of the device.
    pub vectors: Vec<VectorRates>,
}

/// What a queue did in a while.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct QueueRates {
    /// Which way packets go.
    #[schemars(with = "String")]
    pub direction: Direction,
    /// Its number among those of its direction.
    pub id: u32,
    /// Packets in a second.
    pub packets_per_s: f64,
    /// Bytes; `None` if the driver does not count them.
    pub bytes_per_s: Option<f64>,
    /// Packets dropped by the device; `None` if the driver does not count them.
    pub drops_per_s: Option<f64>,
    /// Its interrupts; `None` if they are not known.
    pub interrupts_per_s: Option<f64>,
    /// Packets for each of them; `None` if there was none.
    pub packets_per_interrupt: Option<f64>,
}

/// What an interrupt did in a while.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct VectorRates {
    pub number: u32,
    pub handlers: Vec<String>,
    pub per_s: f64,
    #[serde(skip)]
    role: InterruptRole,
}

/// The number at the end of a handler, such as 3 of `eth0-TxRx-3` and of
/// `mlx5_comp3@pci:0000:17:00.0`.
fn number_of(handler: &str) -> Option<u32> {
    let name = handler.split('@').next()?;
    let start = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    name[start..].parse().ok()
}

impl Rates {
    fn between(
        device: &str,
        vectors_of_queues: &BTreeMap<u32, u32>,
        before: &Reading,
        after: &Reading,
    ) -> Self {
        let seconds = after.at.duration_since(before.at).as_secs_f64().max(1e-9);
        let rate = |of: fn(&LinkStats) -> u64| {
            of(&after.link).saturating_sub(of(&before.link)) as f64 / seconds
        };
        let vectors = vector_rates(before, after, seconds);
        let receiving = vectors.iter().filter(|it| it.role.receives()).map(|it| it.per_s).sum();
        let rx_packets_per_s = rate(|link| link.rx_packets);
        Self {
            device: device.to_owned(),
            seconds,
            rx_packets_per_s,
            rx_bytes_per_s: rate(|link| link.rx_bytes),
            tx_packets_per_s: rate(|link| link.tx_packets),
            tx_bytes_per_s: rate(|link| link.tx_bytes),
            drops_per_s: rate(|link| link.rx_dropped + link.rx_missed + link.tx_dropped),
            interrupts_per_s: (!vectors.is_empty())
                .then(|| vectors.iter().map(|it| it.per_s).sum()),
            rx_packets_per_interrupt: each(rx_packets_per_s, receiving),
            squeezes_per_s: squeezes(before, after) / seconds,
            queues: queue_rates(before, after, &vectors, vectors_of_queues, seconds),
            vectors,
        }
    }
}

/// So many for each; `None` if there are none of those.
fn each(number: f64, of: f64) -> Option<f64> {
    (of > 0.0).then(|| number / of)
}

fn vector_rates(before: &Reading, after: &Reading, seconds: f64) -> Vec<VectorRates> {
    let roles = roles_of(&after.interrupts);
    let vector = |(now, role): (&Interrupt, &InterruptRole)| {
        let then = before.interrupts.iter().find(|it| it.number == now.number)?;
        Some(VectorRates {
            number: now.number,
            handlers: now.handlers.clone(),
            per_s: now.total().saturating_sub(then.total()) as f64 / seconds,
            role: *role,
        })
    };
    after.interrupts.iter().zip(&roles).filter_map(vector).collect()
}

fn squeezes(before: &Reading, after: &Reading) -> f64 {
    let squeezed = |now: &Softnet| {
        let then = before.softnet.iter().find(|it| it.cpu == now.cpu)?;
        // These counters wrap.
        Some(f64::from(now.squeezed.wrapping_sub(then.squeezed)))
    };
    after.softnet.iter().filter_map(squeezed).sum()
}

fn queue_rates(
    before: &Reading,
    after: &Reading,
    vectors: &[VectorRates],
    vectors_of_queues: &BTreeMap<u32, u32>,
    seconds: f64,
) -> Vec<QueueRates> {
    let interrupts = |queue: &QueueCounters| -> Option<f64> {
        if queue.direction != Direction::Rx {
            return None;
        }
        let known = vectors_of_queues.get(&queue.id);
        let is_its = |vector: &&VectorRates| match known {
            Some(number) => vector.number == *number,
            None => {
                vector.role.receives()
                    && vector.handlers.iter().any(|it| number_of(it) == Some(queue.id))
            }
        };
        let mut its = vectors.iter().filter(is_its);
        // If several bear the number, it is not known which it is.
        its.next().filter(|_| its.next().is_none()).map(|vector| vector.per_s)
    };
    let queue = |now: &QueueCounters| {
        let same = |it: &&QueueCounters| (it.direction, it.id) == (now.direction, now.id);
        let then = before.queues.iter().find(same)?;
        let way = if now.direction == Direction::Rx { "rx" } else { "tx" };
        let rate = |name: &str| {
            let name = format!("{way}-{name}");
            let (now, then) = (now.counters.get(&*name)?, then.counters.get(&*name)?);
            Some(now.saturating_sub(*then) as f64 / seconds)
        };
        let packets = rate("packets")?;
        let interrupts = interrupts(now);
        Some(QueueRates {
            direction: now.direction,
            id: now.id,
            packets_per_s: packets,
            bytes_per_s: rate("bytes"),
            drops_per_s: rate("hw-drops"),
            interrupts_per_s: interrupts,
            packets_per_interrupt: each(packets, interrupts.unwrap_or(0.0)),
        })
    };
    let mut queues: Vec<QueueRates> = after.queues.iter().filter_map(queue).collect();
    queues.sort_by_key(|queue| (queue.direction, queue.id));
    queues
}

#[cfg(test)]
mod tests;

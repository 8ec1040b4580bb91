//! What a device does over time: packets, interrupts, drops, for each queue where the kernel
//! counts them.
//!
//! [`Rates::between`] makes rates of two readings of its counters.

use core::time::Duration;
use std::collections::BTreeMap;

use device::interrupts::Interrupt;
use device::link::LinkStats;
use device::napi::{Direction, QueueCounters};
use device::softnet::Softnet;
use schemars::JsonSchema;
use serde::Serialize;

use super::role::{InterruptRole, roles_of};

/// Counters of a device at a moment.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// The moment, since any start.
    pub at: Duration,
    /// What the link has carried.
    pub link: LinkStats,
    /// The interrupts of the device.
    pub interrupts: Vec<Interrupt>,
    /// The receiving softirq of each processor.
    pub softnet: Vec<Softnet>,
    /// What each queue has counted; empty if neither kernel nor driver counts.
    pub queues: Vec<QueueCounters>,
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
    /// Its number, as in `/proc/irq`.
    pub number: u32,
    /// Its handlers, such as `eth0-TxRx-0`.
    pub handlers: Vec<String>,
    /// How often it came in a second.
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
    /// What the device did between two readings; `vectors_of_queues` has the interrupt of each
    /// receive queue, as far as the kernel says.
    pub fn between(
        device: &str,
        vectors_of_queues: &BTreeMap<u32, u32>,
        before: &Reading,
        after: &Reading,
    ) -> Self {
        let seconds = after.at.saturating_sub(before.at).as_secs_f64().max(1e-9);
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
            drops_per_s: rate(|link| {
                link.rx_dropped.saturating_add(link.rx_missed).saturating_add(link.tx_dropped)
            }),
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

//! The kernel's `netdev` family: NAPI instances, queues, and what each queue has counted.
//!
//! Numbers of commands and attributes: Linux, `include/uapi/linux/netdev.h`; their meaning:
//! `Documentation/netlink/specs/netdev.yaml` and `Documentation/networking/napi.rst`. The family
//! came with Linux 6.3, NAPI and queues with 6.8, counters with 6.10, deferral per NAPI with 6.13,
//! `threaded` with 6.17.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::tlv::{Malformed, Tlvs, Writer};

/// Of a NAPI instance (`NETDEV_A_NAPI_...`).
mod attribute {
    pub(super) const IFINDEX: u16 = 1;
    pub(super) const ID: u16 = 2;
    pub(super) const IRQ: u16 = 3;
    pub(super) const PID: u16 = 4;
    pub(super) const DEFER_HARD_IRQS: u16 = 5;
    pub(super) const GRO_FLUSH_TIMEOUT: u16 = 6;
    pub(super) const IRQ_SUSPEND_TIMEOUT: u16 = 7;
    pub(super) const THREADED: u16 = 8;
}

/// Of counters (`NETDEV_A_QSTATS_...`).
mod qstats {
    pub(super) const IFINDEX: u16 = 1;
    pub(super) const QUEUE_TYPE: u16 = 2;
    pub(super) const QUEUE_ID: u16 = 3;
}

const COUNTERS: [(u16, &str); 15] = [
    (8, "rx-packets"),
    (9, "rx-bytes"),
    (10, "tx-packets"),
    (11, "tx-bytes"),
    (12, "rx-alloc-fail"),
    (13, "rx-hw-drops"),
    (14, "rx-hw-drop-overruns"),
    (19, "rx-hw-gro-packets"),
    (21, "rx-hw-gro-wire-packets"),
    (23, "rx-hw-drop-ratelimits"),
    (24, "tx-hw-drops"),
    (25, "tx-hw-drop-errors"),
    (32, "tx-hw-drop-ratelimits"),
    (33, "tx-stop"),
    (34, "tx-wake"),
];

/// A NAPI instance: what polls one or several queues after their interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Napi {
    /// The device's number in its network.
    pub ifindex: u32,
    /// Its own number.
    pub id: u32,
    /// The interrupt that wakes it, if the driver says.
    pub irq: Option<u32>,
    /// The thread that polls, if a thread does.
    pub pid: Option<u32>,
    /// How many empty polls there are, a timer apart, before interrupts are on again.
    pub defer_hard_irqs: Option<u32>,
    /// That timer, in nanoseconds.
    pub gro_flush_timeout: Option<u64>,
    /// For how long, in nanoseconds, interrupts stay off while a program polls and finds
    /// something.
    pub irq_suspend_timeout: Option<u64>,
    /// Whether the softirq polls, or a thread.
    pub threaded: Option<Threaded>,
}

/// Who polls for a NAPI instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Threaded {
    /// The softirq of the processor that was interrupted.
    Disabled,
    /// A kernel thread of its own.
    Enabled,
    /// A kernel thread that never stops looking.
    BusyPoll,
}

impl Threaded {
    fn of(value: u32) -> Option<Self> {
        [Self::Disabled, Self::Enabled, Self::BusyPoll].get(value as usize).copied()
    }
}

/// What to change about a NAPI instance; `None` leaves it as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NapiChange {
    /// See [`Napi::defer_hard_irqs`]: empty polls.
    pub defer_hard_irqs: Option<u32>,
    /// See [`Napi::gro_flush_timeout`]: nanoseconds.
    pub gro_flush_timeout: Option<u64>,
    /// See [`Napi::irq_suspend_timeout`]: nanoseconds.
    pub irq_suspend_timeout: Option<u64>,
    /// See [`Napi::threaded`]: where it polls.
    pub threaded: Option<Threaded>,
}

/// Which way packets go through a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Packets are received.
    Rx,
    /// Packets are sent.
    Tx,
}

/// A queue, and who polls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Queue {
    /// The device's number in its network.
    pub ifindex: u32,
    /// Which way packets go.
    pub direction: Direction,
    /// Its number among those of its direction.
    pub id: u32,
    /// The NAPI instance that polls it, if the driver says.
    pub napi: Option<u32>,
}

/// What a queue has counted since the device is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QueueCounters {
    /// The device's number in its network.
    pub ifindex: u32,
    /// Which way packets go.
    pub direction: Direction,
    /// The queue's number among those of its direction.
    pub id: u32,
    /// Counters by the names of `netdev.yaml`, such as `rx-packets`; those that the driver has.
    pub counters: BTreeMap<&'static str, u64>,
}

/// Reads the attributes of an answer to `napi-get`.
pub fn parse_napi(attributes: &[u8]) -> Result<Napi, Malformed> {
    let (mut parsed, mut id) = (Napi::default(), None);
    for attribute in Tlvs::new(attributes) {
        let attribute = attribute?;
        match attribute.kind {
            attribute::IFINDEX => parsed.ifindex = attribute.word()?,
            attribute::ID => id = Some(attribute.word()?),
            attribute::IRQ => parsed.irq = Some(attribute.word()?),
            attribute::PID => parsed.pid = Some(attribute.word()?),
            attribute::DEFER_HARD_IRQS => parsed.defer_hard_irqs = Some(attribute.word()?),
            attribute::GRO_FLUSH_TIMEOUT => parsed.gro_flush_timeout = Some(attribute.number()?),
            attribute::IRQ_SUSPEND_TIMEOUT => {
                parsed.irq_suspend_timeout = Some(attribute.number()?);
            }
            attribute::THREADED => parsed.threaded = Threaded::of(attribute.word()?),
            _ => {}
        }
    }
    parsed.id = id.ok_or(Malformed::Missing { kind: attribute::ID })?;
    Ok(parsed)
}

/// Appends the attributes of `napi-set`.
pub fn encode_napi(change: &NapiChange, request: &mut Writer) {
    if let Some(value) = change.defer_hard_irqs {
        request.put_u32(attribute::DEFER_HARD_IRQS, value);
    }
    if let Some(value) = change.gro_flush_timeout {
        request.put_u64(attribute::GRO_FLUSH_TIMEOUT, value);
    }
    if let Some(value) = change.irq_suspend_timeout {
        request.put_u64(attribute::IRQ_SUSPEND_TIMEOUT, value);
    }
    if let Some(value) = change.threaded {
        request.put_u32(attribute::THREADED, value as u32);
    }
}

/// Reads the attributes of an answer to `queue-get`.
pub fn parse_queue(attributes: &[u8]) -> Result<Queue, Malformed> {
    let (mut ifindex, mut id, mut direction, mut napi) = (0, None, None, None);
    for attribute in Tlvs::new(attributes) {
        let attribute = attribute?;
        // `NETDEV_A_QUEUE_...`
        match attribute.kind {
            1 => id = Some(attribute.word()?),
            2 => ifindex = attribute.word()?,
            3 => direction = direction_of(attribute.word()?),
            4 => napi = Some(attribute.word()?),
            _ => {}
        }
    }
    let id = id.ok_or(Malformed::Missing { kind: 1 })?;
    let direction = direction.ok_or(Malformed::Missing { kind: 3 })?;
    Ok(Queue { ifindex, direction, id, napi })
}

/// Reads the attributes of an answer to `qstats-get`.
pub fn parse_queue_counters(attributes: &[u8]) -> Result<QueueCounters, Malformed> {
    let (mut ifindex, mut id, mut direction) = (0, None, None);
    let mut counters = BTreeMap::new();
    for attribute in Tlvs::new(attributes) {
        let attribute = attribute?;
        match attribute.kind {
            qstats::IFINDEX => ifindex = attribute.word()?,
            qstats::QUEUE_TYPE => direction = direction_of(attribute.word()?),
            qstats::QUEUE_ID => id = Some(attribute.word()?),
            kind => {
                if let Some((_, name)) = COUNTERS.into_iter().find(|(known, _)| *known == kind) {
                    counters.insert(name, attribute.number()?);
                }
            }
        }
    }
    let id = id.ok_or(Malformed::Missing { kind: qstats::QUEUE_ID })?;
    let direction = direction.ok_or(Malformed::Missing { kind: qstats::QUEUE_TYPE })?;
    Ok(QueueCounters { ifindex, direction, id, counters })
}

fn direction_of(value: u32) -> Option<Direction> {
    match value {
        0 => Some(Direction::Rx),
        1 => Some(Direction::Tx),
        _ => None,
    }
}

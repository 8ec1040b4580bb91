//! What a screen says of the NIC: the device, its settings, interrupts and rings.

use device::cpus::write_list;
use device::drivers::{is_software, meaning};
use device::ethtool::{Parameter, ProfileStep};

use crate::lines::{count, together};
use crate::report::{FILES, Report, Vector, part};

/// What a driver takes, the hardware may ignore, round, or limit.
const AS_ASKED: &str =
    "as asked: what the NIC does may differ; earmark probe, on another host, measures it";

const VECTORS: usize = 4;

pub(super) fn link(report: &Report) -> Option<String> {
    let is_up = report.link.and_then(|link| link.is_up);
    let speed = report.speed_mbps().map(|speed| format!(" {speed} Mbit/s"));
    match is_up {
        Some(true) => Some(format!("up{}", speed.unwrap_or_default())),
        Some(false) => Some("no link".into()),
        None => report.files.state.clone().filter(|state| state != "unknown"),
    }
}

pub(super) fn nic(report: &Report) -> String {
    let driver = report.driver_name();
    let lower = &report.files.lower;
    let kind = match report.files.bus.as_deref() {
        None if !report.has(part::BUS) && report.has(FILES) => String::new(),
        None if !lower.is_empty() => {
            format!("above {}: look at what is below, too", lower.join(", "))
        }
        None if report.lab.is_some() => "a port of a lab's NIC".into(),
        None if is_software(driver) => "made of software: no interrupts of its own".into(),
        None if !report.has(part::BUS) => "on a bus that cannot be read".into(),
        None if report.name == "lo" => "the loopback: packets never leave the stack".into(),
        None => "on no bus: made of software".into(),
        Some("virtio") => "virtual, on virtio".into(),
        Some("xen" | "vmbus") => "virtual".into(),
        Some(bus) => format!("on {bus}"),
    };
    let driver = if report.has(part::DRIVER) { driver } else { "driver not known" };
    let mut parts = vec![driver.to_owned()];
    parts.extend(Some(kind).filter(|kind| !kind.is_empty()));
    if let Some(driver) = &report.driver {
        parts.extend(Some(driver.bus.clone()).filter(|bus| !bus.is_empty() && bus != "N/A"));
        let firmware = Some(&driver.firmware).filter(|text| !text.is_empty() && *text != "N/A");
        parts.extend(firmware.map(|text| format!("firmware {text}")));
    }
    parts.extend(link(report));
    parts.extend(report.files.mtu.map(|mtu| format!("MTU {mtu}")));
    parts.extend(report.files.numa_node.map(|node| format!("NUMA node {node}")));
    parts.join(", ")
}

pub(super) fn pair(name: Parameter, value: u32) -> String {
    match value {
        _ if !name.is_switch() => format!("{name} {value}"),
        0 => format!("{name} off"),
        _ => format!("{name} on"),
    }
}

pub(super) fn coalescing(report: &Report) -> Vec<String> {
    if let Some(port) = &report.lab {
        return vec![port.describe()];
    }
    let Some(settings) = &report.coalescing else {
        let none = "none: its driver has no such settings";
        return vec![if report.has(part::COALESCING) { none } else { "not known" }.into()];
    };
    let mut texts = Vec::new();
    let mut plain = Vec::new();
    for (name, value) in settings.iter() {
        match meaning(report.called_driver(), settings, name, value) {
            Some(meaning) => texts.push(format!("{}: {meaning}", pair(name, value))),
            None => plain.push(together(&pair(name, value))),
        }
    }
    if !plain.is_empty() {
        texts.push(plain.join(", "));
    }
    let (rx, tx) = (settings.rx_profile.as_deref(), settings.tx_profile.as_deref());
    if rx.is_some() && rx == tx {
        texts.extend(rx.map(|steps| profile("rx and tx choose", steps)));
    } else {
        texts.extend(rx.map(|steps| profile("rx chooses", steps)));
        texts.extend(tx.map(|steps| profile("tx chooses", steps)));
    }
    texts.extend(report.queue_coalescing.first().map(|queue| {
        let values: Vec<_> = queue.coalesce.iter().map(|(name, value)| pair(name, value)).collect();
        let number = report.queue_coalescing.len();
        let verb = if number == 1 { "differs" } else { "differ" };
        format!(
            "{} {verb}: queue {} has {}",
            count(number, "queue"),
            queue.queue,
            values.join(", ")
        )
    }));
    if !is_software(report.driver_name()) {
        texts.push(AS_ASKED.into());
    }
    texts
}

fn profile(who: &str, steps: &[ProfileStep]) -> String {
    let values = |of: fn(&ProfileStep) -> Option<u32>, unit| {
        let mut values: Vec<u32> = steps.iter().filter_map(of).collect();
        if values.iter().all(|value| Some(value) == values.first()) {
            values.truncate(1);
        }
        let texts: Vec<String> = values.iter().map(u32::to_string).collect();
        (!texts.is_empty()).then(|| format!("{} {unit}", texts.join(", ")))
    };
    let parts = [
        values(|step| step.usec, "us"),
        values(|step| step.pkts, "packets"),
        values(|step| step.comps, "completions"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("adaptive {who} from {}", parts.join(" and "))
}

pub(super) fn interrupts(report: &Report) -> Vec<String> {
    let vectors = &report.interrupts;
    if vectors.is_empty() {
        let why = if report.lab.is_some() {
            "those that the lab's NIC counts"
        } else if !report.files.lower.is_empty() {
            "those of the devices below it"
        } else if is_software(report.driver_name()) || report.files.bus.is_none() {
            "none: the sender runs the receiver's stack, too"
        } else {
            "none found in /proc/interrupts"
        };
        return vec![why.into()];
    }
    let total = vectors.iter().fold(0_u64, |sum, vector| sum.saturating_add(vector.count));
    let rates: Option<Vec<f64>> = vectors.iter().map(|vector| vector.per_s).collect();
    let rate = rates.map_or(String::new(), |rates| {
        format!(", {:.0}/s while looked at", rates.iter().sum::<f64>())
    });
    let mut texts = vec![format!("{}, {total} since boot{rate}", count(vectors.len(), "vector"))];
    let mut busiest: Vec<&Vector> = vectors.iter().collect();
    busiest.sort_by_key(|vector| std::cmp::Reverse(vector.count));
    texts.extend(busiest.iter().take(VECTORS).map(|vector| one_vector(vector)));
    let more = vectors.len().saturating_sub(VECTORS);
    if more > 0 {
        texts.push(format!("and {more} with fewer"));
    }
    texts.extend(report.crowded_cpu.map(|cpu| {
        format!("those that receive all come to CPU {cpu}, and may go to others: under load queues wait for each other there")
    }));
    texts.extend(report.irqbalance.map(|process| {
        format!("irqbalance (process {process}) runs, and moves interrupts between processors")
    }));
    texts
}

fn one_vector(vector: &Vector) -> String {
    let mut text = format!("{} {}: {}", vector.number, vector.handlers.join(", "), vector.count);
    if let Some(rate) = vector.per_s.filter(|rate| *rate > 0.0) {
        text += &format!(", {rate:.0}/s");
    }
    if let Some(cpus) = vector.cpus_effective.as_ref().filter(|cpus| !cpus.is_empty()) {
        text += &format!(", on CPU {}", write_list(cpus));
    }
    if let Some(cpus) =
        vector.cpus_allowed.as_ref().filter(|it| vector.cpus_effective.as_ref() != Some(*it))
    {
        text += &format!(" (may: {})", few(cpus));
    }
    text
}

pub(super) fn merging(report: &Report) -> Option<String> {
    let features = report.features.as_ref()?;
    let state = |(name, feature): (&str, &str)| {
        let state = match features.is_on(feature) {
            true => "on",
            false if features.is_offered(feature) => "off",
            false => "not offered",
        };
        format!("{name} {state}")
    };
    let names = [("GRO", "rx-gro"), ("LRO", "rx-lro"), ("GRO by the NIC", "rx-gro-hw")];
    Some(names.map(state).join(", "))
}

pub(super) fn rings(report: &Report) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some(rings) = report.rings {
        let size = |name, size: Option<u32>, most: Option<u32>| {
            let most = most.map_or(String::new(), |most| format!(" of {most}"));
            size.map(|size| format!("{name} {size}{most}"))
        };
        parts.extend(size("receive", rings.rx, rings.rx_max));
        parts.extend(size("transmit", rings.tx, rings.tx_max));
    }
    if let Some(channels) = report.channels {
        let number = |name, number: Option<u32>| {
            number.filter(|it| *it > 0).map(|it| count(it as usize, name))
        };
        parts.extend(number("combined queue", channels.combined));
        parts.extend(number("receive queue", channels.rx));
        parts.extend(number("transmit queue", channels.tx));
    }
    if parts.is_empty() { Vec::new() } else { vec![parts.join(", ")] }
}

pub(super) fn timestamps(report: &Report) -> Option<String> {
    let timestamps = report.timestamps.as_ref()?;
    let way = match (timestamps.has_hardware_receive(), timestamps.has_hardware_transmit()) {
        (true, true) => "by the NIC, both ways",
        (true, false) => "by the NIC for what comes",
        (false, true) => "by the NIC for what goes",
        (false, false) if timestamps.capabilities.contains("software-transmit") => {
            "by software, both ways"
        }
        (false, false) => "by software for what comes",
    };
    let clock = timestamps.phc_index.map(|index| format!(", clock /dev/ptp{index}"));
    Some(format!("{way}{}", clock.unwrap_or_default()))
}

fn few(cpus: &[u32]) -> String {
    let list = write_list(cpus);
    if list.len() > 12 { count(cpus.len(), "CPU") } else { list }
}

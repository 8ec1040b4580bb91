//! A device on one screen, from the wire to the application.

use linux::device::cpus::write_list;
use linux::device::ethtool::{Coalesce, Parameter, ProfileStep};
use linux::device::netdev::{Direction, Threaded};

use super::drivers::{Timer, is_software, timer_of};
use super::lines::{Lines, count, us};
use super::report::{Report, Vector};

/// Vectors that are shown one by one.
const VECTORS: usize = 5;

/// One line about a device.
#[must_use]
pub fn summary(report: &Report) -> String {
    let mut parts = vec![report.driver_name().to_owned()];
    parts.extend(link(report));
    let settings = report.coalescing.as_ref().map(|settings| {
        let shown = [Parameter::RxUsecs, Parameter::RxFrames, Parameter::AdaptiveRx];
        let shown = shown.into_iter().filter_map(|name| Some(pair(name, settings.get(name)?)));
        shown.collect::<Vec<_>>().join(", ")
    });
    parts.push(settings.unwrap_or_else(|| "no coalescing settings".into()));
    let longest = report.delays.iter().find_map(|it| Some((it.up_to_us?, it.cause)));
    if let Some((microseconds, cause)) = longest {
        parts.push(format!("up to {} ({cause})", us(microseconds)));
    }
    format!("{}: {}", report.name, parts.join("; "))
}

/// All about a device.
#[must_use]
pub fn screen(report: &Report) -> Lines {
    let mut lines = Lines::default();
    lines.text(0, &format!("{}: what delays a packet that it receives alone", report.name));
    delays(report, &mut lines);
    lines.gap();
    lines.group("NIC", [nic(report)]);
    lines.group("coalescing", coalescing(report));
    lines.group("interrupts", interrupts(report));
    lines.group("NAPI", napi(report));
    lines.group("busy polling", [busy_polling(report)]);
    lines.group("merging", merging(report));
    lines.group("rings", rings(report));
    lines.group("steering", [steering(report)]);
    lines.group("softirq", softirq(report));
    lines.group("processors", processors(report));
    lines.group("machine", [machine(report)]);
    lines.group("timestamps", timestamps(report));
    let unreadable = report.unreadable.iter().map(|it| format!("{}: {}", it.what, it.why));
    lines.group("not read", unreadable);
    lines
}

fn delays(report: &Report, lines: &mut Lines) {
    if report.delays.is_empty() {
        lines.text(2, "  Nothing here holds it back.");
    }
    for delay in &report.delays {
        let how_long = match delay.up_to_us {
            Some(microseconds) => format!("  Up to {}:", us(microseconds)),
            None => "  Unknown:".into(),
        };
        lines.text(18, &format!("{how_long:<18}{}", delay.what));
    }
}

fn link(report: &Report) -> Option<String> {
    let is_up = report.link.and_then(|link| link.is_up);
    let speed = report.link.and_then(|link| link.speed_mbps).map(u64::from);
    let speed = speed.or(report.files.speed_mbps).map(|speed| format!(" {speed} Mbit/s"));
    match is_up {
        Some(true) => Some(format!("up{}", speed.unwrap_or_default())),
        Some(false) => Some("no link".into()),
        None => report.files.state.clone().filter(|state| state != "unknown"),
    }
}

fn nic(report: &Report) -> String {
    let driver = report.driver_name();
    let kind = match report.files.bus.as_deref() {
        None if is_software(driver) => "made of software: no interrupts of its own".into(),
        None if report.name == "lo" => "the loopback: packets never leave the stack".into(),
        None => "on no bus: made of software, or below another device".into(),
        Some("virtio") => "virtual, on virtio".into(),
        Some("xen" | "vmbus") => "virtual".into(),
        Some(bus) => format!("on {bus}"),
    };
    let mut parts = vec![driver.to_owned(), kind];
    if let Some(driver) = &report.driver {
        parts.extend(Some(driver.bus.clone()).filter(|bus| !bus.is_empty()));
        let firmware = Some(&driver.firmware).filter(|text| !text.is_empty() && *text != "N/A");
        parts.extend(firmware.map(|text| format!("firmware {text}")));
    }
    parts.extend(link(report));
    parts.extend(report.files.mtu.map(|mtu| format!("MTU {mtu}")));
    parts.extend(report.files.numa_node.map(|node| format!("NUMA node {node}")));
    parts.join(", ")
}

/// A setting as `ethtool -C` takes it.
fn pair(name: Parameter, value: u32) -> String {
    match value {
        _ if !name.is_switch() => format!("{name} {value}"),
        0 => format!("{name} off"),
        _ => format!("{name} on"),
    }
}

fn coalescing(report: &Report) -> Vec<String> {
    let Some(settings) = &report.coalescing else {
        return vec!["none: its driver has no such settings".into()];
    };
    let mut texts = Vec::new();
    let mut plain = Vec::new();
    for (name, value) in settings.iter() {
        match meaning(report, settings, name, value) {
            Some(meaning) => texts.push(format!("{}: {meaning}", pair(name, value))),
            None => plain.push(pair(name, value)),
        }
    }
    if !plain.is_empty() {
        texts.push(plain.join(", "));
    }
    for (name, steps) in [("rx", &settings.rx_profile), ("tx", &settings.tx_profile)] {
        texts.extend(steps.as_ref().map(|steps| profile(name, steps)));
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
    texts
}

/// What the received packets feel of a setting; `None` for those that say enough by their name.
fn meaning(
    report: &Report,
    settings: &Coalesce,
    name: Parameter,
    value: u32,
) -> Option<&'static str> {
    use Parameter::{AdaptiveRx, CqeModeRx, RxFrames, RxUsecs, TxFrames, TxUsecs};
    let is_adaptive = settings.is_on(AdaptiveRx) == Some(true);
    Some(match (name, value) {
        (RxUsecs, 0) => "it interrupts for a packet at once",
        (RxUsecs, _) if is_adaptive => "what the driver has chosen last",
        (RxUsecs, usecs) => match timer_of(report.driver_name(), usecs) {
            Timer::Delay => "a lone packet waits that long",
            Timer::Throttle => "that long at least between two interrupts",
            Timer::Chosen(_) => "a code: the driver chooses the gap between two interrupts",
        },
        (RxFrames, _) if report.driver_name() == "tun" => {
            "so many packets of one write burst go to the stack together"
        }
        (RxFrames, 0) => "no number of packets ends the wait",
        (RxFrames, 1) => "the first packet ends the wait, so there is none",
        (RxFrames, _) => "so many packets end the wait",
        (AdaptiveRx, 0) => "the values stay as they are",
        (AdaptiveRx, _) => "the driver changes the values by the traffic",
        (CqeModeRx, 0) => "the time counts from the first packet",
        (CqeModeRx, _) => {
            "the time starts anew with each packet: a steady stream may wait for long"
        }
        (TxUsecs | TxFrames, _) => return None,
        _ => return None,
    })
}

fn profile(name: &str, steps: &[ProfileStep]) -> String {
    let number = |value: Option<u32>, unit| value.map(|value| format!("{value}{unit}"));
    let step = |step: &ProfileStep| {
        let parts = [
            number(step.usec, " us"),
            number(step.pkts, " packets"),
            number(step.comps, " completions"),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("/")
    };
    let steps: Vec<String> = steps.iter().map(step).collect();
    format!("adaptive {name} chooses from: {}", steps.join(", "))
}

fn interrupts(report: &Report) -> Vec<String> {
    let vectors = &report.interrupts;
    if vectors.is_empty() {
        let why = if is_software(report.driver_name()) || report.files.bus.is_none() {
            "none: whoever sends runs the receiver's stack, too"
        } else {
            "none found in /proc/interrupts"
        };
        return vec![why.into()];
    }
    let total: u64 = vectors.iter().map(|vector| vector.count).sum();
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
        text += &format!(" (may: {})", write_list(cpus));
    }
    text
}

fn napi(report: &Report) -> Vec<String> {
    let deferral = &report.files.deferral;
    let mut texts = Vec::new();
    match (deferral.gro_flush_timeout, deferral.napi_defer_hard_irqs) {
        (Some(0) | None, Some(0) | None) => {
            texts.push("interrupts are on again as soon as a poll finds too little".to_owned());
        }
        (timeout, times) => texts.push(format!(
            "gro_flush_timeout {}, napi_defer_hard_irqs {}",
            us(timeout.unwrap_or(0) as f64 / 1e3),
            times.unwrap_or(0)
        )),
    }
    if deferral.threaded.is_some_and(|threaded| threaded != 0) {
        texts.push("threaded: kernel threads poll".into());
    }
    let napis = report.napis.as_deref().unwrap_or_default();
    let defers = |napi: &&linux::device::netdev::Napi| {
        let own = (napi.gro_flush_timeout, napi.defer_hard_irqs.map(u64::from));
        own != (deferral.gro_flush_timeout, deferral.napi_defer_hard_irqs) && own != (None, None)
    };
    let suspends: Vec<u64> =
        napis.iter().filter_map(|it| it.irq_suspend_timeout).filter(|it| *it > 0).collect();
    let polling = napis.iter().filter(|it| it.threaded == Some(Threaded::BusyPoll)).count();
    let differing = napis.iter().filter(defers).count();
    let mut of_instances = Vec::new();
    if differing > 0 {
        of_instances.push(format!("{differing} with a deferral of their own"));
    }
    if let Some(longest) = suspends.iter().max() {
        let (number, longest) = (suspends.len(), us(*longest as f64 / 1e3));
        of_instances
            .push(format!("{number} suspend interrupts up to {longest} for programs that poll"));
    }
    if polling > 0 {
        of_instances.push(format!("{polling} polled by a thread that never sleeps"));
    }
    if !of_instances.is_empty() {
        let all = count(napis.len(), "instance");
        texts.push(format!("{all}: {}", of_instances.join(", ")));
    }
    texts
}

fn busy_polling(report: &Report) -> String {
    let limits = &report.files.limits;
    match (limits.busy_poll, limits.busy_read) {
        (None, None) => "unknown: this network namespace does not show net.core.busy_poll".into(),
        (Some(0) | None, Some(0) | None) => {
            "off (net.core.busy_poll, busy_read): programs sleep until they are woken".into()
        }
        (poll, read) => format!(
            "poll and select look for {} us themselves, blocking reads for {} us",
            poll.unwrap_or(0),
            read.unwrap_or(0)
        ),
    }
}

fn merging(report: &Report) -> Option<String> {
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

fn rings(report: &Report) -> Vec<String> {
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

fn steering(report: &Report) -> String {
    let all = &report.files.steering;
    let steered: Vec<String> = all
        .iter()
        .filter(|it| it.direction == Direction::Rx && !it.cpus.is_empty())
        .map(|it| format!("queue {} to CPU {}", it.queue, write_list(&it.cpus)))
        .collect();
    let flows: u64 = all.iter().map(|it| it.flows).sum();
    let rps = match steered.len() {
        0 => "RPS off".into(),
        1..=4 => format!("RPS {}", steered.join(", ")),
        many => format!("RPS of {many} queues, {}, ...", steered[0]),
    };
    let rfs = match report.files.limits.rps_sock_flow_entries.unwrap_or(0) {
        entries if entries > 0 && flows > 0 => format!("RFS on, {flows} flows"),
        _ => "RFS off".into(),
    };
    let xps = all.iter().filter(|it| it.direction == Direction::Tx && !it.cpus.is_empty()).count();
    let xps = if xps > 0 { format!("XPS of {}", count(xps, "queue")) } else { "XPS off".into() };
    format!("{rps}; {rfs}; {xps}")
}

fn softirq(report: &Report) -> Vec<String> {
    let softnet = &report.files.softnet;
    let sum = |of: fn(&linux::device::softnet::Softnet) -> u32| -> u64 {
        softnet.iter().map(|cpu| u64::from(of(cpu))).sum()
    };
    let mut texts = Vec::new();
    let limits = &report.files.limits;
    if let (Some(budget), Some(time)) = (limits.netdev_budget, limits.netdev_budget_usecs) {
        texts.push(format!("at most {budget} packets or {time} us in one go"));
    }
    if !softnet.is_empty() {
        texts.push(format!(
            "since boot, all devices: {} squeezed (work was left), {} dropped, {} handed over by RPS",
            sum(|cpu| cpu.squeezed),
            sum(|cpu| cpu.dropped),
            sum(|cpu| cpu.received_rps)
        ));
    }
    let drops: Vec<String> = ["rx_dropped", "rx_missed_errors", "rx_fifo_errors", "rx_over_errors"]
        .into_iter()
        .filter_map(|name| {
            let value = report.files.statistics.get(name).filter(|value| **value > 0)?;
            Some(format!("{name} {value}"))
        })
        .collect();
    if !drops.is_empty() {
        texts.push(format!("{}: {}", report.name, drops.join(", ")));
    }
    texts
}

fn processors(report: &Report) -> Vec<String> {
    let idle = &report.files.idle;
    let states: Vec<String> = idle
        .states
        .iter()
        .map(|state| {
            let off = if state.is_disabled { ", disabled" } else { "" };
            format!("{} {} us{off}", state.name, state.latency_us)
        })
        .collect();
    let driver = idle.driver.as_deref();
    let mut texts = match (&states[..], driver) {
        ([], None) => vec!["no idle driver: they wait in the shallowest state".to_owned()],
        ([], Some(driver)) => vec![format!("idle by {driver}, whose states are not shown")],
        (states, driver) => vec![format!(
            "idle by {}, {}; time to wake up: {}",
            driver.unwrap_or("no driver"),
            idle.governor.as_deref().unwrap_or("no governor"),
            states.join(", ")
        )],
    };
    let frequency = &report.files.frequency;
    let words = |set: &std::collections::BTreeSet<String>| {
        set.iter().map(String::as_str).collect::<Vec<_>>().join(" and ")
    };
    texts.push(if frequency.governors.is_empty() {
        "nobody here chooses frequencies".into()
    } else {
        format!("frequencies by {}, {}", words(&frequency.drivers), words(&frequency.governors))
    });
    texts
}

fn machine(report: &Report) -> String {
    let machine = &report.files.virtualisation;
    let mut parts = vec![match machine.is_guest {
        Some(true) => "virtual".to_owned(),
        Some(false) => "not virtual".into(),
        None => "nothing says whether it is virtual".into(),
    }];
    parts.extend(machine.hypervisor.clone());
    parts.extend(machine.product.clone());
    parts.extend(machine.container.as_ref().map(|name| format!("in a container ({name})")));
    parts.join(", ")
}

fn timestamps(report: &Report) -> Option<String> {
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

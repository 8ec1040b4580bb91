//! What a screen says of the host: who polls, who steers, and what processors do meanwhile.

use std::collections::BTreeSet;

use device::cpus::write_list;
use device::napi::{Direction, Napi, Threaded};
use device::softnet::Softnet;

use crate::delays::has_no_napi;
use crate::lines::{count, together, us};
use crate::report::Report;

pub(super) fn napi(report: &Report) -> Vec<String> {
    let deferral = &report.files.deferral;
    let mut texts = Vec::new();
    match (deferral.gro_flush_timeout, deferral.napi_defer_hard_irqs) {
        (Some(0) | None, Some(0) | None) if has_no_napi(report) => {
            texts.push(
                "no NAPI instance polls this device: each packet goes to the stack by itself"
                    .to_owned(),
            );
        }
        (Some(0) | None, Some(0) | None) => {
            texts.push("interrupts are on again as soon as a poll finds too little".to_owned());
        }
        (timeout, times) => texts.push(format!(
            "gro_flush_timeout {}, napi_defer_hard_irqs {}{}",
            us(timeout.unwrap_or(0) as f64 / 1e3),
            times.unwrap_or(0),
            if has_no_napi(report) {
                ": no effect, no NAPI instance polls this device now"
            } else {
                ""
            }
        )),
    }
    if deferral.threaded.is_some_and(|threaded| threaded != 0) {
        texts.push("threaded: kernel threads poll".into());
    }
    let napis = report.napis.as_deref().unwrap_or_default();
    let defers = |napi: &&Napi| {
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
        of_instances.push(format!(
            "{number} with irq-suspend-timeout up to {longest}, for programs that poll"
        ));
    }
    if polling > 0 {
        of_instances.push(format!(
            "{polling} polled by a thread that never sleeps (napi-threaded: busy-poll)"
        ));
    }
    if !of_instances.is_empty() {
        let all = count(napis.len(), "instance");
        texts.push(format!("{all}: {}", of_instances.join(", ")));
    }
    texts
}

pub(super) fn busy_polling(report: &Report) -> String {
    let limits = &report.files.limits;
    match (limits.busy_poll, limits.busy_read) {
        (None, None) => {
            "unknown: this network namespace does not show it; outside: sysctl net.core.busy_poll"
                .into()
        }
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

pub(super) fn steering(report: &Report) -> String {
    let all = &report.files.steering;
    let steered: Vec<String> = all
        .iter()
        .filter(|it| it.direction == Direction::Rx && !it.cpus.is_empty())
        .map(|it| format!("queue {} to CPU {}", it.queue, write_list(&it.cpus)))
        .collect();
    let flows = all.iter().fold(0_u64, |sum, it| sum.saturating_add(it.flows));
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

pub(super) fn softirq(report: &Report) -> Vec<String> {
    let softnet = &report.files.softnet;
    let sum =
        |of: fn(&Softnet) -> u32| -> u64 { softnet.iter().map(|cpu| u64::from(of(cpu))).sum() };
    let mut texts = Vec::new();
    let limits = &report.files.limits;
    if let (Some(budget), Some(time)) = (limits.netdev_budget, limits.netdev_budget_usecs) {
        texts.push(format!("at most {budget} packets or {time} us in one go"));
    }
    if !softnet.is_empty() {
        texts.push(format!(
            "since boot, all devices: {} squeezes (work was left), {} drops, {} by RPS",
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

pub(super) fn processors(report: &Report) -> Vec<String> {
    let idle = &report.files.idle;
    let states: Vec<String> = idle
        .states
        .iter()
        .map(|state| {
            let off = if state.is_disabled { ", disabled" } else { "" };
            together(&format!("{} {} us{off}", state.name, state.latency_us))
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
    let words =
        |set: &BTreeSet<String>| set.iter().map(String::as_str).collect::<Vec<_>>().join(" and ");
    texts.push(if frequency.governors.is_empty() {
        "no frequency governor here".into()
    } else {
        format!("frequencies by {}, {}", words(&frequency.drivers), words(&frequency.governors))
    });
    texts
}

pub(super) fn machine(report: &Report) -> String {
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

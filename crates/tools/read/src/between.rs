//! Counters: what a device did between two readings, and which processors have its interrupts.

use std::collections::BTreeMap;

use core::time::Duration;

use device::interrupts::Interrupt;
use device::link::LinkStats;
use device::queue_names::queues_among;
use show::{Rates, Reading};

use crate::answer::Ratio;
use crate::device_report;
use crate::gather::Options;
use crate::known::KnownDevice;
use crate::machine::MachineText;
use crate::tree::Tree;

/// What a device did between its first and its last reading.
pub(crate) fn between(
    name: &str,
    known: &KnownDevice,
    machine: &MachineText,
    tree: &Tree,
    options: &Options,
) -> Option<Ratio> {
    let [first, .., last] = &machine.interrupts[..] else { return None };
    let link = |place: fn(&[LinkStats]) -> Option<&LinkStats>| {
        (known.link_stats.len() > 1).then(|| place(&known.link_stats).copied()).flatten()
    };
    let counted = |at: usize| -> Option<LinkStats> {
        let statistics =
            (known.statistics.len() > 1).then(|| known.statistics.get(at)).flatten()?;
        let rx_packets = *statistics.get("rx_packets")?;
        Some(LinkStats { rx_packets, ..LinkStats::default() })
    };
    let end = known.statistics.len().saturating_sub(1);
    let (before, after) =
        (link(<[_]>::first).or_else(|| counted(0)), link(<[_]>::last).or_else(|| counted(end)));
    let queues = |at: usize| known.statistics.get(at).map(queues_among).unwrap_or_default();
    let reading = |all: &[Interrupt], at, link: Option<LinkStats>, seconds: f64, place| Reading {
        at: Duration::try_from_secs_f64(seconds).unwrap_or_default(),
        link: link.unwrap_or_default(),
        interrupts: device_report::interrupts(name, known, all, tree)
            .into_iter()
            .map(|(one, _)| one)
            .collect(),
        softnet: machine.softnet.get(place).cloned().unwrap_or_default(),
        queues: queues(at),
    };
    let seconds = options.seconds.filter(|it| *it > 0.0).unwrap_or(1.0);
    let softnet = machine.softnet.len().saturating_sub(1);
    let then = reading(first, 0, before, 0.0, 0);
    let now = reading(last, end, after, seconds, softnet);
    let rates = Rates::between(name, &BTreeMap::new(), &then, &now);
    let count = |per_s: f64| (per_s * seconds).round().max(0.0) as u64;
    Some(Ratio {
        device: name.to_owned(),
        rx_packets: count(rates.rx_packets_per_s),
        interrupts: count(rates.interrupts_per_s?),
        rx_packets_per_interrupt: rates.rx_packets_per_interrupt.filter(|_| before.is_some()),
        rates: options.seconds.map(|_| rates),
    })
}

/// Queues whose interrupts all go to one processor, where nothing says whether they may go to
/// others.
pub(crate) fn shared_cpus(report: &show::Report) -> Option<String> {
    if report.crowded_cpu.is_some() {
        return None;
    }
    let plain: Vec<Interrupt> =
        report.files.interrupts.iter().map(|(one, _)| one.clone()).collect();
    let receives = show::are_for_receiving(&plain);
    let receiving = report.files.interrupts.iter().zip(receives).filter(|(_, receives)| *receives);
    let mut by_cpu: BTreeMap<u32, Vec<&Interrupt>> = BTreeMap::new();
    for ((one, affinity), _) in receiving {
        by_cpu.entry(show::cpu_of(one, affinity)?).or_default().push(one);
    }
    let (cpu, its) = by_cpu.into_iter().find(|(_, its)| its.len() > 1)?;
    let names: Vec<&str> = its.iter().flat_map(|one| &one.handlers).map(String::as_str).collect();
    let shown = match &names[..] {
        [first, .., last] if names.len() > 4 => {
            format!("{first} to {last} ({} of them)", names.len())
        }
        names => names.join(", "),
    };
    let numbers: Vec<String> = its.iter().take(8).map(|one| one.number.to_string()).collect();
    Some(format!(
        "{}: {shown} all come to CPU {cpu}: under load queues wait for each other there; whether \
         they may go to others: grep . /proc/irq/{{{}}}/*affinity_list",
        report.name,
        numbers.join(",")
    ))
}

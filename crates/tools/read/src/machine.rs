//! Files of the kernel that are of no one device: interrupts, softirqs, links.

use std::collections::BTreeMap;

use device::interrupts::{Interrupt, parse_interrupts};
use device::link::LinkStats;
use device::softnet::{Softnet, parse_softnet};

use crate::kind::InputKind;
use crate::known::KnownDevice;

/// What is known of a machine: the first reading of each file and the last.
#[derive(Clone, Debug, Default)]
pub(crate) struct MachineText {
    pub(crate) interrupts: Vec<Vec<Interrupt>>,
    pub(crate) softnet: Vec<Vec<Softnet>>,
    /// Receiving softirqs of each processor.
    pub(crate) received: Vec<Vec<u64>>,
}

impl MachineText {
    /// Reads a part; how many of its lines are not understood. `None`: nothing of it is.
    pub(crate) fn read(&mut self, kind: InputKind, lines: &[String]) -> Option<usize> {
        let text = lines.join("\n");
        match kind {
            InputKind::Interrupts if text.contains("NET_RX:") => self.softirqs(lines),
            InputKind::Interrupts => self.interrupts(lines),
            InputKind::Softirqs => self.softirqs(lines),
            InputKind::Softnet => {
                let filled = lines.iter().filter(|line| !line.trim().is_empty());
                let (rows, other): (Vec<&String>, Vec<&String>) =
                    filled.partition(|line| parse_softnet(line.trim()).is_some());
                let rows: Vec<&str> = rows.into_iter().map(|line| line.trim()).collect();
                let softnet = parse_softnet(&rows.join("\n")).filter(|it| !it.is_empty())?;
                keep(&mut self.softnet, softnet);
                Some(other.len())
            }
            _ => None,
        }
    }

    fn interrupts(&mut self, lines: &[String]) -> Option<usize> {
        let start = lines.iter().position(|line| line.contains("CPU"))?;
        let interrupts = parse_interrupts(&lines[start..].join("\n"));
        // Interrupts of processors have letters for numbers; ERR and MIS have no words.
        let is_other = |line: &&String| {
            let name = line.split(':').next().unwrap_or_default().trim();
            let is_of_cpus = line.contains(':') && name.len() <= 4;
            !line.trim().is_empty() && !is_of_cpus
        };
        let unread = lines[start + 1..].iter().filter(is_other).count();
        if interrupts.is_empty() {
            return None;
        }
        keep(&mut self.interrupts, interrupts);
        Some(unread)
    }

    fn softirqs(&mut self, lines: &[String]) -> Option<usize> {
        let line = lines.iter().find_map(|line| line.trim().strip_prefix("NET_RX:"))?;
        let counts = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        keep(&mut self.received, counts);
        Some(0)
    }

    /// What softirqs say: which processor receives.
    pub(crate) fn notes(&self) -> Vec<String> {
        let Some(counts) = self.received.last() else { return Vec::new() };
        let since = match &self.received[..] {
            [first, .., last] => {
                let zip = last.iter().zip(first);
                Some(zip.map(|(now, then)| now.saturating_sub(*then)).collect::<Vec<_>>())
            }
            _ => None,
        };
        let (counts, when) = match &since {
            Some(counts) => (counts, "between the two readings"),
            None => (counts, "since boot"),
        };
        let sum: u64 = counts.iter().fold(0, |sum, it| sum.saturating_add(*it));
        let most = counts.iter().enumerate().max_by_key(|(_, count)| **count);
        let Some((cpu, most)) = most.filter(|_| sum > 0 && counts.len() > 1) else {
            return Vec::new();
        };
        let share = 100.0 * *most as f64 / sum as f64;
        vec![format!(
            "softirqs: {share:.0} % of NET_RX of all devices ran on CPU {cpu} {when}, of {} CPUs",
            counts.len()
        )]
    }
}

/// Adds a reading; of several, the first and the last are kept.
pub(crate) fn keep<T>(readings: &mut Vec<T>, reading: T) {
    readings.truncate(1);
    readings.push(reading);
}

/// Reads `ip -s link`: what each device has carried, its MTU and its state.
pub(crate) fn ip_link(
    lines: &[String],
    mut known: impl FnMut(&str, &dyn Fn(&mut KnownDevice)),
) -> usize {
    let mut name = String::new();
    let mut unread = 0;
    let mut stats = LinkStats::default();
    let mut lines = lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        if let Some((_, rest)) = line.split_once(": ").filter(|_| line.contains(": <")) {
            name = rest.split([':', '@']).next().unwrap_or_default().to_owned();
            stats = LinkStats::default();
            let word = |key: &str| {
                let mut words = line.split_whitespace();
                words.find(|word| *word == key)?;
                words.next()
            };
            let mtu = word("mtu").and_then(|text| text.parse().ok());
            let state = word("state").map(str::to_lowercase);
            known(&name, &|known| {
                known.mtu = mtu.or(known.mtu);
                known.state = state.clone().or(known.state.take());
            });
            continue;
        }
        let is_rx = line.starts_with("RX:");
        if (is_rx || line.starts_with("TX:")) && !name.is_empty() {
            let names: Vec<&str> = line.split_whitespace().skip(1).collect();
            let values: Vec<u64> = lines
                .next()
                .into_iter()
                .flat_map(str::split_whitespace)
                .map_while(|word| word.parse().ok())
                .collect();
            let values: BTreeMap<&str, u64> = names.into_iter().zip(values).collect();
            let value = |name: &str| values.get(name).copied().unwrap_or(0);
            if is_rx {
                stats.rx_bytes = value("bytes");
                stats.rx_packets = value("packets");
                stats.rx_dropped = value("dropped");
                stats.rx_missed = value("missed");
            } else {
                stats.tx_bytes = value("bytes");
                stats.tx_packets = value("packets");
                stats.tx_dropped = value("dropped");
                known(&name, &|known| keep(&mut known.link_stats, stats));
            }
            continue;
        }
        let is_about = ["link/", "altname", "inet", "valid_lft", "RX errors", "TX errors"];
        unread += usize::from(!is_about.iter().any(|start| line.starts_with(start)));
    }
    unread
}

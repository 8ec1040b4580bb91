//! Each part of an input, by its kind.

use device::ethtool::{Coalesce, Driver};

use crate::answer::Taken;
use crate::block::Block;
use crate::configuration;
use crate::ethtool;
use crate::gather::{MOST_PARTS, ReadSession, UNNAMED, rx_usecs, taken};
use crate::kind::{InputKind, kernel_file};
use crate::machine::ip_link;
use crate::round_trips::{self, RoundTrips};

impl ReadSession {
    /// The device of a part: its own, or the one before, or the only one.
    fn device(&mut self, named: Option<String>) -> String {
        let only = || match self.known.len() {
            1 => self.known.keys().next().cloned(),
            _ => None,
        };
        let name = named
            .or_else(|| self.last.clone())
            .or_else(|| self.options.device.clone())
            .or_else(only)
            .unwrap_or_else(|| UNNAMED.into());
        // What was read before a name was known is of the first one.
        if name != UNNAMED
            && self.known.len() == 1
            && let Some(known) = self.known.remove(UNNAMED)
        {
            self.known.insert(name.clone(), known);
        }
        self.last = Some(name.clone());
        name
    }

    /// Reads a part; `false`: it is of no known kind.
    pub(crate) fn block(&mut self, input: &str, block: &Block) -> bool {
        if let Some(value) = json(block) {
            self.json(input, block, &value);
            return true;
        }
        let Some(kind) = block.kind else { return false };
        let part = Taken { lines: block.lines.len(), ..taken(input, block.at, kind) };
        let read = match &block.change {
            Some(change) => Some(self.change(block, change, part.clone())),
            None if kind.is_configuration() => Some(self.configuration(block, part.clone())),
            None => self.output(block, part.clone()),
        };
        let nothing = || Taken {
            // It begins like its kind, and goes on as something else.
            remark: Some("nothing of it is understood".to_owned()),
            not_understood: part.lines,
            ..part
        };
        self.took_part(block, read.unwrap_or_else(nothing));
        true
    }

    /// The output of a command, or files of the kernel; `None`: nothing of it is understood.
    fn output(&mut self, block: &Block, part: Taken) -> Option<Taken> {
        let (kind, lines) = (part.kind, &block.lines);
        if ethtool::is_of(kind) {
            return Some(self.ethtool(block, part));
        }
        let not_understood = match kind {
            InputKind::Interrupts if lines.iter().any(|it| it.contains("NET_RX:")) => {
                let not_understood = self.machine.read(kind, lines)?;
                return Some(Taken { kind: InputKind::Softirqs, not_understood, ..part });
            }
            InputKind::Interrupts | InputKind::Softirqs | InputKind::Softnet => {
                self.machine.read(kind, lines)?
            }
            InputKind::IpLink => ip_link(lines, |name, fill| {
                if name != "lo" {
                    fill(self.known(name));
                }
            }),
            InputKind::KernelFile => self.kernel_files(block),
            kind => {
                let (series, not_understood) = round_trips::read(kind, lines)?;
                self.add_series(block, &format!("{}:{}", part.input, block.at), series);
                not_understood
            }
        };
        Some(Taken { not_understood, ..part })
    }

    /// Settings that were read again may have changed between two runs.
    fn ethtool(&mut self, block: &Block, part: Taken) -> Taken {
        let name = self.device(block.device.clone());
        let series = self.series.len();
        let known = self.known(&name);
        let before = rx_usecs(known);
        let not_understood = ethtool::read(part.kind, &block.lines, known);
        match (before, rx_usecs(known)) {
            (Some(before), Some(after)) if before != after && series > 0 => {
                self.beside.change = Some((before, after));
                self.beside.before = series;
            }
            _ => {}
        }
        Taken { device: Some(name), not_understood, ..part }
    }

    /// A change by `ethtool -C`: round trips after it are others than those before.
    fn change(&mut self, block: &Block, change: &Coalesce, part: Taken) -> Taken {
        let name = self.device(block.device.clone());
        let known = self.known(&name);
        let before = rx_usecs(known);
        known.change(change);
        let change = before.zip(rx_usecs(known)).filter(|(before, after)| before != after);
        if change.is_some() {
            self.beside.change = change;
            self.beside.before = self.series.len();
        }
        Taken { lines: 1, device: Some(name), ..part }
    }

    fn kernel_files(&mut self, block: &Block) -> usize {
        let mut unread = 0;
        let mut text = Vec::new();
        for line in &block.lines {
            match kernel_file(line) {
                Some((path, value)) => self.tree.add(path, value.as_bytes().to_vec()),
                None => text.push(line.as_str()),
            }
        }
        match &block.path {
            Some(path) => self.tree.add(path, text.join("\n").into_bytes()),
            None => unread += text.iter().filter(|line| !line.is_empty()).count(),
        }
        unread
    }

    fn configuration(&mut self, block: &Block, part: Taken) -> Taken {
        let named = block.path.as_deref().unwrap_or(&part.input);
        let mut remark = None;
        let not_understood = match part.kind {
            InputKind::Sysctl => {
                if block.lines.iter().any(|line| line.trim().starts_with("net.core.")) {
                    let name = self.device(None);
                    self.known(&name);
                }
                configuration::sysctl(&block.lines, &mut self.tree)
            }
            kind @ (InputKind::Nmstate | InputKind::Netplan) => {
                match configuration::yaml(kind, &block.lines) {
                    Some(found) => {
                        if kind == InputKind::Netplan {
                            remark = Some(
                                "netplan has no key for coalescing: nothing in it holds packets; \
                             earmark persist writes a .link file beside it"
                                    .into(),
                            );
                        }
                        for (device, settings) in found {
                            self.known(&device);
                            let at = format!("{}:{}", part.input, block.at);
                            if self.nmstate.len() < MOST_PARTS {
                                self.nmstate.push((device, at, settings));
                            }
                        }
                        0
                    }
                    None => part.lines,
                }
            }
            kind => {
                if let Some(name) = configuration::device_in(&block.lines) {
                    self.known(&name);
                    self.last = Some(name);
                } else {
                    let name = self.device(block.device.clone());
                    let known = self.known(&name);
                    if let Some(name) = configuration::driver_in(&block.lines) {
                        known.driver.get_or_insert_with(|| Driver { name, ..Driver::default() });
                    }
                }
                match &block.path {
                    Some(path) => self.tree.add(path, block.lines.join("\n").into_bytes()),
                    None => configuration::place(kind, named, &block.lines, &mut self.tree),
                }
                0
            }
        };
        Taken { not_understood, remark, ..part }
    }

    fn json(&mut self, input: &str, block: &Block, value: &serde_json::Value) {
        let part = |kind| Taken { lines: block.lines.len(), ..taken(input, block.at, kind) };
        if ethtool::is_of_ethtool(value) {
            let mut all = Vec::new();
            ethtool::read_json(value, |name, kind, fill| {
                let named = Some(name.to_owned()).filter(|name| crate::command::is_device(name));
                let device = self.device(named);
                fill(self.known(&device));
                all.push((name.to_owned(), kind));
            });
            for (name, kind) in all {
                let kind = kind.or(block.kind).unwrap_or(InputKind::Unknown);
                self.took(Taken { device: Some(name), ..part(kind) });
            }
            return;
        }
        match round_trips::iperf3(value) {
            Some(series) => {
                let at = format!("{input}:{}", block.at);
                self.add_one_series(RoundTrips { at, ..series });
                self.took(part(InputKind::Iperf3));
            }
            None => {
                let remark = Some("JSON of neither ethtool nor iperf3".to_owned());
                let not_understood = block.lines.len();
                self.took(Taken { remark, not_understood, ..part(InputKind::Unknown) });
            }
        }
    }
}

/// The value of JSON that a part is.
fn json(block: &Block) -> Option<serde_json::Value> {
    let first = block.lines.iter().find(|line| !line.is_empty())?;
    if !first.trim_start().starts_with(['[', '{']) || first.trim_start().starts_with("[m") {
        return None;
    }
    serde_json::from_str(&block.lines.join("\n")).ok()
}

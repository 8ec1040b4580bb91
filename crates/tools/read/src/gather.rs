//! Inputs in, an answer out.

use std::collections::BTreeMap;

use device::ethtool::{Coalesce, Driver, Parameter};
use device::interrupts::Interrupt;
use device::setters::Settings;

use crate::answer::{ReadResult, Taken};
use crate::between::{between, shared_cpus};
use crate::block::{Block, blocks};
use crate::configuration;
use crate::device_report;
use crate::ethtool;
use crate::kind::{InputKind, kernel_file};
use crate::known::KnownDevice;
use crate::machine::{MachineText, ip_link};
use crate::place::Place;
use crate::round_trips::{self, Beside, RoundTrips, verdict};
use crate::text::CleanText;
use crate::tree::Tree;
use crate::unknown::{EXPECTED, is_capture};

/// What a device is called that no text names.
const UNNAMED: &str = "DEV";

/// No input has more parts.
const MOST_PARTS: usize = 1 << 16;

/// A file, or what was pasted.
#[derive(Clone, Debug, Default)]
pub struct Input {
    /// Its path, or `-`.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// Whether it is a file of a report, whose path says where it belongs.
    pub is_of_report: bool,
    /// How many more bytes it had.
    pub left_off: u64,
}

/// What the user knows beside.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The name of the driver, where no text says it.
    pub driver: Option<String>,
    /// The name of the device: only this one, and that of text which names none.
    pub device: Option<String>,
    /// Seconds between two readings of counters.
    pub seconds: Option<f64>,
}

/// What the inputs say.
pub fn read(inputs: &[Input], options: &Options) -> ReadResult {
    let mut gather = Gather::default();
    inputs.iter().for_each(|input| gather.input(input, options));
    gather.answer(options)
}

#[derive(Default)]
struct Gather {
    known: BTreeMap<String, KnownDevice>,
    machine: MachineText,
    tree: Tree,
    taken: Vec<Taken>,
    series: Vec<RoundTrips>,
    beside: Beside,
    /// What nmstate sets, with the device and the place.
    nmstate: Vec<(String, String, Settings)>,
    notes: Vec<String>,
    /// Copies of files in reports.
    copies: usize,
    /// The device that was named last in this input.
    last: Option<String>,
}

impl Gather {
    fn input(&mut self, input: &Input, options: &Options) {
        self.last = None;
        if input.left_off > 0 {
            self.notes.push(format!("{}: {} bytes were left out", input.name, input.left_off));
        }
        if is_capture(&input.bytes) {
            let next = report::shell::quoted(&input.name);
            let remark = format!("what settings would do to its packets: earmark predict {next}");
            return self.took(&input.name, 1, 0, InputKind::Capture, None, 0, Some(remark));
        }
        if input.is_of_report {
            match Place::of(&input.name) {
                Place::File(path) => {
                    self.copies += 1;
                    return self.tree.add(&path, input.bytes.clone());
                }
                Place::Output(typed) => {
                    let text = CleanText::of(&input.bytes);
                    let lines = text.lines.len();
                    let block = Block::whole(typed.kind, typed.device, text.lines);
                    return self.block(&input.name, &block, lines, options);
                }
                Place::Sections => {}
                Place::Other => return,
            }
        }
        self.pasted(input, options);
    }

    fn pasted(&mut self, input: &Input, options: &Options) {
        let text = CleanText::of(&input.bytes);
        if text.left_off > 0 {
            self.notes.push(format!("{}: {} lines were left out", input.name, text.left_off));
        }
        let whole = InputKind::of_path(&input.name).filter(|_| !input.is_of_report);
        let mut parts = blocks(&text.lines, whole);
        parts.truncate(MOST_PARTS);
        let is_recognised = parts.iter().any(|part| part.kind.is_some());
        let is_json =
            |part: &&Block| part.lines.first().is_some_and(|it| it.starts_with(['[', '{']));
        if is_recognised || parts.iter().any(|part| is_json(&part)) {
            let other = parts.iter().filter(|part| part.kind.is_none() && !is_json(part));
            let other: usize = other.map(|part| part.lines.len()).sum();
            if other > 0 {
                let lines = show::count(other, "line");
                self.notes.push(format!("{}: {lines} of other text", input.name));
            }
            for part in parts {
                let lines = part.lines.len();
                self.block(&input.name, &part, lines, options);
            }
            return;
        }
        let lines = text.lines.len();
        if let Some((mut series, unread)) = round_trips::column(&text.lines) {
            series.at = format!("{}:1", input.name);
            self.series.push(series);
            let remark = "without a unit, numbers are microseconds".to_owned();
            return self.took(&input.name, 1, lines, InputKind::Column, None, unread, Some(remark));
        }
        self.prose(&input.name, &text.lines);
    }

    /// Text in which nothing was recognised: it may have figures.
    fn prose(&mut self, name: &str, lines: &[String]) {
        let figures = round_trips::figures(lines);
        if figures.is_empty() {
            if !lines.iter().all(String::is_empty) || lines.is_empty() {
                let remark = Some(EXPECTED.to_owned());
                self.took(name, 1, lines.len(), InputKind::Unknown, None, lines.len(), remark);
            }
            return;
        }
        let count = figures.len();
        for mut series in figures {
            series.at = name.to_owned();
            self.series.push(series);
        }
        let remark = Some(format!("{count} of its figures are read as round trips"));
        self.took(name, 1, lines.len(), InputKind::Figures, None, 0, remark);
    }

    #[allow(clippy::too_many_arguments, reason = "they are the fields of what was taken")]
    fn took(
        &mut self,
        input: &str,
        line: usize,
        lines: usize,
        kind: InputKind,
        device: Option<String>,
        not_understood: usize,
        remark: Option<String>,
    ) {
        let input = input.to_owned();
        self.taken.push(Taken { input, line, lines, kind, device, not_understood, remark });
    }

    /// The device of a part: its own, or the one before, or the only one.
    fn device(&mut self, named: Option<String>, options: &Options) -> String {
        let only = || match self.known.len() {
            1 => self.known.keys().next().cloned(),
            _ => None,
        };
        let name = named
            .or_else(|| self.last.clone())
            .or_else(|| options.device.clone())
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

    fn block(&mut self, input: &str, block: &Block, lines: usize, options: &Options) {
        if let Some(value) = json(block) {
            return self.json(input, block, &value, options);
        }
        let Some(kind) = block.kind else { return };
        let at = format!("{input}:{}", block.at);
        if let Some(change) = &block.change {
            return self.change(input, block, change, options);
        }
        let (device, unread) = match kind {
            kind if ethtool::part(kind).is_some()
                || matches!(
                    kind,
                    InputKind::Statistics | InputKind::Pause | InputKind::PrivateFlags
                ) =>
            {
                let name = self.device(block.device.clone(), options);
                let series = self.series.len();
                let known = self.known.entry(name.clone()).or_default();
                let before = rx_usecs(known);
                let unread = ethtool::read(kind, &block.lines, known);
                match (before, rx_usecs(known)) {
                    (Some(before), Some(after)) if before != after && series > 0 => {
                        self.beside.change = Some((before, after));
                        self.beside.before = series;
                    }
                    _ => {}
                }
                (Some(name), unread)
            }
            InputKind::Interrupts if block.lines.iter().any(|it| it.contains("NET_RX:")) => {
                match self.machine.read(kind, &block.lines) {
                    Some(unread) => {
                        let kind = InputKind::Softirqs;
                        return self.took(input, block.at, lines, kind, None, unread, None);
                    }
                    None => return self.nothing(input, block, kind),
                }
            }
            InputKind::Interrupts | InputKind::Softirqs | InputKind::Softnet => {
                match self.machine.read(kind, &block.lines) {
                    Some(unread) => (None, unread),
                    None => return self.nothing(input, block, kind),
                }
            }
            InputKind::IpLink => {
                let known = &mut self.known;
                (
                    None,
                    ip_link(&block.lines, |name, fill| {
                        if name != "lo" {
                            fill(known.entry(name.to_owned()).or_default());
                        }
                    }),
                )
            }
            InputKind::KernelFile => (None, self.kernel_files(block)),
            kind if kind.is_configuration() => {
                return self.configuration(input, block, kind, options);
            }
            kind => match round_trips::read(kind, &block.lines) {
                Some((series, unread)) => {
                    self.series
                        .extend(series.into_iter().map(|one| RoundTrips { at: at.clone(), ..one }));
                    (None, unread)
                }
                None => return self.nothing(input, block, kind),
            },
        };
        self.took(input, block.at, lines, kind, device, unread, None);
    }

    /// A part that begins like its kind, and goes on as something else.
    fn nothing(&mut self, input: &str, block: &Block, kind: InputKind) {
        let lines = block.lines.len();
        let remark = Some("nothing of it is understood".to_owned());
        self.took(input, block.at, lines, kind, None, lines, remark);
    }

    /// A change by `ethtool -C`: round trips after it are others than those before.
    fn change(&mut self, input: &str, block: &Block, change: &Coalesce, options: &Options) {
        let name = self.device(block.device.clone(), options);
        let known = self.known.entry(name.clone()).or_default();
        let before = rx_usecs(known);
        known.change(change);
        let change = before.zip(rx_usecs(known)).filter(|(before, after)| before != after);
        if change.is_some() {
            self.beside.change = change;
            self.beside.before = self.series.len();
        }
        self.took(input, block.at, 1, InputKind::Change, Some(name), 0, None);
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

    fn configuration(&mut self, input: &str, block: &Block, kind: InputKind, options: &Options) {
        let named = block.path.as_deref().unwrap_or(input);
        let lines = block.lines.len();
        let mut remark = None;
        let unread = match kind {
            InputKind::Sysctl => {
                if block.lines.iter().any(|line| line.trim().starts_with("net.core.")) {
                    let name = self.device(None, options);
                    self.known.entry(name).or_default();
                }
                configuration::sysctl(&block.lines, &mut self.tree)
            }
            InputKind::Nmstate | InputKind::Netplan => {
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
                            self.known.entry(device.clone()).or_default();
                            self.nmstate.push((device, format!("{input}:{}", block.at), settings));
                        }
                        0
                    }
                    None => lines,
                }
            }
            kind => {
                if let Some(name) = configuration::device_in(&block.lines) {
                    self.known.entry(name.clone()).or_default();
                    self.last = Some(name);
                } else {
                    let name = self.device(block.device.clone(), options);
                    let known = self.known.entry(name).or_default();
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
        self.took(input, block.at, lines, kind, None, unread, remark);
    }

    fn json(&mut self, input: &str, block: &Block, value: &serde_json::Value, options: &Options) {
        let lines = block.lines.len();
        if ethtool::is_of_ethtool(value) {
            let mut all = Vec::new();
            ethtool::read_json(value, |name, kind, fill| {
                let mut known = KnownDevice::default();
                fill(&mut known);
                all.push((name.to_owned(), kind));
                let named = Some(name.to_owned()).filter(|name| crate::command::is_device(name));
                let name = self.device(named, options);
                fill(self.known.entry(name).or_default());
            });
            for (name, kind) in all {
                let kind = kind.or(block.kind).unwrap_or(InputKind::Unknown);
                self.took(input, block.at, lines, kind, Some(name), 0, None);
            }
            return;
        }
        match round_trips::iperf3(value) {
            Some(series) => {
                self.series.push(RoundTrips { at: format!("{input}:{}", block.at), ..series });
                self.took(input, block.at, lines, InputKind::Iperf3, None, 0, None);
            }
            None => {
                let remark = Some("JSON of neither ethtool nor iperf3".to_owned());
                self.took(input, block.at, lines, InputKind::Unknown, None, lines, remark);
            }
        }
    }

    fn answer(mut self, options: &Options) -> ReadResult {
        if self.copies > 0 {
            let remark = format!("{} of them", self.copies);
            self.took("report", 1, self.copies, InputKind::KernelFile, None, 0, Some(remark));
        }
        for name in self.tree.devices() {
            self.known.entry(name).or_default();
        }
        // What was read before any device was named is of the machine, where it says no more.
        let is_bare = self.known.get(UNNAMED).is_some_and(KnownDevice::is_bare);
        if is_bare && self.known.len() > 1 {
            self.known.remove(UNNAMED);
        }
        if self.known.is_empty() {
            self.devices_of_interrupts(options);
        }
        if let Some(name) = &options.device {
            self.known.retain(|other, _| other == name);
        }
        for known in self.known.values_mut() {
            if let Some(name) = &options.driver {
                known.driver.get_or_insert_with(Driver::default).name.clone_from(name);
            }
        }
        let mut answer =
            ReadResult { taken: self.taken, round_trips: self.series, ..ReadResult::default() };
        for (name, known) in &self.known {
            let mut report = device_report::report(name, known, &self.machine, &self.tree);
            for (device, at, settings) in &self.nmstate {
                if device == name && !settings.is_empty() {
                    report.set_by.push(configuration::by_nmstate(at, settings.clone()));
                }
            }
            answer.settings.extend(configuration::settings(&report));
            answer.between.extend(between(name, known, &self.machine, &self.tree, options));
            answer.notes.extend(known.notes.iter().map(|note| format!("{name}: {note}")));
            answer.notes.extend(shared_cpus(&report));
            answer.devices.push(report);
        }
        answer.notes.extend(self.machine.notes());
        answer.notes.extend(self.notes);
        self.beside.rx_usecs = match self.known.len() {
            1 => self.known.values().next().and_then(rx_usecs),
            _ => None,
        };
        answer.verdict = verdict(&answer.round_trips, self.beside);
        answer
    }

    /// Devices that handlers of interrupts are named after, where nothing else names one.
    fn devices_of_interrupts(&mut self, options: &Options) {
        let named = |one: &Interrupt| {
            let handler = one.handlers.first()?;
            let (name, rest) = handler.split_once('-')?;
            let rest = rest.to_lowercase();
            let is_queue =
                ["tx", "rx", "txrx", "fp-", "queue"].iter().any(|it| rest.starts_with(it));
            (is_queue && crate::command::is_device(name)).then(|| name.to_owned())
        };
        let all = self.machine.interrupts.last().into_iter().flatten();
        for name in all.filter_map(named) {
            self.known.entry(name).or_default();
        }
        if let (true, Some(name)) = (self.known.is_empty(), &options.device) {
            self.known.entry(name.clone()).or_default();
        }
    }
}

/// `rx-usecs` of a device, if a text has it.
fn rx_usecs(known: &KnownDevice) -> Option<u32> {
    known.coalescing.as_ref()?.get(Parameter::RxUsecs)
}

/// The value of JSON that a part is.
fn json(block: &Block) -> Option<serde_json::Value> {
    let first = block.lines.iter().find(|line| !line.is_empty())?;
    if !first.trim_start().starts_with(['[', '{']) || first.trim_start().starts_with("[m") {
        return None;
    }
    serde_json::from_str(&block.lines.join("\n")).ok()
}

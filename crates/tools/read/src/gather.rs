//! Inputs in, an answer out.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use device::ethtool::{Driver, Parameter};
use device::interrupts::Interrupt;
use device::setters::Settings;

use crate::answer::{ReadResult, Taken};
use crate::between::{between, shared_cpus};
use crate::block::Block;
use crate::configuration;
use crate::device_report;
use crate::kind::InputKind;
use crate::known::KnownDevice;
use crate::machine::MachineText;
use crate::place::Place;
use crate::round_trips::{Beside, MOST_SERIES, RoundTrips, verdict};
use crate::text::clean_lines;
use crate::tree::Tree;

/// What a device is called that no text names.
pub(crate) const UNNAMED: &str = "DEV";

/// So many parts are listed; of further ones only what they say is kept.
pub(crate) const MOST_PARTS: usize = 1 << 16;

/// No machine has more devices.
const MOST_DEVICES: usize = 1 << 12;

/// A file, or what was pasted, as a whole.
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
    let mut session = ReadSession::new(options.clone());
    inputs.iter().for_each(|input| session.input(input));
    session.finish()
}

/// Inputs one after the other, of any length: what is kept of them is bounded.
#[derive(Default)]
pub struct ReadSession {
    pub(crate) options: Options,
    pub(crate) known: BTreeMap<String, KnownDevice>,
    pub(crate) machine: MachineText,
    pub(crate) tree: Tree,
    taken: Vec<Taken>,
    /// Parts that are not listed.
    unlisted: usize,
    pub(crate) series: Vec<RoundTrips>,
    /// Series for which there was no room.
    more_series: usize,
    /// Where the series of the part that was read last begin.
    series_of_part: usize,
    pub(crate) beside: Beside,
    /// What nmstate sets, with the device and the place.
    pub(crate) nmstate: Vec<(String, String, Settings)>,
    notes: Vec<String>,
    /// Copies of files in reports.
    copies: usize,
    /// The device that was named last in this input.
    pub(crate) last: Option<String>,
    /// What is said of devices for which there was no room.
    scrap: KnownDevice,
}

impl ReadSession {
    /// Nothing is read yet.
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Reads an input.
    pub fn input(&mut self, input: &Input) {
        self.last = None;
        if input.left_off > 0 {
            self.notes.push(format!("{}: {} bytes were left out", input.name, input.left_off));
        }
        if input.is_of_report {
            match Place::of(&input.name) {
                Place::File(path) => {
                    self.copies += 1;
                    return self.tree.add(&path, input.bytes.clone());
                }
                Place::Output(typed) => {
                    let lines = clean_lines(&input.bytes);
                    let block = Block::whole(typed.kind, typed.device, lines);
                    self.block(&input.name, &block);
                    return;
                }
                Place::Sections => {}
                Place::Other => return,
            }
        }
        let whole = InputKind::of_path(&input.name).filter(|_| !input.is_of_report);
        let Ok(()) = self.text(&input.name, whole, &input.bytes[..]) else {
            unreachable!("bytes in memory are always read");
        };
    }

    /// Reads a paste, a log or a file of any length, some megabytes at a time.
    ///
    /// # Errors
    /// If the stream cannot be read.
    pub fn stream(&mut self, name: &str, stream: impl BufRead) -> io::Result<()> {
        self.last = None;
        self.text(name, InputKind::of_path(name), stream)
    }

    pub(crate) fn capture(&mut self, name: &str) {
        let next = report::shell::quoted(name);
        let remark = format!("what settings would do to its packets: earmark predict {next}");
        self.took(Taken { remark: Some(remark), ..taken(name, 1, InputKind::Capture) });
    }

    pub(crate) fn took(&mut self, taken: Taken) {
        if self.taken.len() < MOST_PARTS {
            self.taken.push(taken);
        } else {
            self.unlisted += 1;
        }
    }

    /// A part was read; what goes on with the one before is the same part.
    pub(crate) fn took_part(&mut self, block: &Block, part: Taken) {
        match self.taken.last_mut().filter(|_| block.is_continued) {
            Some(last) if (last.line, last.kind) == (part.line, part.kind) => {
                last.lines += part.lines;
                last.not_understood += part.not_understood;
            }
            Some(_) => {}
            None => self.took(part),
        }
    }

    /// What is known of a device.
    pub(crate) fn known(&mut self, name: &str) -> &mut KnownDevice {
        if self.known.len() >= MOST_DEVICES && !self.known.contains_key(name) {
            return &mut self.scrap;
        }
        self.known.entry(name.to_owned()).or_default()
    }

    /// Adds series of a part, or what the next piece of it says of them.
    pub(crate) fn add_series(&mut self, block: &Block, at: &str, series: Vec<RoundTrips>) {
        if !block.is_continued {
            self.series_of_part = self.series.len();
        }
        for one in series {
            // A run of ping is one series, and only its first piece names the host.
            let is_one = block.kind == Some(InputKind::Ping);
            let is_same = |it: &RoundTrips| is_one || it.source == one.source;
            let mut its = self.series.iter_mut().skip(self.series_of_part);
            match its.find(|it| block.is_continued && is_same(it)) {
                Some(before) => before.absorb(one),
                None => self.add_one_series(RoundTrips { at: at.to_owned(), ..one }),
            }
        }
    }

    pub(crate) fn add_one_series(&mut self, series: RoundTrips) {
        if self.series.len() < MOST_SERIES {
            self.series.push(series);
        } else {
            self.more_series += 1;
        }
    }

    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// What all of them say.
    pub fn finish(mut self) -> ReadResult {
        if self.copies > 0 {
            let remark = Some(format!("{} of them", self.copies));
            let part = taken("report", 1, InputKind::KernelFile);
            self.took(Taken { lines: self.copies, remark, ..part });
        }
        for name in self.tree.devices() {
            self.known(&name);
        }
        // What was read before any device was named is of the machine, where it says no more.
        let is_bare = self.known.get(UNNAMED).is_some_and(KnownDevice::is_bare);
        if is_bare && self.known.len() > 1 {
            self.known.remove(UNNAMED);
        }
        if self.known.is_empty() {
            self.devices_of_interrupts();
        }
        if let Some(name) = &self.options.device {
            self.known.retain(|other, _| other == name);
        }
        for known in self.known.values_mut() {
            known.settle_queues();
            if let Some(name) = &self.options.driver {
                known.driver.get_or_insert_with(Driver::default).name.clone_from(name);
            }
        }
        let left_out = self.left_out();
        let round_trips = self.series.into_iter().filter_map(RoundTrips::complete).collect();
        let mut answer = ReadResult { taken: self.taken, round_trips, ..ReadResult::default() };
        for (name, known) in &self.known {
            let mut report = device_report::report(name, known, &self.machine, &self.tree);
            for (device, at, settings) in &self.nmstate {
                if device == name && !settings.is_empty() {
                    report.set_by.push(configuration::by_nmstate(at, settings.clone()));
                }
            }
            answer.settings.extend(configuration::settings(&report));
            answer.between.extend(between(name, known, &self.machine, &self.tree, &self.options));
            answer.notes.extend(known.notes.iter().map(|note| format!("{name}: {note}")));
            answer.notes.extend(shared_cpus(&report));
            answer.devices.push(report);
        }
        answer.notes.extend(self.machine.notes());
        answer.notes.extend(self.notes);
        answer.notes.extend(left_out);
        self.beside.rx_usecs = match self.known.len() {
            1 => self.known.values().next().and_then(rx_usecs),
            _ => None,
        };
        answer.verdict = verdict(&answer.round_trips, self.beside);
        answer
    }

    /// What there was no room for.
    fn left_out(&self) -> Vec<String> {
        let kinds = [
            (self.unlisted, "part", "read, and not listed"),
            (self.more_series, "run of round trips", "left out"),
            (self.tree.left_out, "file", "left out"),
        ];
        let some = kinds.into_iter().filter(|(count, ..)| *count > 0);
        some.map(|(count, what, how)| format!("{} more: {how}", show::count(count, what))).collect()
    }

    /// Devices that handlers of interrupts are named after, where nothing else names one.
    fn devices_of_interrupts(&mut self) {
        let named = |one: &Interrupt| {
            let handler = one.handlers.first()?;
            let (name, rest) = handler.split_once('-')?;
            let rest = rest.to_lowercase();
            let is_queue =
                ["tx", "rx", "txrx", "fp-", "queue"].iter().any(|it| rest.starts_with(it));
            (is_queue && crate::command::is_device(name)).then(|| name.to_owned())
        };
        let all = self.machine.interrupts.last().into_iter().flatten();
        for name in all.filter_map(named).take(MOST_DEVICES) {
            self.known.entry(name).or_default();
        }
        if let (true, Some(name)) = (self.known.is_empty(), &self.options.device) {
            self.known.entry(name.clone()).or_default();
        }
    }
}

/// A part of an input, of which all lines are understood so far.
pub(crate) fn taken(input: &str, line: usize, kind: InputKind) -> Taken {
    let input = input.to_owned();
    Taken { input, line, kind, lines: 0, device: None, not_understood: 0, remark: None }
}

/// `rx-usecs` of a device, if a text has it.
pub(crate) fn rx_usecs(known: &KnownDevice) -> Option<u32> {
    known.coalescing.as_ref()?.get(Parameter::RxUsecs)
}

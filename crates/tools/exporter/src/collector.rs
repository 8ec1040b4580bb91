//! Reads all devices, again and again.

use std::collections::BTreeMap;
use std::fmt::Arguments;
use std::io::ErrorKind;
use std::time::{Duration, Instant};

use anyhow::Result;
use netdev::deferral::read_deferral;
use netdev::ethtool::Ethtool;
use netdev::frequency::online_cpus;
use netdev::idle::{Idle, read_idle};
use netdev::interrupts::{Affinity, Interrupt, of_device, read_interrupts};
use netdev::netdev::Netdev;
use netdev::steering::read_steering;
use netdev::virtualisation::{Virtualisation, read_virtualisation};
use netdev::{DeviceError, Root, illegible_devices};
use show::Report;
use sys::netlink::{Netlink, NetlinkError};

use crate::background::Background;
use crate::interrupts::InterruptCounter;
use crate::metric::Metric;
use crate::process;
use crate::reading::Reading;
use crate::sample::Sample;
use crate::select::Selection;

/// More devices than this are not read: with 50 series each, more than a scrape should have.
const MAX_DEVICES: usize = 256;

/// How often idle states are read anew: the same for all devices, and many files.
const MACHINE_EVERY: Duration = Duration::from_secs(60);

/// Reads the devices in the network of the thread that opened it.
#[derive(Debug)]
pub struct Collector {
    root: Root,
    ethtool: Ethtool,
    netdev: Option<Netdev>,
    netlink: Netlink,
    selection: Selection,
    report: fn(Arguments<'_>),
    more: fn() -> Vec<Sample>,
    machine: Option<Machine>,
    known: BTreeMap<String, Known>,
    collections: u64,
    background: Background,
}

#[derive(Debug)]
struct Machine {
    read: Instant,
    idle: Idle,
    virtualisation: Virtualisation,
}

/// What is remembered of a device from one reading to the next, until it goes away.
#[derive(Debug, Default)]
struct Known {
    /// Another device of the same name has another one.
    ifindex: u32,
    interrupts: InterruptCounter,
    errors: u64,
}

impl Collector {
    /// Prepares to read. `report` prints a line: what could not be read, once for each device.
    pub fn open(selection: Selection, report: fn(Arguments<'_>)) -> Result<Self> {
        let root = Root::here();
        if !root.is_of_network() {
            report(format_args!(
                "/sys shows the devices of another network namespace, so interrupts, deferral and \
                 steering are missing; run it as root, to mount sysfs for this one"
            ));
        }
        Ok(Self {
            root,
            ethtool: Ethtool::open()?,
            // Before Linux 6.3 there is none.
            netdev: Netdev::open().ok(),
            netlink: Netlink::open()?,
            selection,
            report,
            more: Vec::new,
            machine: None,
            known: BTreeMap::new(),
            collections: 0,
            background: Background::default(),
        })
    }

    /// Collects what `more` says with the devices, each time.
    pub fn with(self, more: fn() -> Vec<Sample>) -> Self {
        Self { more, ..self }
    }

    /// Where measurements in the background put what they find, to be collected with the devices.
    pub fn background(&self) -> Background {
        self.background.clone()
    }

    /// The devices that would be read now, by name.
    pub fn devices(&self) -> Result<Vec<String>> {
        self.selection.devices(&self.root)
    }

    /// Reads all devices. One that cannot be read, or goes away meanwhile, is left out.
    pub fn collect(&mut self) -> Result<Vec<Sample>> {
        let background = self.background();
        let _reading = background.reading();
        let start = Instant::now();
        let mut devices = self.devices()?;
        let too_many = devices.len().saturating_sub(MAX_DEVICES);
        devices.truncate(MAX_DEVICES);
        self.known.retain(|name, _| devices.contains(name));
        let interrupts = read_interrupts(&self.root);
        self.look_at_machine();
        let (mut samples, mut read) = (Vec::new(), 0_u64);
        for name in &devices {
            let Some(reading) = self.read(name, interrupts.as_deref().ok()) else {
                self.known.remove(name);
                continue;
            };
            samples.extend(reading.samples(name));
            read += 1;
        }
        self.collections += 1;
        samples.push(Sample::new(Metric::Devices, &[], read));
        samples.push(Sample::new(Metric::DevicesLeftOut, &["too-many"], too_many as u64));
        let illegible = illegible_devices(&self.root).map_or(0, |names| names.len());
        samples.push(Sample::new(Metric::DevicesLeftOut, &["no-utf-8"], illegible as u64));
        samples.push(Sample::new(Metric::Collections, &[], self.collections));
        let duration = start.elapsed().as_secs_f64();
        samples.push(Sample::new(Metric::CollectDuration, &[], duration));
        samples.extend((self.more)());
        samples.extend(background.samples());
        samples.extend(process::samples());
        Ok(samples)
    }

    fn look_at_machine(&mut self) {
        if self.machine.as_ref().is_some_and(|it| it.read.elapsed() < MACHINE_EVERY) {
            return;
        }
        let idle = read_idle(&self.root, &online_cpus(&self.root));
        let virtualisation = read_virtualisation(&self.root);
        self.machine = Some(Machine { read: Instant::now(), idle, virtualisation });
    }

    /// Reads one device; `None` if it has gone.
    fn read(&mut self, name: &str, interrupts: Option<&[Interrupt]>) -> Option<Reading> {
        let link = match self.netlink.link(name) {
            Ok(link) => link,
            Err(error) if is_gone(&error) => return None,
            Err(error) => {
                self.count_errors(name, &[error.to_string()]);
                let errors = self.known.get(name)?.errors;
                return Some(Reading { errors, ..Reading::default() });
            }
        };
        if self.known.get(name).is_none_or(|known| known.ifindex != link.index) {
            self.known.insert(name.to_owned(), Known { ifindex: link.index, ..Known::default() });
        }
        let mut notes = Notes::default();
        let report = self.settings(name, interrupts, &mut notes);
        // A device that has just gone has no driver that answers.
        if !notes.0.is_empty() && self.netlink.link(name).is_err_and(|error| is_gone(&error)) {
            return None;
        }
        self.count_errors(name, &notes.0);
        let known = self.known.get_mut(name)?;
        let vectors = report.files.interrupts.iter().map(|(one, _)| one.clone());
        known.interrupts.add(&vectors.collect::<Vec<_>>());
        let counter = &known.interrupts;
        let interrupts = (!counter.is_empty()).then_some((counter.total, counter.receiving));
        Some(Reading { report, link: link.stats, interrupts, errors: known.errors })
    }

    /// The settings of a device: of what `earmark show` reads, that which is exported.
    fn settings(&self, name: &str, interrupts: Option<&[Interrupt]>, notes: &mut Notes) -> Report {
        let mut report = Report { name: name.to_owned(), ..Report::default() };
        report.driver = notes.take(self.ethtool.driver(name));
        report.features = notes.take(self.ethtool.features(name));
        report.coalescing = notes.take(self.ethtool.coalesce(name));
        report.channels = notes.take(self.ethtool.channels(name));
        let queues = report.channels.map_or(0, |channels| channels.receiving());
        if report.coalescing.is_some() && queues > 1 {
            // Few drivers have it, and those without it refuse in many ways.
            let of_queues = self.ethtool.queue_coalesce(name, queues);
            report.queue_coalescing = of_queues.unwrap_or_default();
        }
        report.napis = self.netdev.as_ref().and_then(|it| notes.take(it.napis(name)));
        let files = &mut report.files;
        if let Some(machine) = &self.machine {
            files.idle = machine.idle.clone();
            files.virtualisation = machine.virtualisation.clone();
        }
        if self.root.has(&format!("sys/class/net/{name}")) {
            let link = |file: &str| self.root.link_name(&format!("sys/class/net/{name}/{file}"));
            (files.driver, files.bus) = (link("device/driver"), link("device/subsystem"));
            files.deferral = notes.take(read_deferral(&self.root, name)).unwrap_or_default();
            files.steering = notes.take(read_steering(&self.root, name)).unwrap_or_default();
            let its = interrupts.map(|all| of_device(&self.root, name, all));
            let its = its.and_then(|its| notes.take(its)).unwrap_or_default();
            files.interrupts = its.into_iter().map(|one| (one, Affinity::default())).collect();
        }
        report
    }

    /// Counts what could not be read of a device, and reports it the first time.
    fn count_errors(&mut self, name: &str, notes: &[String]) {
        let known = self.known.entry(name.to_owned()).or_default();
        if let (0, Some(first)) = (known.errors, notes.first()) {
            (self.report)(format_args!("{name}: {first}; further errors are counted only"));
        }
        known.errors = known.errors.saturating_add(notes.len() as u64);
    }
}

fn is_gone(error: &NetlinkError) -> bool {
    let NetlinkError::Request { cause, .. } = error else { return false };
    cause.kind() == ErrorKind::NotFound || cause.raw_os_error() == Some(libc::ENODEV)
}

#[derive(Debug, Default)]
struct Notes(Vec<String>);

impl Notes {
    /// The value, or a note of why there is none. What a driver does not have is no error.
    fn take<T>(&mut self, outcome: Result<T, DeviceError>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                if !error.is_unsupported() {
                    self.0.push(error.to_string());
                }
                None
            }
        }
    }
}

//! A device, read in one pass.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use netdev::ethtool::{Ethtool, differing_queues};
use netdev::interrupts::{Interrupt, irqbalance, of_device, read_interrupts};
use netdev::netdev::Netdev;
use netdev::setters::{Setter, Setters, read_setters, read_traits};
use netdev::{DeviceError, DeviceFiles, Root, list_devices, read_device, read_machine};
use report::names::no_device;
use sys::files::Tree;

use super::lanes::Source;
use show::{FILES, Report, Unreadable, count, crowded_cpu, vectors};

/// The devices of this network that look like NICs: those on a bus, or else all but the loopback.
pub fn nics(root: &Root) -> Result<Vec<String>> {
    let all = list_devices(root)?;
    let is_readable = root.is_of_network();
    let on_bus = |name: &&String| is_readable && root.has(&format!("sys/class/net/{name}/device"));
    let nics: Vec<String> = all.iter().filter(on_bus).cloned().collect();
    if !nics.is_empty() {
        return Ok(nics);
    }
    Ok(all.into_iter().filter(|name| name != "lo").collect())
}

/// Reads a device. Its interrupts are counted over `sample`; if that is no time, they are not.
pub fn read(root: &Root, name: &str, sample: Duration) -> Result<Report> {
    let ethtool = Ethtool::open()?;
    if ethtool.features(name).is_err_and(|error| error.is_no_device()) {
        bail!("{}", no_device(name, &list_devices(root).unwrap_or_default()));
    }
    let mut notes = Notes::default();
    let files = notes.files(root, name);
    let coalescing = notes.take("coalescing", ethtool.coalesce(name));
    let channels = notes.take("channels", ethtool.channels(name));
    let queue_coalescing = match (&coalescing, channels) {
        (Some(whole), Some(channels)) if channels.receiving() > 1 => {
            let of_queues = ethtool.queue_coalesce(name, channels.receiving());
            differing_queues(of_queues.unwrap_or_default(), whole)
        }
        _ => Vec::new(),
    };
    let netdev = notes.take("NAPI instances", Netdev::open());
    let napis = netdev.as_ref().and_then(|it| notes.take("NAPI instances", it.napis(name)));
    let queues = netdev.as_ref().and_then(|it| notes.take("queues", it.queues(name)));
    let lanes = notes.take("rules", Source::read(&ethtool, netdev.as_ref(), name));
    let lanes = lanes.unwrap_or_default().lanes(coalescing.as_ref(), &queue_coalescing);
    let set_by = notes.setters(root, name);
    let mut report = Report {
        name: name.to_owned(),
        delays: Vec::new(),
        driver: notes.take("driver", ethtool.driver(name)),
        link: notes.take("link", ethtool.link(name)),
        eee: notes.take("EEE", ethtool.eee(name)),
        coalescing,
        queue_coalescing,
        set_by,
        lanes,
        rings: notes.take("rings", ethtool.rings(name)),
        channels,
        features: notes.take("features", ethtool.features(name)),
        timestamps: notes.take("timestamps", ethtool.timestamps(name)),
        napis,
        queues,
        interrupts: Vec::new(),
        crowded_cpu: crowded_cpu(&files.interrupts),
        irqbalance: irqbalance(root),
        files,
        lab: None,
        unreadable: notes.0,
    };
    if let Err(error) = read_interrupts(root) {
        report.unreadable.push(Unreadable { what: "interrupts", why: why(&error) });
    }
    let rates = rates(&report, root, sample);
    report.interrupts = vectors(&report.files.interrupts, rates.as_deref());
    Ok(report.with_delays())
}

/// How often each interrupt comes in a second.
fn rates(report: &Report, root: &Root, sample: Duration) -> Option<Vec<f64>> {
    if report.files.interrupts.is_empty() || sample.is_zero() {
        return None;
    }
    let count = || of_device(root, &report.name, &read_interrupts(root).ok()?).ok();
    let (before, start) = (count()?, Instant::now());
    sleep(sample);
    let (after, seconds) = (count()?, start.elapsed().as_secs_f64());
    let rate = |number: u32| {
        let total = |all: &[Interrupt]| {
            all.iter().find(|one| one.number == number).map_or(0, Interrupt::total)
        };
        total(&after).saturating_sub(total(&before)) as f64 / seconds
    };
    Some(report.files.interrupts.iter().map(|(one, _)| rate(one.number)).collect())
}

/// What could not be read so far.
#[derive(Default)]
struct Notes(Vec<Unreadable>);

impl Notes {
    /// What files say of a device; of the machine alone, and a note, if they are of another
    /// network.
    fn files(&mut self, root: &Root, name: &str) -> DeviceFiles {
        let why = if root.is_of_network() {
            match read_device(root, name) {
                Ok(files) => return files,
                Err(error) => why(&error),
            }
        } else {
            "/sys shows the devices of another network namespace; needs root, to mount sysfs for \
             this one"
                .into()
        };
        self.0.push(Unreadable { what: FILES, why });
        read_machine(root)
    }

    fn setters(&mut self, root: &Root, name: &str) -> Vec<Setter> {
        let Setters { found, unread } = read_setters(&Tree::at("/"), &read_traits(root, name));
        if let Some(first) = unread.first() {
            let needs = if first.is_denied { "needs root: " } else { "" };
            let others = match unread.len() - 1 {
                0 => String::new(),
                others => format!(", and {}", count(others, "other")),
            };
            let why = format!("{needs}{}: {}{others}", first.path.display(), first.why);
            self.0.push(Unreadable { what: "what sets it at boot", why });
        }
        found
    }

    /// The value, or a note of why there is none. What a driver does not have is no secret.
    fn take<T>(&mut self, what: &'static str, outcome: Result<T, DeviceError>) -> Option<T> {
        match outcome {
            Ok(value) => Some(value),
            Err(error) => {
                if !error.is_unsupported() {
                    self.0.push(Unreadable { what, why: why(&error) });
                }
                None
            }
        }
    }
}

fn why(error: &DeviceError) -> String {
    if error.is_denied() { format!("needs root: {error}") } else { error.to_string() }
}

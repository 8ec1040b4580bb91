//! The report of a device, as `show` has it, from what text and files say.

use device::cpus::parse_list;
use device::interrupts::{Affinity, Interrupt, of_device};
use device::kernel::{KernelFiles, directory_of};
use device::setters::{Setters, Traits, read_setters};
use device::{DeviceFiles, read_device};
use report::terminal::NOT_HERE;
use show::{Report, Unreadable, crowded_cpu, part, vectors};

use crate::known::KnownDevice;
use crate::machine::MachineText;
use crate::tree::Tree;

/// A device as `show` has it.
pub(crate) fn report(
    name: &str,
    known: &KnownDevice,
    machine: &MachineText,
    tree: &Tree,
) -> Report {
    let mut files = read_device(tree, name).unwrap_or_default();
    let driver = known.driver.as_ref().map(|driver| driver.name.clone());
    files.driver = files.driver.take().or_else(|| driver.clone());
    files.bus = files.bus.take().or_else(|| bus_of(known));
    files.mtu = files.mtu.or(known.mtu);
    files.state = files.state.take().or_else(|| known.state.clone());
    if let Some(softnet) = machine.softnet.last() {
        files.softnet.clone_from(softnet);
    }
    if let Some(all) = machine.interrupts.last() {
        files.interrupts = interrupts(name, known, all, tree);
    }
    let traits =
        Traits { name: name.to_owned(), driver, address: address(tree, name), number: None };
    let Setters { found, .. } = read_setters(tree, &traits);
    let mut report = Report {
        name: name.to_owned(),
        driver: known.driver.clone(),
        link: known.link,
        eee: known.eee,
        coalescing: known.coalescing.clone(),
        queue_coalescing: known.queue_coalescing.clone(),
        set_by: found,
        rings: known.rings,
        channels: known.channels,
        features: known.features.clone(),
        timestamps: known.timestamps.clone(),
        interrupts: vectors(&files.interrupts, None),
        crowded_cpu: crowded_cpu(&files.interrupts),
        unreadable: Vec::new(),
        files,
        ..Report::default()
    };
    report.unreadable = missing(&report, known, tree);
    report.with_delays()
}

fn address(tree: &Tree, name: &str) -> Option<String> {
    tree.word(&format!("{}/address", directory_of(name)?))
}

/// The bus that the place or the driver of a device is of.
fn bus_of(known: &KnownDevice) -> Option<String> {
    let driver = known.driver.as_ref()?;
    let parts: Vec<&str> = driver.bus.split(':').collect();
    let bus = match (driver.name.as_str(), &parts[..]) {
        ("virtio_net", _) => "virtio",
        ("hv_netvsc", _) => "vmbus",
        ("xen_netfront", _) => "xen",
        (_, [domain, _, function]) if domain.len() == 4 && function.contains('.') => "pci",
        (_, [first, ..]) if first.starts_with("usb-") => "usb",
        _ => return None,
    };
    Some(bus.into())
}

/// The interrupts of a device: those that files, its name or its place name.
pub(crate) fn interrupts(
    name: &str,
    known: &KnownDevice,
    all: &[Interrupt],
    tree: &Tree,
) -> Vec<(Interrupt, Affinity)> {
    let directory = directory_of(name).unwrap_or_default();
    let mut its = of_device(tree, name, &directory, all);
    let bus = known.driver.as_ref().map(|driver| driver.bus.as_str()).unwrap_or_default();
    if its.is_empty() && bus.len() > 3 && bus != "N/A" {
        its = all.iter().filter(|one| one.is_named(bus)).cloned().collect();
    }
    if its.is_empty() && known.driver.as_ref().is_some_and(|it| it.name == "virtio_net") {
        its = of_only_virtio(all);
    }
    let affinity = |number: u32| {
        let list = |file| parse_list(&tree.word(&format!("proc/irq/{number}/{file}"))?);
        Affinity { allowed: list("smp_affinity_list"), effective: list("effective_affinity_list") }
    };
    its.into_iter().map(|one| (affinity(one.number), one)).map(|(a, one)| (one, a)).collect()
}

/// Those of the one virtio device that has queues for packets: its number is not that of the NIC.
fn of_only_virtio(all: &[Interrupt]) -> Vec<Interrupt> {
    let device = |one: &Interrupt| {
        let handler = one.handlers.iter().find(|name| name.starts_with("virtio"))?;
        handler.split('-').next().map(str::to_owned)
    };
    let has_input = |one: &&Interrupt| one.handlers.iter().any(|name| name.contains("-input."));
    let mut devices: Vec<String> = all.iter().filter(has_input).filter_map(device).collect();
    devices.dedup();
    let [only] = &devices[..] else { return Vec::new() };
    all.iter().filter(|one| device(one).as_ref() == Some(only)).cloned().collect()
}

/// What was not in what was read, with the command that says it.
fn missing(report: &Report, known: &KnownDevice, tree: &Tree) -> Vec<Unreadable> {
    let name = &report.name;
    let DeviceFiles { interrupts, .. } = &report.files;
    let file = |path: &str| tree.has(path);
    let of_device = |path: &str| tree.has(&format!("sys/class/net/{name}/{path}"));
    let is_idle_known =
        file("sys/devices/system/cpu/cpuidle") || file("sys/devices/system/cpu/cpu0/cpuidle");
    let is_interrupt_known = !interrupts.is_empty();
    let all: [(&'static str, bool, String); 14] = [
        (part::DRIVER, report.driver_name() != "no driver", format!("ethtool -i {name}")),
        (part::COALESCING, known.coalescing.is_some(), format!("ethtool -c {name}")),
        (part::BUS, report.files.bus.is_some(), format!("ethtool -i {name}")),
        ("EEE", known.eee.is_some(), format!("ethtool --show-eee {name}")),
        ("features", known.features.is_some(), format!("ethtool -k {name}")),
        (
            part::DEFERRAL,
            of_device("gro_flush_timeout"),
            format!(
                "grep . /sys/class/net/{name}/{{gro_flush_timeout,napi_defer_hard_irqs,threaded}}"
            ),
        ),
        (part::PROCESSORS, is_idle_known, "grep -r . /sys/devices/system/cpu/cpu*/cpuidle".into()),
        (
            part::INTERRUPTS,
            is_interrupt_known,
            "cat /proc/interrupts; grep . /proc/irq/*/*affinity_list".into(),
        ),
        ("link", report.speed_mbps().is_some() || known.link.is_some(), format!("ethtool {name}")),
        ("channels", known.channels.is_some(), format!("ethtool -l {name}")),
        ("rings", known.rings.is_some(), format!("ethtool -g {name}")),
        (
            part::STEERING,
            of_device("queues"),
            format!("grep . /sys/class/net/{name}/queues/*/*ps_*"),
        ),
        (
            part::BUSY_POLLING,
            file("proc/sys/net/core/busy_poll"),
            "sysctl net.core.busy_poll net.core.busy_read".into(),
        ),
        (part::MACHINE, file("proc/cpuinfo") || file("sys/hypervisor"), "cat /proc/cpuinfo".into()),
    ];
    let is_missing = |(what, is_known, _): &(&'static str, bool, String)| {
        !is_known && !known.lacks.contains(what)
    };
    let entry = |(what, _, command)| Unreadable { what, why: format!("{NOT_HERE}{command}") };
    all.into_iter().filter(is_missing).map(entry).collect()
}

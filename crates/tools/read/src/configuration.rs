//! Files of programs that configure devices: where each belongs in a machine, and what its settings
//! mean for the driver.

use device::drivers::meaning;
use device::ethtool::{Coalesce, Parameter};
use device::setters::{Program, Setter, Settings, same};
use saphyr::{LoadableYamlNode, Yaml};
use show::Report;

use crate::answer::FileSetting;
use crate::kind::InputKind;
use crate::tree::Tree;

/// No file of YAML is longer; others have bounds of their own.
const LONGEST_YAML: usize = 1 << 18;

/// Where TuneD has the profile that was pasted.
const PASTED: &str = "pasted";

/// Puts a file where its program reads it; `name` is its own, or that of the input.
pub(crate) fn place(kind: InputKind, name: &str, lines: &[String], tree: &mut Tree) {
    let text = lines.join("\n");
    let plain: String = name
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' })
        .collect();
    let plain = if plain.is_empty() || plain == "-" { "pasted".to_owned() } else { plain };
    let with = |end: &str| match plain.ends_with(end) {
        true => plain.clone(),
        false => format!("{plain}{end}"),
    };
    let path = match kind {
        InputKind::Tuned => {
            tree.add("etc/tuned/active_profile", PASTED.into());
            format!("etc/tuned/{PASTED}/tuned.conf")
        }
        InputKind::NetworkManager => {
            format!("etc/NetworkManager/system-connections/{}", with(".nmconnection"))
        }
        InputKind::Link => format!("etc/systemd/network/{}", with(".link")),
        InputKind::Udev => format!("etc/udev/rules.d/{}", with(".rules")),
        InputKind::Modprobe => format!("etc/modprobe.d/{}", with(".conf")),
        InputKind::Ifupdown => "etc/network/interfaces".into(),
        _ => return,
    };
    tree.add(&path, text.into_bytes());
}

/// Puts the settings of sysctl where the kernel shows them; how many there are.
pub(crate) fn sysctl(lines: &[String], tree: &mut Tree) -> usize {
    let mut unread = 0;
    for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
        let pair = line.trim_start_matches('-').split_once('=');
        match pair.map(|(name, value)| (name.trim(), value.trim())) {
            Some((name, value)) if !name.contains(char::is_whitespace) => {
                if name.starts_with("net.core.") {
                    let path = format!("proc/sys/{}", name.replace('.', "/"));
                    tree.add(&path, value.as_bytes().to_vec());
                }
            }
            _ => unread += usize::from(!line.starts_with(['#', ';'])),
        }
    }
    unread
}

/// What a state of nmstate, or a file of netplan, sets of each device. `None`: it is no YAML.
pub(crate) fn yaml(kind: InputKind, lines: &[String]) -> Option<Vec<(String, Settings)>> {
    let text = lines.join("\n");
    if text.len() > LONGEST_YAML {
        return None;
    }
    let documents = Yaml::load_from_str(&text).ok()?;
    let mut found = Vec::new();
    for document in &documents {
        match kind {
            InputKind::Nmstate => found.extend(nmstate(document)),
            _ => found.extend(netplan(document)),
        }
    }
    Some(found)
}

fn scalar(value: &Yaml<'_>) -> Option<String> {
    let number = value.as_integer().map(|number| number.to_string());
    let switch = value.as_bool().map(|is_on| if is_on { "on" } else { "off" }.to_owned());
    number.or(switch).or_else(|| value.as_str().map(str::to_owned))
}

fn nmstate(document: &Yaml<'_>) -> Vec<(String, Settings)> {
    let state = document.as_mapping_get("desiredState").unwrap_or(document);
    let interfaces = state.as_mapping_get("interfaces").and_then(Yaml::as_sequence);
    let one = |interface: &Yaml<'_>| {
        let name = interface.as_mapping_get("name").and_then(scalar)?;
        let coalesce = interface.as_mapping_get("ethtool")?.as_mapping_get("coalesce")?;
        let pairs = coalesce.as_mapping()?.iter();
        let settings = pairs.filter_map(|(key, value)| {
            let parameter: Parameter = key.as_str()?.parse().ok()?;
            Some((parameter.name().to_owned(), scalar(value)?))
        });
        Some((name, settings.collect()))
    };
    interfaces.into_iter().flatten().filter_map(one).collect()
}

/// netplan has no key for coalescing; devices are named without settings.
fn netplan(document: &Yaml<'_>) -> Vec<(String, Settings)> {
    let network = document.as_mapping_get("network");
    let kinds = network.and_then(Yaml::as_mapping).into_iter().flatten();
    let devices = kinds.filter_map(|(kind, value)| {
        let is_of_devices = matches!(kind.as_str()?, "ethernets" | "bonds" | "bridges" | "vlans");
        is_of_devices.then(|| value.as_mapping()).flatten()
    });
    let names = devices.flatten().filter_map(|(name, _)| scalar(name));
    names.map(|name| (name, Settings::new())).collect()
}

/// What nmstate makes of its state: a profile of NetworkManager.
pub(crate) fn by_nmstate(at: &str, settings: Settings) -> Setter {
    Setter {
        by: Program::NetworkManager,
        path: format!("nmstate, {at}"),
        settings,
        is_certain: true,
        overridden: Vec::new(),
        contested: Vec::new(),
    }
}

/// The driver that the options of a file are for, if all are for one.
pub(crate) fn driver_in(lines: &[String]) -> Option<String> {
    let names = lines.iter().filter_map(|line| line.trim().strip_prefix("options "));
    let mut names: Vec<&str> = names.filter_map(|rest| rest.split_whitespace().next()).collect();
    names.dedup();
    match names[..] {
        [only] => Some(only.to_owned()),
        _ => None,
    }
}

/// The device that a file is for, if it names one outright.
pub(crate) fn device_in(lines: &[String]) -> Option<String> {
    const KEYS: [&str; 8] = [
        "devices=",
        "interface-name=",
        "OriginalName=",
        "Name=",
        "NAME==",
        "KERNEL==",
        "iface ",
        "ENV{INTERFACE}==",
    ];
    let named = |line: &String| {
        KEYS.iter().find_map(|key| {
            let (_, rest) = line
                .replace(" = ", "=")
                .split_once(key)
                .map(|(a, b)| (a.to_owned(), b.to_owned()))?;
            let word = rest.trim_start_matches('"').split(['"', ',', ' ', ';']).next()?.to_owned();
            let is_plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
            (is_plain && crate::command::is_device(&word) && word != "lo").then_some(word)
        })
    };
    lines.iter().find_map(named)
}

/// Each setting of the files of a device, what it means for its driver, and what overrides it.
pub(crate) fn settings(report: &Report) -> Vec<FileSetting> {
    let driver = report.called_driver();
    let mut found = Vec::new();
    for (at, setter) in report.set_by.iter().enumerate() {
        let all = as_coalesce(&setter.settings, report.coalescing.as_ref());
        for (name, value) in &setter.settings {
            let parameter: Option<Parameter> = name.parse().ok();
            let means = match parameter {
                Some(parameter) => {
                    all.get(parameter).and_then(|number| meaning(driver, &all, parameter, number))
                }
                None => option(driver, name, value),
            };
            let sets = |other: &&Setter| {
                other.is_certain && other.settings.keys().any(|its| same(its) == same(name))
            };
            let later = report.set_by[at + 1..].iter().find(sets);
            let overridden_by =
                later.filter(|_| setter.overridden.contains(name)).map(|it| it.path.clone());
            let other =
                report.set_by.iter().enumerate().find(|(place, it)| *place != at && sets(it));
            let contested_by =
                other.filter(|_| setter.contested.contains(name)).map(|(_, it)| it.path.clone());
            found.push(FileSetting {
                device: report.name.clone(),
                by: setter.by.name().to_owned(),
                path: setter.path.clone(),
                name: name.clone(),
                value: value.clone(),
                means,
                is_certain: setter.is_certain,
                overridden_by,
                contested_by,
            });
        }
    }
    found
}

/// Settings of a file over those in force.
pub(crate) fn as_coalesce(settings: &Settings, in_force: Option<&Coalesce>) -> Coalesce {
    let start = in_force.cloned().unwrap_or_default();
    settings.iter().fold(start, |all, (name, value)| {
        let parameter: Option<Parameter> = name.parse().ok();
        match parameter.zip(crate::command::number(value)) {
            Some((parameter, value)) => all.with(parameter, value),
            None => all,
        }
    })
}

/// What an option of Intel's drivers means (Linux,
/// `Documentation/networking/device_drivers/ethernet/intel/e1000e.rst`).
fn option(driver: &str, name: &str, value: &str) -> Option<String> {
    if matches!(driver, "igb" | "ixgbe" | "ixgbevf") {
        return Some(format!(
            "only Intel's own {driver} has this option; that of Linux says in the kernel's log that \
             it ignores it"
        ));
    }
    let first = value.split(',').next()?;
    let number: u32 = first.parse().ok()?;
    Some(match (name, number) {
        ("InterruptThrottleRate", 0) => "no moderation: an interrupt for each packet".into(),
        ("InterruptThrottleRate", 1) => {
            "the driver chooses by the traffic, between 4,000 and 70,000 interrupts a second: a gap \
             of 14 to 250 us"
                .into()
        }
        ("InterruptThrottleRate", 3) => {
            "the driver chooses by the traffic, between 4,000 and 20,000 interrupts a second: a gap \
             of 50 to 250 us"
                .into()
        }
        ("InterruptThrottleRate", 4) => "the driver counts packets each way, and chooses".into(),
        ("InterruptThrottleRate", rate) if rate >= 100 => {
            format!("at most {rate} interrupts a second: a gap of {:.0} us", 1e6 / f64::from(rate))
        }
        ("RxIntDelay", 0) => "no receive delay".into(),
        ("RxIntDelay", ticks) => format!(
            "a lone packet waits {:.0} us (in ticks of 1.024 us), on top of the throttle",
            f64::from(ticks) * 1.024
        ),
        ("RxAbsIntDelay", ticks) => {
            format!("no packet waits longer than {:.0} us", f64::from(ticks) * 1.024)
        }
        _ => return None,
    })
}

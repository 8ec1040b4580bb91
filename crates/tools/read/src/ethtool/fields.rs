//! Outputs of a field a line: rings, channels, the driver, pause frames, EEE, flags, the link.

use device::ethtool::{Channels, Driver, Eee, Link, Parameter, Rings};

use super::{number, pair};
use crate::known::KnownDevice;

/// Reads lines of `NAME: VALUE`; the maxima come first, below a title of their own.
fn two_lists(lines: &[&str], mut take: impl FnMut(&str, Option<u32>, bool) -> bool) -> usize {
    let mut is_max = false;
    let mut unread = 0;
    for line in lines {
        match *line {
            "Pre-set maximums:" => is_max = true,
            "Current hardware settings:" => is_max = false,
            line if line.contains(" parameters for ") => {}
            line => {
                let taken =
                    pair(line).is_some_and(|(name, value)| take(name, number(value), is_max));
                unread += usize::from(!taken);
            }
        }
    }
    unread
}

pub(super) fn rings(lines: &[&str], known: &mut KnownDevice) -> usize {
    let mut rings = Rings::default();
    let unread = two_lists(lines, |name, value, is_max| {
        let field = match (name, is_max) {
            ("RX", true) => &mut rings.rx_max,
            ("TX", true) => &mut rings.tx_max,
            ("RX", false) => &mut rings.rx,
            ("RX Mini", false) => &mut rings.rx_mini,
            ("RX Jumbo", false) => &mut rings.rx_jumbo,
            ("TX", false) => &mut rings.tx,
            ("RX Buf Len", false) => &mut rings.rx_buf_len,
            ("CQE Size", false) => &mut rings.cqe_size,
            (name, _) => {
                let names = ["RX Mini", "RX Jumbo", "TX push buff len", "TX Push", "RX Push"];
                return names.contains(&name) || name.contains("ush") || name.starts_with("HDS");
            }
        };
        *field = value;
        true
    });
    if rings != Rings::default() {
        known.rings = Some(rings);
    }
    unread
}

pub(super) fn channels(lines: &[&str], known: &mut KnownDevice) -> usize {
    let mut channels = Channels::default();
    let unread = two_lists(lines, |name, value, is_max| {
        let field = match (name, is_max) {
            ("RX", true) => &mut channels.rx_max,
            ("TX", true) => &mut channels.tx_max,
            ("Combined", true) => &mut channels.combined_max,
            ("RX", false) => &mut channels.rx,
            ("TX", false) => &mut channels.tx,
            ("Other", false) => &mut channels.other,
            ("Combined", false) => &mut channels.combined,
            ("Other", true) => return true,
            _ => return false,
        };
        *field = value;
        true
    });
    if channels != Channels::default() {
        known.channels = Some(channels);
    }
    unread
}

pub(super) fn driver(lines: &[&str], known: &mut KnownDevice) -> usize {
    let mut driver = Driver::default();
    let mut unread = 0;
    for line in lines {
        let Some((name, value)) = pair(line) else {
            unread += 1;
            continue;
        };
        match name {
            "driver" => driver.name = value.to_owned(),
            "version" => driver.version = value.to_owned(),
            "firmware-version" => driver.firmware = value.to_owned(),
            "bus-info" => driver.bus = value.to_owned(),
            "expansion-rom-version" => {}
            name if name.starts_with("supports-") => {}
            _ => unread += 1,
        }
    }
    if !driver.name.is_empty() {
        known.driver = Some(driver);
    }
    unread
}

pub(super) fn pause(lines: &[&str], known: &mut KnownDevice) -> usize {
    let mut on = Vec::new();
    let mut unread = 0;
    for line in lines.iter().filter(|line| !line.contains(" parameters for ")) {
        match pair(line) {
            Some((name @ ("RX" | "TX"), value)) if value.starts_with("on") => on.push(name),
            Some(("RX" | "TX" | "Autonegotiate" | "RX negotiated" | "TX negotiated", _)) => {}
            _ => unread += 1,
        }
    }
    note_pause(&on, known);
    unread
}

/// A NIC that heeds pause frames of its switch stops sending.
pub(super) fn note_pause(on: &[&str], known: &mut KnownDevice) {
    if !on.is_empty() {
        known.note(format!(
            "pause frames are on ({}): a congested receiver stops its senders, for up to 65,535 \
             times of 512 bits each (IEEE 802.3, annex 31B); no command says how often",
            on.join(" and ")
        ));
    }
}

pub(super) fn eee(lines: &[&str], known: &mut KnownDevice) -> usize {
    let mut eee = Eee::default();
    let (mut unread, mut is_known, mut is_list) = (0, false, false);
    for line in lines {
        match pair(line) {
            Some(("EEE status", value)) => {
                is_known = !value.contains("not supported");
                eee.enabled = value.starts_with("enabled");
                eee.active = value.ends_with("active") && !value.ends_with("inactive");
            }
            Some(("Tx LPI", value)) => {
                eee.tx_lpi_enabled = !value.starts_with("disabled");
                eee.tx_lpi_timer_us = number(value).unwrap_or(0);
            }
            Some((name, _)) if name.contains("EEE") => is_list = name.contains("link modes"),
            // The modes go on in lines of their own.
            _ if is_list => {}
            _ => unread += 1,
        }
    }
    if is_known {
        known.eee = Some(eee);
    } else {
        known.lacks.insert("EEE");
    }
    unread
}

pub(super) fn private_flags(lines: &[&str], known: &mut KnownDevice) -> usize {
    let mut unread = 0;
    for line in lines.iter().filter(|line| !line.starts_with("Private flags for ")) {
        let flag = pair(line).and_then(|(name, value)| match value {
            "on" => Some((name, true)),
            "off" => Some((name, false)),
            _ => None,
        });
        match flag {
            Some((name, is_on)) => take_flag(name, is_on, known),
            None => unread += 1,
        }
    }
    unread
}

/// Flags that decide how long packets wait (Linux, `drivers/net/ethernet/mellanox/mlx5/core/
/// en_ethtool.c`, `intel/i40e/i40e_ethtool.c`).
pub(super) fn take_flag(name: &str, is_on: bool, known: &mut KnownDevice) {
    match (name, is_on) {
        // What `cqe-mode-rx` was called before Linux 5.15.
        ("rx_cqe_moder", is_on) => {
            let settings = known.coalescing.get_or_insert_default();
            if settings.get(Parameter::CqeModeRx).is_none() {
                settings.set(Parameter::CqeModeRx, is_on.into());
            }
        }
        ("rx_striding_rq", true) => known
            .note("rx_striding_rq is on: packets share large receive buffers, which costs no time"),
        ("disable-source-pruning" | "legacy-rx" | _, _) => {}
    }
}

pub(super) fn link(lines: &[&str], known: &mut KnownDevice) -> usize {
    let mut link = Link::default();
    let mut is_known = false;
    for (name, value) in lines.iter().filter_map(|line| pair(line)) {
        match name {
            "Speed" => {
                let digits = value.trim_end_matches("Mb/s");
                link.speed_mbps = digits.parse().ok();
                is_known = true;
            }
            "Duplex" => link.is_full_duplex = Some(value == "Full").filter(|_| value != "Unknown!"),
            "Link detected" => {
                link.is_up = Some(value.starts_with("yes"));
                is_known = true;
            }
            _ => {}
        }
    }
    if is_known {
        known.link = Some(link);
    }
    // The rest is about modes and wires, which delays nothing.
    0
}

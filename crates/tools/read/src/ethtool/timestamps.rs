//! `ethtool -T`: lists below titles.

use device::ethtool::Timestamps;

use super::pair;
use crate::known::KnownDevice;

/// The list that lines add to.
#[derive(Clone, Copy)]
enum List {
    None,
    Capabilities,
    Transmit,
    Filters,
}

pub(super) fn read(lines: &[&str], known: &mut KnownDevice) -> usize {
    let mut stamps = Timestamps::default();
    let mut list = List::None;
    let mut unread = 0;
    for line in lines.iter().filter(|line| !line.contains(" parameters for ")) {
        if let Some((title, value)) = pair(line) {
            list = match title {
                "Capabilities" => List::Capabilities,
                "Hardware Transmit Timestamp Modes" => List::Transmit,
                "Hardware Receive Filter Modes" => List::Filters,
                "PTP Hardware Clock" => {
                    stamps.phc_index = value.parse().ok();
                    List::None
                }
                _ if title.starts_with("Hardware timestamp provider") => List::None,
                _ => {
                    unread += 1;
                    List::None
                }
            };
            continue;
        }
        // `hardware-transmit     (SOF_TIMESTAMPING_TX_HARDWARE)`, or that name alone.
        let name = line.split_whitespace().next().map(plain).unwrap_or_default();
        match list {
            List::None => unread += 1,
            List::Capabilities => _ = stamps.capabilities.insert(name),
            List::Transmit => _ = stamps.tx_types.insert(name),
            List::Filters => _ = stamps.rx_filters.insert(name),
        }
    }
    known.timestamps = Some(stamps);
    unread
}

/// The name as the kernel has it today, of one that an older `ethtool` printed.
pub(super) fn plain(name: &str) -> String {
    let Some(rest) = name.strip_prefix("SOF_TIMESTAMPING_") else { return name.to_owned() };
    match rest {
        "TX_HARDWARE" => "hardware-transmit",
        "TX_SOFTWARE" => "software-transmit",
        "RX_HARDWARE" => "hardware-receive",
        "RX_SOFTWARE" => "software-receive",
        "SOFTWARE" => "software-system-clock",
        "RAW_HARDWARE" => "hardware-raw-clock",
        rest => rest,
    }
    .to_owned()
}

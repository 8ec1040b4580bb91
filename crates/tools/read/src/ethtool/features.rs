//! `ethtool -k`: a line for each feature, by the kernel's name or an older one of `ethtool`.

use device::ethtool::Features;

use super::pair;
use crate::known::KnownDevice;

/// Names that `ethtool` prints for one feature of the kernel (its `off_flag_def`), and the
/// kernel's.
const NAMES: [(&str, &str); 12] = [
    ("rx-checksumming", "rx-checksum"),
    ("tcp-segmentation-offload", "tx-tcp-segmentation"),
    ("udp-fragmentation-offload", "tx-udp-fragmentation"),
    ("generic-segmentation-offload", "tx-generic-segmentation"),
    ("generic-receive-offload", "rx-gro"),
    ("large-receive-offload", "rx-lro"),
    ("rx-vlan-offload", "rx-vlan-hw-parse"),
    ("tx-vlan-offload", "tx-vlan-hw-insert"),
    ("ntuple-filters", "rx-ntuple-filter"),
    ("receive-hashing", "rx-hashing"),
    ("scatter-gather", "tx-scatter-gather"),
    ("tx-checksumming", "tx-checksum"),
];

pub(super) fn read(lines: &[&str], known: &mut KnownDevice) -> usize {
    let mut features = Features::default();
    let mut unread = 0;
    for line in lines {
        let state = pair(line).and_then(|(name, value)| {
            let mut words = value.split_whitespace();
            let is_on = match words.next()? {
                "on" => true,
                "off" => false,
                _ => return None,
            };
            Some((name, is_on, words.any(|word| word == "[fixed]")))
        });
        match state {
            Some((name, is_on, is_fixed)) => add(&mut features, name, is_on, is_fixed),
            None => unread += usize::from(!line.ends_with(':')),
        }
    }
    if features != Features::default() {
        known.features = Some(features);
    }
    unread
}

pub(super) fn add(features: &mut Features, name: &str, is_on: bool, is_fixed: bool) {
    let name = NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, name)| name);
    if is_on {
        features.active.insert(name.to_owned());
    }
    if !is_fixed {
        features.changeable.insert(name.to_owned());
    }
}

//! Where files of a report are: a `sosreport`, a `supportconfig`, or a copy of `/`.

use crate::command::{Typed, typed};
use crate::kind::InputKind;

/// Directories of a machine that a report has copies of.
const ROOTS: [&str; 7] = ["sos_commands", "proc", "sys", "etc", "run", "usr", "lib"];

/// Files of a supportconfig that have the output of commands and files in them.
const SECTIONS: [&str; 8] = [
    "network.txt",
    "ntp.txt",
    "proc.txt",
    "modules.txt",
    "env.txt",
    "systemd.txt",
    "tuned.txt",
    "udev.txt",
];

/// So many bytes of a file of a report are looked at, at most.
pub const LARGEST: u64 = 8 << 20;

/// What a file of a report is for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// The output of a command.
    Output(Typed),
    /// Outputs and files one after the other.
    Sections,
    /// A copy of a file, by its path below `/`.
    File(String),
    /// Nothing that delays packets.
    Other,
}

impl Place {
    /// By the path in the report.
    pub(crate) fn of(path: &str) -> Self {
        let path = path.trim_start_matches("./");
        let parts: Vec<&str> = path.split('/').collect();
        let first = parts.iter().take(3).position(|part| ROOTS.contains(part));
        let Some(first) = first.filter(|first| first + 1 < parts.len()) else {
            let name = parts.last().copied().unwrap_or_default();
            let is_section = SECTIONS.contains(&name) && parts.len() <= 3;
            return if is_section { Self::Sections } else { Self::Other };
        };
        let name = parts[parts.len() - 1];
        let below = parts[first..].join("/");
        match parts[first] {
            "sos_commands" => output(name).map_or(Self::Other, Self::Output),
            _ if is_wanted(&below) => Self::File(below),
            _ => Self::Other,
        }
    }
}

/// The command whose output is in a file of that name, such as `ethtool_-c_eth0`.
fn output(name: &str) -> Option<Typed> {
    if name == "sysctl_-a" {
        return Some(Typed { kind: Some(InputKind::Sysctl), ..Typed::default() });
    }
    if let Some(rest) = name.strip_prefix("ethtool_") {
        // The name of a device may have the character that stands for a space.
        let (option, device) = match rest.split_once('_') {
            Some((option, device)) if option.starts_with('-') => (option, device),
            _ => ("", rest),
        };
        let found = typed(&format!("$ ethtool {option} {device}"))?;
        return Some(found).filter(|found| found.kind.is_some());
    }
    let words = name.replace('_', " ");
    let found = typed(&format!("$ {words}"))?;
    Some(found).filter(|found| {
        matches!(found.kind, Some(InputKind::IpLink | InputKind::Chrony | InputKind::Ntpd))
    })
}

/// Whether a file says something of what delays packets.
fn is_wanted(path: &str) -> bool {
    let starts = [
        "proc/interrupts",
        "proc/softirqs",
        "proc/net/softnet_stat",
        "proc/cpuinfo",
        "proc/irq/",
        "proc/sys/net/core/",
        "sys/class/net/",
        "sys/devices/system/cpu/",
        "sys/hypervisor/",
        "sys/class/dmi/id/",
        "etc/tuned/",
        "etc/systemd/network/",
        "etc/udev/rules.d/",
        "etc/modprobe.d/",
        "etc/sysctl.d/",
        "etc/sysctl.conf",
        "etc/network/",
        "etc/netplan/",
        "etc/sysconfig/network",
        "etc/NetworkManager/",
        "run/systemd/network/",
        "run/udev/rules.d/",
        "run/NetworkManager/",
        "usr/lib/systemd/network/",
        "usr/lib/tuned/",
        "usr/lib/modprobe.d/",
        "usr/lib/udev/rules.d/",
        "lib/modprobe.d/",
        "lib/udev/rules.d/",
    ];
    starts.iter().any(|start| path.starts_with(start))
}

/// Whether a file of a report with this path is looked at.
pub fn is_looked_at(path: &str) -> bool {
    Place::of(path) != Place::Other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_reports_are_found_by_their_paths() {
        let output = |path: &str| match Place::of(path) {
            Place::Output(typed) => typed.kind.zip(typed.device),
            other => panic!("{path}: {other:?}"),
        };
        let path = "sosreport-h-2026/sos_commands/networking/ethtool_-c_enp1s0";
        assert_eq!(output(path), Some((InputKind::Coalesce, "enp1s0".into())));
        assert_eq!(
            output("s/sos_commands/networking/ethtool_my_if"),
            Some((InputKind::Settings, "my_if".into()))
        );
        assert_eq!(Place::of("./s/proc/interrupts"), Place::File("proc/interrupts".into()));
        assert_eq!(Place::of("scc_h/network.txt"), Place::Sections);
        for path in ["s/var/log/messages", "s/etc/passwd", "", "proc", "s/sos_commands/x/free"] {
            assert_eq!(Place::of(path), Place::Other, "{path}");
        }
    }
}

//! What an input may be, and how each kind is recognised by its first line.

use schemars::JsonSchema;
use serde::Serialize;

use crate::command::is_device;

macro_rules! kinds {
    ($($variant:ident, $words:literal;)*) => {
        /// What a part of an input is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        #[allow(missing_docs, reason = "their words are below")]
        pub enum InputKind {
            $($variant,)*
        }

        impl InputKind {
            /// What it is, for people.
            pub fn words(self) -> &'static str {
                match self { $(Self::$variant => $words,)* }
            }
        }
    };
}

kinds! {
    Coalesce, "ethtool -c: coalescing";
    Features, "ethtool -k: offloads";
    Rings, "ethtool -g: rings";
    Channels, "ethtool -l: channels";
    Statistics, "ethtool -S: counters of the driver";
    Driver, "ethtool -i: the driver";
    Timestamps, "ethtool -T: timestamps";
    Pause, "ethtool -a: pause frames";
    Eee, "ethtool --show-eee: a link that sleeps";
    PrivateFlags, "ethtool --show-priv-flags: flags of the driver";
    Settings, "ethtool: the link";
    IpLink, "ip -s link: what links have carried";
    Interrupts, "/proc/interrupts";
    Softirqs, "/proc/softirqs";
    Softnet, "/proc/net/softnet_stat";
    Ping, "ping";
    Sockperf, "sockperf";
    Netperf, "netperf";
    Qperf, "qperf";
    Iperf3, "iperf3 --json";
    Chrony, "chrony";
    Ntpd, "ntpd";
    Column, "a column of numbers";
    Figures, "figures in a text";
    Change, "a change by ethtool -C";
    Tuned, "a TuneD profile";
    NetworkManager, "a profile of NetworkManager";
    Nmstate, "a state of nmstate";
    Netplan, "netplan";
    Link, "a .link file of systemd";
    Udev, "rules of udev";
    Modprobe, "options of modules (modprobe.d)";
    Ifupdown, "stanzas of ifupdown";
    Sysctl, "sysctl";
    KernelFile, "files below /proc, /sys and /etc";
    Capture, "a capture of packets";
    Unknown, "not recognised";
}

impl InputKind {
    /// What `ethtool` prints with an option.
    pub(crate) fn of_option(option: &str) -> Option<Self> {
        Some(match option {
            "-c" | "--show-coalesce" => Self::Coalesce,
            "-k" | "--show-features" | "--show-offload" => Self::Features,
            "-g" | "--show-ring" => Self::Rings,
            "-l" | "--show-channels" => Self::Channels,
            "-S" | "--statistics" => Self::Statistics,
            "-i" | "--driver" => Self::Driver,
            "-T" | "--show-time-stamping" => Self::Timestamps,
            "-a" | "--show-pause" => Self::Pause,
            "--show-eee" => Self::Eee,
            "--show-priv-flags" => Self::PrivateFlags,
            _ => return None,
        })
    }

    /// What a file of that path is; `None`: its content decides.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let ends = |end: &str| name.ends_with(end);
        Some(match () {
            () if ends("tuned.conf") => Self::Tuned,
            () if ends(".link") => Self::Link,
            () if ends(".nmconnection") => Self::NetworkManager,
            () if ends(".rules") => Self::Udev,
            () if path.contains("modprobe.d/") => Self::Modprobe,
            () if path.contains("sysctl.d/") || name == "sysctl.conf" => Self::Sysctl,
            () if path.contains("netplan/") && (ends(".yaml") || ends(".yml")) => Self::Netplan,
            () if ends("/interfaces") || name == "interfaces" => Self::Ifupdown,
            _ => return None,
        })
    }

    /// Whether its lines are those of a file with sections, which empty lines do not end.
    pub(crate) fn is_configuration(self) -> bool {
        (Self::Tuned..=Self::Sysctl).contains(&self)
    }
}

/// The kinds whose first line names the device: what is before and behind the name.
const HEADERS: [(&str, InputKind); 10] = [
    ("Coalesce parameters for ", InputKind::Coalesce),
    ("Features for ", InputKind::Features),
    ("Offload parameters for ", InputKind::Features),
    ("Ring parameters for ", InputKind::Rings),
    ("Channel parameters for ", InputKind::Channels),
    ("Time stamping parameters for ", InputKind::Timestamps),
    ("Pause parameters for ", InputKind::Pause),
    ("EEE settings for ", InputKind::Eee),
    ("EEE Settings for ", InputKind::Eee),
    ("Private flags for ", InputKind::PrivateFlags),
];

/// The kind that begins with this line, with the device that it names, if it begins one.
pub(crate) fn beginning(line: &str) -> Option<(InputKind, Option<String>)> {
    let text = line.trim_start();
    for (start, kind) in HEADERS {
        if let Some(rest) = text.strip_prefix(start) {
            return Some((kind, named(rest)));
        }
    }
    if let Some(rest) = text.strip_prefix("Settings for ") {
        return named(rest).map(|name| (InputKind::Settings, Some(name)));
    }
    let alone = |kind| Some((kind, None));
    match text {
        "NIC statistics:" => return alone(InputKind::Statistics),
        _ if kernel_file(line).is_some() => return alone(InputKind::KernelFile),
        _ if line.starts_with("driver: ") => return alone(InputKind::Driver),
        _ if text == "CPU0" || text.starts_with("CPU0 ") => return alone(InputKind::Interrupts),
        _ if is_softnet(text) => return alone(InputKind::Softnet),
        _ => {}
    }
    if let Some(name) = link_of(line) {
        return Some((InputKind::IpLink, Some(name)));
    }
    let log = || crate::round_trips::is_log(text);
    measured(text).or_else(|| configured(text)).or_else(log).and_then(alone)
}

fn named(rest: &str) -> Option<String> {
    let name = rest.trim().trim_end_matches(':');
    is_device(name).then(|| name.to_owned())
}

/// The device of a line of `ip link`: `2: eth0: <BROADCAST,...> mtu 1500 ...`.
fn link_of(line: &str) -> Option<String> {
    let (number, rest) = line.split_once(": ")?;
    number.parse::<u32>().ok()?;
    let (name, rest) = rest.split_once(": <")?;
    let name = name.split('@').next()?;
    (is_device(name) && rest.contains('>')).then(|| name.to_owned())
}

/// Path and content of a line that `grep . FILE...` printed.
pub(crate) fn kernel_file(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    if !line.starts_with("/sys/") && !line.starts_with("/proc/") {
        return None;
    }
    // A path of a PCI device has colons; no value has a slash right behind it.
    let at = line.match_indices(':').map(|(at, _)| at).find(|at| !line[*at..].contains('/'))?;
    (!line[..at].contains(' ')).then(|| (&line[..at], &line[at + 1..]))
}

/// Words of eight hexadecimal digits, nine at least.
fn is_softnet(line: &str) -> bool {
    let is_word =
        |word: &str| word.len() == 8 && word.bytes().all(|digit| digit.is_ascii_hexdigit());
    let words = line.split_whitespace();
    words.clone().count() >= 9 && words.clone().all(is_word)
}

/// The tool that measures round trips and prints such a line.
fn measured(line: &str) -> Option<InputKind> {
    let has = |words: &[&str]| words.iter().all(|word| line.contains(word));
    Some(match () {
        () if line.starts_with("PING ") => InputKind::Ping,
        () if has(&[" bytes from ", "time"]) => InputKind::Ping,
        () if has(&["min/avg/max", " = "]) => InputKind::Ping,
        () if line.starts_with("sockperf: ") => InputKind::Sockperf,
        () if has(&["REQUEST/RESPONSE TEST"]) => InputKind::Netperf,
        () if has(&["Latency", "Microseconds", ","]) => InputKind::Netperf,
        () if line.starts_with("MIN_LATENCY=") || line.starts_with("MEAN_LATENCY=") => {
            InputKind::Netperf
        }
        () if ["tcp_lat:", "udp_lat:", "sctp_lat:"].contains(&line) => InputKind::Qperf,
        () if has(&["remote", "refid", "reach", "delay", "jitter"]) => InputKind::Ntpd,
        () if has(&["Date (UTC)", "IP Address"]) || has(&["Peer del", "Score"]) => {
            InputKind::Chrony
        }
        () if line.starts_with("Peer delay ") || line.starts_with("Root delay ") => {
            InputKind::Chrony
        }
        _ => return None,
    })
}

/// The kind of configuration that has such a line.
fn configured(line: &str) -> Option<InputKind> {
    let is_setting = |line: &str| {
        let (name, value) = line.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let is_name = |start: &str| name.starts_with(start) && !name.contains(' ');
        let is_one = ["net.core.", "net.ipv4.", "kernel."].into_iter().any(is_name);
        (is_one && value.starts_with(|c: char| c.is_ascii_digit())).then_some(())
    };
    Some(match line {
        "[Match]" | "[Link]" => InputKind::Link,
        "[connection]" => InputKind::NetworkManager,
        "[main]" | "[net]" | "[cpu]" | "[sysctl]" => InputKind::Tuned,
        "interfaces:" | "desiredState:" => InputKind::Nmstate,
        "network:" => InputKind::Netplan,
        line if line.starts_with("options ") && line.contains('=') => InputKind::Modprobe,
        line if line.contains("==\"") && (line.contains("=\"") || line.contains("GOTO")) => {
            InputKind::Udev
        }
        line if line.starts_with("iface ") && line.contains(" inet") => InputKind::Ifupdown,
        line if is_setting(line).is_some() => InputKind::Sysctl,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_lines_say_what_follows() {
        let kind = |line: &str| beginning(line).map(|(kind, _)| kind);
        assert_eq!(
            beginning("Coalesce parameters for eth0:"),
            Some((InputKind::Coalesce, Some("eth0".into())))
        );
        assert_eq!(kind("2: eth0: <BROADCAST,UP> mtu 1500 qdisc mq"), Some(InputKind::IpLink));
        assert_eq!(kind("           CPU0       CPU1"), Some(InputKind::Interrupts));
        assert_eq!(kind(&["0000000a"; 13].join(" ")), Some(InputKind::Softnet));
        assert_eq!(kind("rtt min/avg/max/mdev = 0.1/0.2/0.3/0.1 ms"), Some(InputKind::Ping));
        assert_eq!(kind("[Match]"), Some(InputKind::Link));
        assert_eq!(kind("net.core.busy_poll = 50"), Some(InputKind::Sysctl));
        for line in ["", "a sentence", "rx-usecs: 3", "x = 1", "the driver: it is"] {
            assert_eq!(kind(line), None, "{line}");
        }
    }
}

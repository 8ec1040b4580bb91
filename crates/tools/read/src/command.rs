//! Commands that stand in a paste: behind a prompt, or alone in a line.

use device::ethtool::{Coalesce, Parameter};

use crate::kind::InputKind;

/// Columns of the longest prompt.
const LONGEST_PROMPT: usize = 80;

/// What is typed to get what can be read here, and what else ends the output of the one before.
const PROGRAMS: [&str; 27] = [
    "ethtool",
    "cat",
    "ping",
    "ping6",
    "ip",
    "sockperf",
    "netperf",
    "qperf",
    "iperf3",
    "chronyc",
    "ntpq",
    "grep",
    "sysctl",
    "tuned-adm",
    "nmcli",
    "nmstatectl",
    "netplan",
    "lspci",
    "uname",
    "modprobe",
    "modinfo",
    "ls",
    "dmesg",
    "watch",
    "date",
    "sleep",
    "earmark",
];

/// A command line: what its output will be.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Typed {
    /// What it prints, if that can be read.
    pub(crate) kind: Option<InputKind>,
    pub(crate) device: Option<String>,
    /// The file that it prints.
    pub(crate) path: Option<String>,
    /// What it changes.
    pub(crate) change: Option<(String, Coalesce)>,
}

/// The command in a line; `None`: it is none.
pub(crate) fn typed(line: &str) -> Option<Typed> {
    if let Some(path) = section(line) {
        return Some(cat(path));
    }
    let words = words(line)?;
    let program = words.first()?.rsplit('/').next()?;
    let rest: Vec<&str> = words[1..].to_vec();
    Some(match program {
        "ethtool" => ethtool(&rest),
        "cat" => cat(rest.first().copied().unwrap_or_default()),
        "ping" | "ping6" => of(InputKind::Ping),
        "ip" if rest.contains(&"link") => of(InputKind::IpLink),
        "sockperf" => of(InputKind::Sockperf),
        "netperf" => of(InputKind::Netperf),
        "qperf" => of(InputKind::Qperf),
        "iperf3" => of(InputKind::Iperf3),
        "ntpq" => of(InputKind::Ntpd),
        "chronyc" => of(InputKind::Chrony),
        "sysctl" => of(InputKind::Sysctl),
        _ => Typed::default(),
    })
}

/// The file that a section of a supportconfig has: `# /proc/interrupts`.
fn section(line: &str) -> Option<&str> {
    let path = line.strip_prefix("# ").filter(|path| !path.contains(char::is_whitespace))?;
    ["/proc/", "/sys/", "/etc/"].iter().any(|start| path.starts_with(start)).then_some(path)
}

fn of(kind: InputKind) -> Typed {
    Typed { kind: Some(kind), ..Typed::default() }
}

/// The words of a text that begins with a program, without `sudo`.
fn program_words(text: &str) -> Option<Vec<&str>> {
    let mut words = text.split_whitespace();
    let mut program = words.next()?;
    while matches!(program, "sudo" | "-n" | "#" | "$") {
        program = words.next()?;
    }
    let name = program.rsplit('/').next()?;
    PROGRAMS.contains(&name).then(|| std::iter::once(program).chain(words).collect())
}

/// The words of a command, without prompt and `sudo`.
fn words(line: &str) -> Option<Vec<&str>> {
    for mark in ["# ", "$ ", "% ", "> ", "#", "$"] {
        let Some(at) = line.find(mark).filter(|at| *at < LONGEST_PROMPT) else { continue };
        if let Some(words) = program_words(&line[at + mark.len()..]) {
            return Some(words);
        }
    }
    // Without a prompt, a sentence may begin with the word.
    let bare = program_words(line)?;
    let second = bare.get(1).copied().unwrap_or_default();
    let has_shape =
        second.starts_with(['-', '/']) || bare[0].ends_with("ethtool") && bare.len() == 2;
    has_shape.then_some(bare)
}

fn cat(path: &str) -> Typed {
    let kind = match path {
        "/proc/interrupts" => Some(InputKind::Interrupts),
        "/proc/softirqs" => Some(InputKind::Softirqs),
        "/proc/net/softnet_stat" => Some(InputKind::Softnet),
        path if path.starts_with("/sys/") || path.starts_with("/proc/") => {
            Some(InputKind::KernelFile)
        }
        path => InputKind::of_path(path),
    };
    let path = path.starts_with('/').then(|| path.to_owned());
    Typed { kind, path, ..Typed::default() }
}

/// What `ethtool` with these arguments prints: `-c DEV`, or `--per-queue DEV [queue_mask MASK] -c`.
fn ethtool(words: &[&str]) -> Typed {
    let words = words.iter().copied().filter(|word| *word != "--json" && *word != "--debug");
    let mut words = words.peekable();
    let named = |name: &&str| is_device(name);
    let is_of_queues = words.next_if(|word| matches!(*word, "--per-queue" | "-Q")).is_some();
    let queues_of = if is_of_queues { words.next_if(named) } else { None };
    if words.next_if_eq(&"queue_mask").is_some() {
        words.next();
    }
    let Some(option) = words.next_if(|word| word.starts_with('-')) else {
        let device = words.next().map(str::to_owned);
        return Typed { kind: Some(InputKind::Settings), device, ..Typed::default() };
    };
    let device = queues_of.or_else(|| words.next_if(named)).map(str::to_owned);
    if matches!(option, "-C" | "--coalesce") && !is_of_queues {
        let change = device.clone().map(|name| (name, pairs(words)));
        let change = change.filter(|(_, values)| !values.is_empty());
        return Typed { device, change, ..Typed::default() };
    }
    Typed { kind: InputKind::of_option(option), device, ..Typed::default() }
}

/// Names and values, as `ethtool -C` takes them, as far as they are some.
fn pairs<'a>(mut words: impl Iterator<Item = &'a str>) -> Coalesce {
    let mut settings = Coalesce::new();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        let Ok(parameter) = name.parse::<Parameter>() else { break };
        let value = value.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let Some(value) = number(value) else { break };
        settings.set(parameter, value);
    }
    settings
}

/// A change of coalescing that stands in a sentence.
pub(crate) fn change_in(line: &str) -> Option<(String, Coalesce)> {
    let mut words =
        line.split_whitespace().map(|word| word.trim_matches(['`', '"', '\'', '(', ')']));
    words.find(|word| word.rsplit('/').next() == Some("ethtool"))?;
    words.next().filter(|word| matches!(*word, "-C" | "--coalesce"))?;
    let device = words.next().filter(|name| is_device(name))?.to_owned();
    let settings = pairs(words);
    (!settings.is_empty()).then_some((device, settings))
}

/// A value of `ethtool`: a number, `on` or `off`.
pub(crate) fn number(text: &str) -> Option<u32> {
    match text {
        "on" | "true" => Some(1),
        "off" | "false" => Some(0),
        text => text.parse().ok(),
    }
}

/// Whether a word may be the name of a network device (`dev_valid_name` of Linux).
pub(crate) fn is_device(name: &str) -> bool {
    let is_plain = |c: char| !c.is_whitespace() && !"/:$%{}<>'\"`".contains(c);
    (1..16).contains(&name.len()) && !name.starts_with('-') && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_behind_prompts_and_alone() {
        let kind = |line: &str| typed(line).map(|it| (it.kind, it.device.unwrap_or_default()));
        let coalesce = |device: &str| Some((Some(InputKind::Coalesce), device.to_owned()));
        assert_eq!(kind("$ ethtool -c eth0"), coalesce("eth0"));
        assert_eq!(kind("[root@h ~]# ethtool --json -c eth0"), coalesce("eth0"));
        assert_eq!(kind("me@host:~/x$ sudo ethtool --show-coalesce enp1s0"), coalesce("enp1s0"));
        assert_eq!(kind("# /usr/sbin/ethtool -c eth1"), coalesce("eth1"));
        assert_eq!(kind("ethtool -c eth0"), coalesce("eth0"));
        assert_eq!(kind("# ethtool -Q eth2 queue_mask 0x3 -c"), coalesce("eth2"));
        assert_eq!(kind("$ ethtool --per-queue eth2 --show-coalesce"), coalesce("eth2"));
        let of_queue = typed("# ethtool -Q eth2 queue_mask 1 -C rx-usecs 8").unwrap();
        assert_eq!((of_queue.kind, of_queue.change), (None, None), "it is not of the device");
        assert_eq!(kind("ethtool eth0"), Some((Some(InputKind::Settings), "eth0".into())));
        assert_eq!(
            kind("$ cat /proc/interrupts"),
            Some((Some(InputKind::Interrupts), String::new()))
        );
        assert_eq!(kind("$ uname -r"), Some((None, String::new())));
        for line in ["ethtool says that", "ping times are high", "rx-usecs: 3", "", "# a comment"] {
            assert_eq!(kind(line), None, "{line}");
        }
    }

    #[test]
    fn changes_are_found_in_sentences() {
        let line = "I set the lowest of 50us with sudo ethtool -C eth0 rx-usecs 50.";
        let (device, settings) = change_in(line).unwrap();
        assert_eq!((device.as_str(), settings.get(Parameter::RxUsecs)), ("eth0", Some(50)));
        assert!(change_in("ethtool -c eth0").is_none());
        let typed = typed("# ethtool -C eth0 adaptive-rx off rx-usecs 8").unwrap();
        assert_eq!(typed.change.unwrap().1.get(Parameter::RxUsecs), Some(8));
    }
}

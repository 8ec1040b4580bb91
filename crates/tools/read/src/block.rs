//! A paste cut into parts: each begins with a command, or with a line that only its kind has.

use device::ethtool::{Coalesce, Parameter};

use crate::command::{change_in, typed};
use crate::kind::{InputKind, beginning};

/// No paste has more values of JSON; each that has no end costs a look at all the rest.
const MOST_TRIES: usize = 256;

/// A part of an input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    /// `None`: nothing is recognised in it.
    pub(crate) kind: Option<InputKind>,
    pub(crate) device: Option<String>,
    /// The file that it is, below `/`.
    pub(crate) path: Option<String>,
    /// What it changes.
    pub(crate) change: Option<Coalesce>,
    /// The number of its first line, from 1.
    pub(crate) at: usize,
    pub(crate) lines: Vec<String>,
    /// Whether it has the summary with which `ping` ends.
    has_summary: bool,
}

impl Block {
    fn new(kind: Option<InputKind>, device: Option<String>, at: usize) -> Self {
        Self { kind, device, at, ..Self::default() }
    }

    /// A part of these lines, which is not cut further.
    pub(crate) fn whole(
        kind: Option<InputKind>,
        device: Option<String>,
        lines: Vec<String>,
    ) -> Self {
        Self { lines, ..Self::new(kind, device, 1) }
    }

    fn push(&mut self, line: &str) {
        self.has_summary |= line.contains("min/avg/max");
        self.lines.push(line.to_owned());
    }

    fn is_empty(&self) -> bool {
        self.change.is_none() && self.lines.iter().all(|line| line.trim().is_empty())
    }
}

/// Cuts lines into parts; `whole` is what the name of the file says of all of them.
pub(crate) fn blocks(lines: &[String], whole: Option<InputKind>) -> Vec<Block> {
    if let Some(kind) = whole {
        return vec![Block { lines: lines.to_vec(), ..Block::new(Some(kind), None, 1) }];
    }
    let mut found = vec![Block::new(None, None, 1)];
    let (mut at, mut tries) = (0, MOST_TRIES);
    while let Some(line) = lines.get(at) {
        let current = found.last_mut().expect("there is a first one");
        let length = if tries > 0 && begins_json(line) {
            tries -= 1;
            json_length(&lines[at..])
        } else {
            None
        };
        if let Some(length) = length {
            let (kind, device) = (current.kind, current.device.clone());
            // A command before it says what it is of.
            let is_of_command = current.is_empty() && kind.is_some();
            let mut block = Block::new(kind.filter(|_| is_of_command), device, at + 1);
            block.lines = lines[at..at + length].to_vec();
            found.push(block);
            at += length;
            found.push(Block::new(None, None, at + 1));
            continue;
        }
        if line.starts_with("#==[") {
            // What follows in a supportconfig is something else.
            found.push(Block::new(None, None, at + 2));
        } else if let Some(typed) = typed(line) {
            let (device, change) = match typed.change {
                Some((device, change)) => (Some(device), Some(change)),
                None => (typed.device, None),
            };
            let kind = if change.is_some() { Some(InputKind::Change) } else { typed.kind };
            found.push(Block { change, path: typed.path, ..Block::new(kind, device, at + 1) });
        } else if let Some((device, change)) = change_in(line) {
            let change = Some(change);
            found.push(Block {
                change,
                ..Block::new(Some(InputKind::Change), Some(device), at + 1)
            });
            found.push(Block::new(None, None, at + 2));
        } else {
            take(&mut found, line, at + 1);
        }
        at += 1;
    }
    found.retain(|block| !block.is_empty());
    found
}

/// Adds a line to the last part, or begins the next one with it.
fn take(found: &mut Vec<Block>, line: &str, at: usize) {
    let current = found.last_mut().expect("there is a first one");
    let next = beginning(line).or_else(|| headless(line, current.kind));
    match next {
        Some((kind, device)) if !continues(current, kind, device.as_deref(), line) => {
            let mut block = Block::new(Some(kind), device, at);
            block.push(line);
            found.push(block);
        }
        next => {
            if let Some((kind, device)) = next {
                current.kind = Some(kind);
                current.device = current.device.take().or(device);
            }
            current.push(line);
        }
    }
}

/// Lines of `ethtool -c` whose header was not pasted.
fn headless(line: &str, current: Option<InputKind>) -> Option<(InputKind, Option<String>)> {
    let (name, _) = line.split_once(':')?;
    let is_one = name.trim_end() == "Adaptive RX" || name.parse::<Parameter>().is_ok();
    (is_one && current != Some(InputKind::Coalesce)).then_some((InputKind::Coalesce, None))
}

/// Whether a line that begins a kind goes on with the part that there is.
fn continues(current: &Block, kind: InputKind, device: Option<&str>, line: &str) -> bool {
    let is_other =
        device.is_some() && current.device.is_some() && current.device.as_deref() != device;
    if current.kind != Some(kind) {
        // A file has lines of others: udev rules that run `ethtool`, and sections of TuneD.
        let is_of_file = current.kind.is_some_and(InputKind::is_configuration)
            && kind.is_configuration()
            && !matches!(kind, InputKind::Nmstate | InputKind::Netplan);
        let is_first = current.is_empty() && current.kind.is_none_or(|it| it.may_be(kind));
        return is_first || is_of_file;
    }
    match kind {
        _ if is_other => false,
        // Headers come once; a command before it is of the same output.
        InputKind::Interrupts | InputKind::IpLink | InputKind::Statistics | InputKind::Driver => {
            current.is_empty()
        }
        InputKind::Ping => {
            !(current.has_summary || line.starts_with("PING ") && !current.is_empty())
        }
        InputKind::Netperf => !line.contains("TEST") || current.is_empty(),
        InputKind::Softnet
        | InputKind::KernelFile
        | InputKind::Chrony
        | InputKind::Ntpd
        | InputKind::Sockperf => true,
        kind if kind.is_configuration() => true,
        _ => current.is_empty(),
    }
}

impl InputKind {
    /// Whether a command with output of this kind may print a line that begins `other`.
    fn may_be(self, other: Self) -> bool {
        self == other || self == Self::Softirqs && other == Self::Interrupts
    }
}

fn begins_json(line: &str) -> bool {
    let line = line.trim();
    matches!(line, "[" | "{") || ["[ {", "{\"", "[{"].iter().any(|start| line.starts_with(start))
}

/// How many of these lines are a value of JSON; `None`: it has no end.
fn json_length(lines: &[String]) -> Option<usize> {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for (number, line) in lines.iter().enumerate() {
        for c in line.chars() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = is_text,
                '"' => is_text = !is_text,
                '[' | '{' if !is_text => depth += 1,
                ']' | '}' if !is_text => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(number + 1);
                    }
                }
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(Option<InputKind>, Option<String>, usize)> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        blocks(&lines, None).into_iter().map(|it| (it.kind, it.device, it.at)).collect()
    }

    #[test]
    fn a_paste_is_cut_where_commands_and_headers_are() {
        let text = "hello\n$ ethtool -i eth0\ndriver: igb\n$ ethtool -c eth0\nCoalesce parameters for eth0:\n\
                    rx-usecs: 3\n\nRing parameters for eth1:\nRX: 5\n$ sudo ethtool -C eth0 rx-usecs 8\n\
                    PING a (1.2.3.4)\n64 bytes from a: time=1 ms\nrtt min/avg/max/mdev = 1/1/1/0 ms\nrtt min/avg/max/mdev = 2/2/2/0 ms";
        let device = |name: &str| Some(name.to_owned());
        assert_eq!(
            cut(text),
            [
                (None, None, 1),
                (Some(InputKind::Driver), device("eth0"), 2),
                (Some(InputKind::Coalesce), device("eth0"), 4),
                (Some(InputKind::Rings), device("eth1"), 8),
                (Some(InputKind::Change), device("eth0"), 10),
                (Some(InputKind::Ping), None, 11),
                (Some(InputKind::Ping), None, 14),
            ]
        );
    }

    #[test]
    fn json_is_a_part_of_its_own() {
        let text = "$ ethtool --json -c eth0\n[ {\n \"ifname\": \"eth0\",\n \"rx-usecs\": 3\n} ]\nrx-usecs: 4";
        let kinds: Vec<_> = cut(text).into_iter().map(|(kind, ..)| kind).collect();
        assert_eq!(kinds, [Some(InputKind::Coalesce), Some(InputKind::Coalesce)]);
        assert_eq!(cut("[main]\na=b\n[net]\ncoalesce=rx-usecs 0")[0].0, Some(InputKind::Tuned));
        assert_eq!(cut("{\n never closed").len(), 1);
    }
}

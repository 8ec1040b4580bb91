//! A paste cut into parts: each begins with a command, or with a line that only its kind has.

use device::ethtool::{Coalesce, Parameter};

use crate::command::{change_in, typed};
use crate::kind::{InputKind, beginning};

/// Lines that begin JSON which has no end: each costs a look at all the rest.
const MOST_TRIES: usize = 256;

/// Bytes of lines that one part keeps, or that wait for the end of JSON.
const MOST_WAITING: usize = 64 << 20;

/// Bytes that a line costs beside its text.
const LINE_COST: usize = 32;

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
    /// Whether its first lines were those of the part before.
    pub(crate) is_continued: bool,
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
        let is_blank = || self.lines.iter().all(|line| line.trim().is_empty());
        self.change.is_none() && !self.is_continued && is_blank()
    }

    /// Whether each of its lines is read by itself, so that it may be read in pieces.
    fn is_read_by_lines(&self) -> bool {
        match self.kind {
            None | Some(InputKind::Ping | InputKind::Chrony | InputKind::Ntpd) => true,
            Some(InputKind::KernelFile) => self.path.is_none(),
            Some(_) => false,
        }
    }
}

/// Cuts lines into parts, as they come: what one piece of an input leaves open, the next goes on
/// with.
pub(crate) struct Cutter {
    /// Whether the name of the file says what all of it is.
    is_whole: bool,
    /// Parts that are cut; the last one is open.
    parts: Vec<Block>,
    /// Lines from the one that begins JSON whose end has not come.
    waiting: Vec<String>,
    /// How many lines are before those.
    at: usize,
    tries: usize,
}

impl Cutter {
    /// `whole` is what the name of the file says of all of it.
    pub(crate) fn new(whole: Option<InputKind>) -> Self {
        Self {
            is_whole: whole.is_some(),
            parts: vec![Block::new(whole, None, 1)],
            waiting: Vec::new(),
            at: 0,
            tries: MOST_TRIES,
        }
    }

    /// Takes further lines; the parts that they finish, and what is known of the open one if its
    /// lines are read one by one.
    pub(crate) fn cut(&mut self, lines: Vec<String>, is_end: bool) -> Vec<Block> {
        let mut all = std::mem::take(&mut self.waiting);
        all.extend(lines);
        if self.is_whole {
            self.open().lines.append(&mut all);
        } else {
            let has_all = is_end || size(&all) > MOST_WAITING;
            let mut used = 0;
            while let Some(line) = all.get(used) {
                let number = self.at + used + 1;
                match self.json(&all[used..], has_all) {
                    Some(JsonValue::Lines(length)) => {
                        self.take_json(&all[used..used + length], number);
                        used += length;
                    }
                    Some(JsonValue::Open) => break,
                    None => {
                        self.line(line, number);
                        used += 1;
                    }
                }
            }
            self.at += used;
            self.waiting = all.split_off(used);
        }
        let open = if is_end { None } else { self.close() };
        let mut parts = std::mem::take(&mut self.parts);
        parts.retain(|part| !part.is_empty());
        self.parts = vec![open.unwrap_or_else(|| Block::new(None, None, self.at + 1))];
        parts
    }

    fn open(&mut self) -> &mut Block {
        self.parts.last_mut().expect("there is a first one")
    }

    /// The open part, as the next piece goes on with it; what is read by lines is read now.
    fn close(&mut self) -> Option<Block> {
        let open = self.open();
        if open.is_read_by_lines() {
            if open.is_empty() {
                return self.parts.pop();
            }
            let head = Block { lines: Vec::new(), is_continued: true, ..open.clone() };
            return Some(head);
        }
        // No output is longer: what follows is other text.
        if size(&open.lines) > MOST_WAITING { None } else { self.parts.pop() }
    }

    /// The value of JSON that these lines begin.
    fn json(&mut self, lines: &[String], has_all: bool) -> Option<JsonValue> {
        if self.tries == 0 || !begins_json(lines.first()?) {
            return None;
        }
        let value = json_value(lines).filter(|value| !has_all || *value != JsonValue::Open);
        self.tries -= usize::from(value.is_none());
        value
    }

    fn take_json(&mut self, lines: &[String], number: usize) {
        let current = self.open();
        let (kind, device) = (current.kind, current.device.clone());
        // A command before it says what it is of.
        let is_of_command = current.is_empty() && kind.is_some();
        let block = Block::new(kind.filter(|_| is_of_command), device, number);
        self.parts.push(Block { lines: lines.to_vec(), ..block });
        self.parts.push(Block::new(None, None, number + lines.len()));
    }

    fn line(&mut self, line: &str, number: usize) {
        if line.starts_with("#==[") {
            // What follows in a supportconfig is something else.
            self.parts.push(Block::new(None, None, number + 1));
        } else if let Some(typed) = typed(line) {
            let (device, change) = match typed.change {
                Some((device, change)) => (Some(device), Some(change)),
                None => (typed.device, None),
            };
            let kind = if change.is_some() { Some(InputKind::Change) } else { typed.kind };
            self.parts.push(Block { change, path: typed.path, ..Block::new(kind, device, number) });
        } else if let Some((device, change)) = change_in(line) {
            let block = Block::new(Some(InputKind::Change), Some(device), number);
            self.parts.push(Block { change: Some(change), ..block });
            self.parts.push(Block::new(None, None, number + 1));
        } else {
            take(&mut self.parts, line, number);
        }
    }
}

/// What lines cost while they are kept.
fn size(lines: &[String]) -> usize {
    lines.iter().map(|line| line.len() + LINE_COST).sum()
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
    let (name, value) = line.split_once(':')?;
    let is_queue = name == "Queue" && value.trim().parse::<u32>().is_ok();
    let is_one = is_queue || name.trim_end() == "Adaptive RX" || name.parse::<Parameter>().is_ok();
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

/// JSON that begins with a line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum JsonValue {
    /// It takes so many lines.
    Lines(usize),
    /// Its end is not among them.
    Open,
}

/// The value of JSON that these lines begin; `None`: brackets that close what is not open.
fn json_value(lines: &[String]) -> Option<JsonValue> {
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    for (number, line) in lines.iter().enumerate() {
        for c in line.bytes() {
            match c {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = is_text,
                b'"' => is_text = !is_text,
                b'[' | b'{' if !is_text => depth += 1,
                b']' | b'}' if !is_text => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(JsonValue::Lines(number + 1));
                    }
                }
                _ => {}
            }
        }
    }
    Some(JsonValue::Open)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(Option<InputKind>, Option<String>, usize)> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let parts = |parts: Vec<Block>| -> Vec<_> {
            parts.into_iter().map(|it| (it.kind, it.device, it.at)).collect()
        };
        let whole = parts(Cutter::new(None).cut(lines.clone(), true));
        // A line at a time finds the same parts, some of them in pieces.
        let mut cutter = Cutter::new(None);
        let mut pieces: Vec<_> =
            lines.into_iter().flat_map(|line| cutter.cut(vec![line], false)).collect();
        pieces.extend(cutter.cut(Vec::new(), true));
        pieces.retain(|part| !part.is_continued);
        assert_eq!(parts(pieces), whole, "{text}");
        whole
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

//! The operations that drive a queue, and how bytes become operations.

use nic::moderation::Moderation;

/// One thing that the wire, the clock or the host does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A frame arrives; its DMA takes `dma` microseconds.
    Arrive { marked: bool, dma: u8 },
    /// That many microseconds pass, and the owner advances the queue only once, at their end: it
    /// may be late.
    Wait(u8),
    /// That many microseconds pass, and the owner advances the queue at each of its deadlines.
    Run(u8),
    /// Time passes until the deadline, if there is one.
    Deadline,
    /// The host takes up to this many packets, whether it was interrupted or not.
    Poll(u8),
    /// The host unmasks, whether it was masked or not.
    Rearm,
    /// A transmission of the host completes.
    Transmit,
    /// The setting changes.
    Set(Moderation),
}

/// The settings that tests choose from: every timer, with and without marks and frames, and the
/// limits. The corpus of the fuzz target names them by their number: new ones go to the end.
pub const SETTINGS: [&str; 44] = [
    "disabled",
    "delay:0",
    "delay:3",
    "delay:7+frames:1",
    "delay:7+frames:2",
    "throttle:0",
    "throttle:5",
    "throttle:9+frames:3",
    "periodic:1",
    "periodic:4",
    "periodic:9+frames:2",
    "adaptive",
    "adaptive+frames:2",
    "marked:0",
    "marked:7",
    "marked:7+frames:3",
    "marked+throttle:5",
    "marked+throttle:9+frames:2",
    "marked+periodic:4",
    "marked+adaptive",
    "stream:7",
    "stream:7+frames:3",
    "stream+throttle:5",
    "stream+throttle:9+frames:2",
    "stream+periodic:4",
    "stream+adaptive",
    "quiet:3/7",
    "quiet:2/9+frames:3",
    "marked+quiet:3/7",
    "stream+quiet:3/7",
    "itr:1",
    "itr:3",
    "itr:1+frames:3",
    "marked+itr:1+gap:6",
    "stream+itr:3",
    "marked:7+gap:4",
    "marked:5+frames:3+gap:9",
    "marked+throttle:5+gap:7",
    "marked+quiet:2/9+gap:3",
    "stream:7+gap:5",
    "stream+periodic:9+gap:4",
    "lane:7+frames:3",
    "periodic:0",
    "marked+periodic:0",
];

/// Number `index` of [`SETTINGS`], counted round.
pub fn setting(index: usize) -> Moderation {
    parse(SETTINGS[index % SETTINGS.len()])
}

pub fn parse(text: &str) -> Moderation {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The first byte is a setting, each two that follow are one operation.
pub fn decode(bytes: &[u8]) -> (Moderation, Vec<Op>) {
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let ops = rest.chunks_exact(2).map(|pair| Op::decode(pair[0], pair[1]));
    (setting(usize::from(*first)), ops.collect())
}

impl Op {
    pub fn decode(kind: u8, argument: u8) -> Self {
        match kind % 9 {
            0 => Self::Arrive { marked: false, dma: argument % 16 },
            1 => Self::Arrive { marked: true, dma: argument % 16 },
            2 => Self::Wait(argument % 32),
            3 => Self::Run(argument % 32),
            4 => Self::Deadline,
            5 => Self::Poll(argument % 8),
            6 => Self::Rearm,
            7 => Self::Transmit,
            _ => Self::Set(setting(usize::from(argument))),
        }
    }
}

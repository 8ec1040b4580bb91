//! The control socket: `earmark nic` talks to a lab that runs.
//!
//! A lab listens on an abstract Unix socket, `earmark/lab/NAME`, in the network namespace that it
//! was started in and in those of its hosts, so that `earmark nic` works inside `earmark lab
//! shell`, too. Abstract sockets vanish with their process: nothing is left behind. Only the user
//! who started the lab is let in, and root, unless the lab is in a user namespace: there root of
//! the machine is a user like any other.
//!
//! One request is one line of JSON, and so is its reply.

#![forbid(unsafe_code)]

pub mod client;

use base::quantiles::Quantiles;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What abstract sockets of labs are called, before the name of the lab.
pub const PREFIX: &str = "earmark/lab/";

/// The settings of a port that [`Request::Set`] changes.
pub const SETTINGS: [&str; 7] =
    ["strategy", "rx-usecs", "rx-frames", "adaptive-rx", "mark", "lane", "link"];

/// What a client asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Ask for the state of all ports.
    Show,
    /// Tell which lab it is.
    Identify,
    /// Change settings of a port.
    Set {
        /// The port's name, such as `b0`.
        port: String,
        /// One queue; without it, all.
        queue: Option<u16>,
        /// Names and values, as `ethtool -C` takes them.
        settings: Vec<(String, String)>,
    },
    /// Disconnect whatever is connected to a port.
    Evict {
        /// The port's name, such as `b0`.
        port: String,
    },
}

/// What the lab answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Everything, or, after a change, what is in force now.
    Ports(Vec<PortState>),
    /// A number at random, which tells the lab from an earlier one of its name.
    Instance(u64),
    /// It cannot be; nothing was changed.
    Refused(String),
    /// The lab is that of another user.
    Foreign,
}

/// One port, as `nic show` prints it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PortState {
    /// The port's name, such as `b0`.
    pub port: String,
    /// The marking rules.
    pub mark: String,
    /// Its lanes: rules that choose a queue.
    #[serde(default)]
    pub lanes: Vec<LaneState>,
    /// The queues, by number.
    pub queues: Vec<QueueState>,
    /// Holds in microseconds since the lab began.
    pub hold_us: Option<Quantiles>,
    /// Frames that reached no queue, and what became of others, by name.
    pub counters: BTreeMap<String, u64>,
    /// How the guest of a vhost-user port stands; other ports have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attachment: Option<AttachmentState>,
    /// Why the port is gone, if it is.
    pub vanished: Option<String>,
}

/// One rule that chooses a queue.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaneState {
    /// The rule with its queue, such as `tcp-port=11211:1`.
    pub rule: String,
    /// Packets that it has decided about.
    pub packets: u64,
}

/// How the guest of a vhost-user port stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttachmentState {
    /// One is connected.
    pub connected: bool,
    /// Why the last one is gone, if none has come since.
    pub lost: Option<String>,
    /// Pairs of queues that the port offers.
    pub queue_pairs: u16,
    /// Pairs that the guest uses.
    pub queue_pairs_used: u16,
}

/// One queue of a port.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct QueueState {
    /// The whole setting, such as `marked:75`.
    pub setting: String,
    /// `marked`, `stream` or the name of the timer.
    pub strategy: String,
    /// Whether `adaptive-rx` is on.
    pub adaptive_rx: bool,
    /// `rx-usecs` at work: that of the setting, or what adaptive moderation picked.
    pub rx_usecs: u32,
    /// `rx-frames` at work.
    pub rx_frames: u32,
    /// Interrupts by reason.
    pub interrupts: BTreeMap<String, u64>,
    /// Everything else that it has counted, by name.
    pub counters: BTreeMap<String, u64>,
}

//! Queues that rules choose: lanes, made by Earmark or by others.

use schemars::JsonSchema;
use serde::Serialize;

/// A queue that rules choose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Lane {
    /// The number of the queue.
    pub queue: u32,
    /// Its rules, each with its place: `1023:tcp4,dst-port:11211,queue:1`.
    pub rules: Vec<String>,
    /// How many packets the queue has received, by whichever rule or hash; `None`: not counted.
    pub packets: Option<u64>,
    /// How long it waits before it interrupts, in microseconds; `None`: the driver has no such
    /// setting.
    pub rx_usecs: Option<u32>,
    /// Whether no hash leads there; `None`: the driver does not show its table.
    pub is_alone: Option<bool>,
}

impl Lane {
    /// What is known of it, in words.
    pub fn describe(&self) -> String {
        let mut parts = vec![format!("queue {}", self.queue)];
        parts.extend(self.rx_usecs.map(|usecs| match usecs {
            0 => "interrupts at once".into(),
            usecs => format!("rx-usecs {usecs}"),
        }));
        parts.extend(self.is_alone.map(|is_alone| match is_alone {
            true => "for its rules alone".into(),
            false => "hashes lead there, too".into(),
        }));
        parts.extend(self.packets.map(|packets| match packets {
            1 => "1 packet".into(),
            packets => format!("{packets} packets"),
        }));
        let rules: Vec<&str> = self.rules.iter().take(4).map(String::as_str).collect();
        let more = self.rules.len() - rules.len();
        let more = if more > 0 { format!("; {more} more") } else { String::new() };
        format!("{}: {}{more}", parts.join(", "), rules.join("; "))
    }
}

//! What was in force while the capture was made, where the capture is one of Earmark's own NIC: it
//! has the hold of each packet.

use alloc::string::String;
use alloc::vec::Vec;

use base::distribution::Distribution;
use base::quantiles::Quantiles;
use base::time::Duration;
use base::times::Times;
use capture::Recorded;

use crate::group::Groups;
use crate::outcome::SettingOutcome;
use crate::run::listed;

/// Queues whose interrupts are counted by themselves.
const MAX_QUEUES: usize = 1_024;

/// The holds that a capture has recorded.
#[derive(Clone, Debug, Default)]
pub struct RecordedHolds {
    holds: Times,
    groups: Vec<Option<Times>>,
    packets: u64,
    interrupts: u64,
    /// The last interrupt of each queue.
    last: Vec<Option<u64>>,
}

impl RecordedHolds {
    /// Adds what is recorded of a packet of a group.
    pub fn add(&mut self, recorded: &Recorded, group: u16) {
        let (queue, group) = (usize::from(recorded.queue).min(MAX_QUEUES), usize::from(group));
        if queue >= self.last.len() {
            self.last.resize(queue + 1, None);
        }
        if recorded.interrupt.is_some() && recorded.interrupt != self.last[queue] {
            self.interrupts += 1;
            self.last[queue] = recorded.interrupt;
        }
        self.packets += 1;
        self.holds.record(recorded.hold_ns);
        if group >= self.groups.len() {
            self.groups.resize(group + 1, None);
        }
        let times = self.groups[group].get_or_insert_with(|| Times::coarse(u64::MAX >> 1));
        times.record(recorded.hold_ns);
    }

    /// What was so, over `lasted`; `None` if nothing is recorded. Interrupts that reported no
    /// packet are not in a capture.
    #[must_use]
    pub fn finish(&self, lasted: Duration, groups: &Groups) -> Option<SettingOutcome> {
        let seconds = lasted.as_nanos().max(1) as f64 / 1e9;
        (self.packets > 0).then(|| SettingOutcome {
            setting: String::from("recorded"),
            packets: self.packets,
            missed: 0,
            marked: 0,
            interrupts: self.interrupts,
            interrupts_per_s: self.interrupts as f64 / seconds,
            packets_per_interrupt: self.packets as f64 / self.interrupts.max(1) as f64,
            hold_us: Quantiles::of(&Distribution::of(&self.holds, 1)),
            taken_us: None,
            host_busy: None,
            groups: listed(&self.groups, groups),
        })
    }
}

//! What a data plane has counted at one moment, and between two.

use base::time::{Duration, Instant};
use base::times::Times;
use network::link::LinkCounters;
use nic::counters::Counters;
use nic::moderation::{Moderation, Profile};

use hostside::Attachment;
use hostside::processor::Busy;

/// One queue of a port.
#[derive(Clone, Debug)]
pub struct QueueSnapshot {
    /// The setting in force.
    pub moderation: Moderation,
    /// What is in force: the numbers of the setting, or what DIM picked.
    pub in_force: Profile,
    /// What the queue has counted.
    pub counters: Counters,
}

impl QueueSnapshot {
    /// What `queue` shows now.
    pub fn of<F>(queue: &nic::queue::Queue<F>) -> Self {
        let (moderation, counters) = (*queue.moderation(), *queue.counters());
        Self { moderation, in_force: queue.in_force(), counters }
    }
}

/// What one port has counted.
#[derive(Clone, Debug)]
pub struct PortSnapshot {
    /// The interface's name in its host, such as `b0`.
    pub name: String,
    /// The queues, by number.
    pub queues: Vec<QueueSnapshot>,
    /// The sum of its queues, and the frames that reached none.
    pub counters: Counters,
    /// The marking rules.
    pub rules: String,
    /// Its lanes: each rule, and the packets that it has decided about.
    pub lanes: Vec<(String, u64)>,
    /// Holds of the packets that its host took.
    pub holds: Times,
    /// The link on which the frames of its host leave.
    pub link: LinkCounters,
    /// Frames that the host's stack refused to take, because the interface was down or out of
    /// memory.
    pub refused: u64,
    /// How its guest stands, if it is a port that guests connect to.
    pub attachment: Option<Attachment>,
    /// What its host's processor has been busy with, if that costs time.
    pub busy: Option<Busy>,
    /// Why the port is gone, if it is.
    pub vanished: Option<String>,
}

/// A whole data plane.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// When it was taken.
    pub at: Instant,
    /// CPU time of the data-plane thread.
    pub cpu: Duration,
    /// The part of it that was spent in the hosts' receive paths: handing a frame to a TAP runs
    /// the host's stack.
    pub delivering: Duration,
    /// The part of it that was spent waiting without sleeping.
    pub spun: Duration,
    /// By how many nanoseconds deadlines were overshot.
    pub overshoot: Times,
    /// The ports, by number.
    pub ports: Vec<PortSnapshot>,
}

impl Snapshot {
    /// What happened between `earlier` and this one; settings are those at the end.
    #[must_use]
    pub fn since(mut self, earlier: &Self) -> Self {
        let took = self.at.since(earlier.at);
        self.at = Instant::ZERO + took;
        self.cpu = self.cpu - earlier.cpu;
        self.delivering = self.delivering - earlier.delivering;
        self.spun = self.spun - earlier.spun;
        self.overshoot.subtract(&earlier.overshoot);
        for (port, before) in self.ports.iter_mut().zip(&earlier.ports) {
            port.counters = port.counters - before.counters;
            port.refused -= before.refused;
            for ((rule, packets), (same, earlier)) in port.lanes.iter_mut().zip(&before.lanes) {
                // Lanes that were set meanwhile have counted anew.
                if rule == same {
                    *packets = packets.checked_sub(*earlier).unwrap_or(*packets);
                }
            }
            port.link = port.link - before.link;
            port.holds.subtract(&before.holds);
            port.busy = port.busy.zip(before.busy).map(|(after, before)| after - before);
            for (queue, before) in port.queues.iter_mut().zip(&before.queues) {
                queue.counters = queue.counters - before.counters;
            }
        }
        self
    }
}

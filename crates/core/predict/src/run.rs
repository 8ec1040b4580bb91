//! One setting: its NIC, its host, and what is counted.

use alloc::string::ToString as _;
use alloc::vec::Vec;

use base::distribution::Distribution;
use base::quantiles::Quantiles;
use base::time::{Duration, Instant};
use base::times::Times;
use nic::lanes::{LaneError, Lanes};
use nic::marker::Rules;
use nic::moderation::{Marks, Moderation};
use nic::observer::Delivered;
use nic::port::{Port, PortSettings};
use nic::processor::Costs;

use crate::arrival::ArrivedPacket;
use crate::group::Groups;
use crate::host::PollingHost;
use crate::outcome::{GroupHolds, SettingOutcome};

/// Groups that an outcome lists.
const LISTED: usize = 32;

/// What all settings of a prediction have in common.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// Receive queues, at least 1.
    pub queues: u16,
    /// Packets that a queue's ring holds.
    pub ring: usize,
    /// Which packets are marked.
    pub rules: Rules,
    /// Which packets have a queue of their own under the setting `lane`; without any, those that
    /// `rules` would mark, on a queue more.
    pub lanes: Lanes,
    /// What interrupts and packets cost the host.
    pub costs: Costs,
    /// Where the phases of free-running ticks come from.
    pub seed: u64,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            queues: 1,
            ring: 1_024,
            rules: Rules::NONE,
            lanes: Lanes::NONE,
            costs: Costs::default(),
            seed: 1,
        }
    }
}

/// The arrivals under one setting.
#[derive(Debug)]
pub struct SettingRun {
    moderation: Moderation,
    port: Port<u16>,
    host: PollingHost,
    now: Instant,
    tally: HoldTally,
}

/// What is counted of packets that the host has taken.
#[derive(Debug)]
struct HoldTally {
    holds: Times,
    hold_sum: u64,
    hold_max: u64,
    taken: Option<Times>,
    groups: Vec<Option<Times>>,
}

impl HoldTally {
    #[inline]
    fn count(&mut self, delivered: &Delivered, group: u16) {
        let hold = delivered.hold.as_nanos();
        self.holds.record(hold);
        self.hold_sum += hold;
        self.hold_max = self.hold_max.max(hold);
        if let Some(taken) = &mut self.taken {
            taken.record(delivered.at.since(delivered.descriptor.completed_at).as_nanos());
        }
        let group = usize::from(group);
        if group >= self.groups.len() {
            self.groups.resize(group + 1, None);
        }
        self.groups[group].get_or_insert_with(|| Times::coarse(u64::MAX >> 1)).record(hold);
    }
}

impl SettingRun {
    /// A NIC under `moderation` to which nothing has come, at the time zero of its arrivals.
    ///
    /// # Errors
    /// If there are no queues for the lanes.
    pub fn new(moderation: Moderation, settings: &RunSettings) -> Result<Self, LaneError> {
        let RunSettings { queues, ring, rules, lanes, costs, seed } = settings;
        let has_lanes = moderation.marks == Marks::Lane;
        let queues = queues + u16::from(has_lanes);
        let port = PortSettings {
            queues,
            ring: *ring,
            moderation: moderation.of_queue(false),
            rules: rules.clone(),
            tick_seed: Some(*seed),
            ..PortSettings::default()
        };
        let mut port = Port::new(port, Instant::ZERO);
        if has_lanes {
            let of_rules = || rules.to_string().parse();
            port.set_lanes(if lanes.is_empty() { of_rules()? } else { lanes.clone() })?;
            let lanes: Vec<bool> = (0..queues).map(|queue| port.is_lane(queue)).collect();
            for (queue, is_lane) in port.queues_mut().iter_mut().zip(lanes) {
                queue.set_moderation(Instant::ZERO, moderation.of_queue(is_lane), &mut ());
            }
        }
        let host = PollingHost::new(*costs, queues);
        let taken = matches!(host, PollingHost::Charged { .. }).then(Times::default);
        let (holds, groups) = (Times::default(), Vec::new());
        let tally = HoldTally { holds, hold_sum: 0, hold_max: 0, taken, groups };
        Ok(Self { moderation, port, host, now: Instant::ZERO, tally })
    }

    /// A packet arrives, of a group of this number. Arrivals come in order.
    #[inline]
    pub fn arrive(&mut self, arrival: &ArrivedPacket, group: u16) {
        self.run_until(arrival.at);
        let length = arrival.length as usize;
        // What is dropped is counted.
        let _ = self.port.receive_sized(self.now, group, length, |_| arrival.headers, None);
        self.act();
    }

    #[inline]
    fn act(&mut self) {
        self.port.advance(self.now, &mut ());
        let tally = &mut self.tally;
        self.host.serve(self.now, &mut self.port, &mut |delivered, group| {
            tally.count(delivered, group);
        });
    }

    /// Lets timers and the host act up to `until`.
    #[inline]
    fn run_until(&mut self, until: Instant) {
        loop {
            let due = [self.port.deadline(), self.host.deadline()].into_iter().flatten().min();
            match due {
                Some(due) if due <= until => {
                    self.now = due.max(self.now);
                    self.act();
                }
                _ => break,
            }
        }
        self.now = until.max(self.now);
    }

    /// How long all packets so far have waited for their interrupts, in nanoseconds.
    #[must_use]
    pub fn hold_sum_ns(&self) -> u64 {
        self.tally.hold_sum
    }

    /// What it came to, after arrivals over `lasted`. What waits is let out; timers that no packet
    /// waits for do not count.
    #[must_use]
    pub fn finish(mut self, lasted: Duration, groups: &Groups) -> SettingOutcome {
        let end = self.now;
        while self.port.queues().iter().any(|queue| queue.in_ring() > 0) {
            let due = [self.port.deadline(), self.host.deadline()].into_iter().flatten().min();
            let Some(due) = due else { break };
            self.now = due.max(self.now);
            self.act();
        }
        let counters = self.port.counters();
        let interrupts = counters.interrupts_total();
        let seconds = lasted.as_nanos().max(1) as f64 / 1e9;
        let busy = self.host.busy_ns(end);
        let mut holds = Distribution::of(&self.tally.holds, 1);
        let least = holds.min_ns;
        holds.set_exact(least, self.tally.hold_max as i64, self.tally.hold_sum as i64);
        SettingOutcome {
            setting: self.moderation.to_string(),
            packets: counters.delivered,
            missed: counters.ring_full,
            marked: counters.marked,
            interrupts,
            interrupts_per_s: interrupts as f64 / seconds,
            packets_per_interrupt: counters.delivered as f64 / interrupts.max(1) as f64,
            hold_us: Quantiles::of(&holds),
            taken_us: self.tally.taken.and_then(|it| Quantiles::of(&Distribution::of(&it, 1))),
            host_busy: busy.map(|busy| busy as f64 / lasted.as_nanos().max(1) as f64),
            groups: listed(&self.tally.groups, groups),
        }
    }
}

/// The groups of most packets.
pub(crate) fn listed(times: &[Option<Times>], groups: &Groups) -> Vec<GroupHolds> {
    let of = |(number, times): (usize, &Option<Times>)| {
        let hold_us = Quantiles::of(&Distribution::of(times.as_ref()?, 1))?;
        Some(GroupHolds { name: groups.name(number), hold_us })
    };
    let mut all: Vec<GroupHolds> = times.iter().enumerate().filter_map(of).collect();
    all.sort_by(|a, b| (b.hold_us.count, &a.name).cmp(&(a.hold_us.count, &b.name)));
    all.truncate(LISTED);
    all
}

//! What is in force on port b0 while a plan is played in virtual time, and when it changes.
//!
//! It is read every 50 us. Linux's own adaptive moderation is compared with ours: b0 is moderated
//! once by our `adaptive`, and once by the driver of guest b. `ethtool -C b0 adaptive-rx on` starts
//! Linux's DIM there, and what it decides comes back to the NIC as commands of the control queue.
//! With one of Intel's NICs, the driver of guest b is the one of the kernel, unmodified, and what
//! is read is the register of the vector that received frames interrupt on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::dataplane::DataPlane;
use lab::guest::protocol::{Order, Spawn, TimedCommand};
use lab::names;
use nic::moderation::{Moderation, Profile};
use serde::Serialize;

use super::script::{self, environment, order_at};
use super::virtual_run::{VirtualRun, instant, with_usual_cable};
use super::virtual_time::{Outputs, records};
use crate::experiment::{A, B, Plan};
use crate::options::{NicOptions, Ports};
use crate::slice::Slice;

/// From one reading to the next.
const STEP: Duration = Duration::from_micros(50);

/// When the NIC, or the guest's driver, starts to adapt.
const ADAPT_AT: Duration = Duration::from_millis(800);

/// The number of a program that no plan has so many programs for.
const ETHTOOL: u32 = 1_000;

/// Who decides on moderation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decider {
    /// Our `adaptive`, in the NIC.
    Nic,
    /// The DIM of the guest's driver.
    Linux,
}

/// A profile, and since when it was in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Microseconds since the start of the traffic.
    pub at_us: u64,
    /// How many interrupts the port had raised since then.
    pub interrupts: u64,
    /// The delay, in microseconds.
    pub rx_usecs: u32,
    /// The frame count.
    pub rx_frames: u32,
}

/// An interval, and since when the NIC had it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Microseconds since the start of the traffic.
    pub at_us: u64,
    /// The least time between two interrupts for received frames, in microseconds; 0 is none.
    pub interval_us: f64,
}

/// A plan to observe; `late` are players, by their place in the plan, that go when half of the time
/// has passed.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// What is played.
    pub plan: &'a Plan,
    /// The players that go later.
    pub late: &'a [usize],
}

/// Readings, each with microseconds since the start of the traffic.
type Readings<T> = Arc<Mutex<Vec<(u64, T)>>>;

impl Observed<'_> {
    fn seconds(&self) -> f64 {
        self.plan.warmup_s + self.plan.duration_s
    }

    /// The run of the plan, in which `read` will read b0; guest b obeys `more` besides.
    fn prepare<T: Send + 'static>(
        &self,
        options: &NicOptions,
        setting: Moderation,
        more: Option<TimedCommand>,
        read: fn(&mut DataPlane) -> Option<T>,
    ) -> Result<(VirtualRun, Readings<T>)> {
        let options = with_usual_cable(options);
        let mut scripts = script::of(self.plan, &options)?;
        let go_at = script::go_at(&options);
        self.delay(&mut scripts, go_at + Duration::from_secs_f64(self.seconds() / 2.0));
        scripts[B].extend(more);
        let scripts = (scripts, vec![A, B]);
        let run = VirtualRun::prepare(&names(2), &options, setting, scripts, self.plan.seed)?;
        let readings = Readings::default();
        let mut since_go = Duration::ZERO;
        while since_go.as_secs_f64() < self.seconds() {
            let (all, at_us) = (Arc::clone(&readings), since_go.as_micros() as u64);
            run.at(instant(go_at + since_go), move |plane: &mut DataPlane| {
                let reading = read(plane).map(|reading| (at_us, reading));
                all.lock().unwrap_or_else(PoisonError::into_inner).extend(reading);
            })?;
            since_go += STEP;
        }
        Ok((run, readings))
    }

    /// Lets the players that are late go `at` a later moment.
    fn delay(&self, scripts: &mut [Vec<TimedCommand>], at: Duration) {
        for (place, part) in script::parts(self.plan).enumerate() {
            let of_the_part = |cue: &&mut TimedCommand| cue.program == part.program;
            for cue in scripts[part.host].iter_mut().filter(of_the_part) {
                if self.late.contains(&place) && matches!(cue.order, Order::Input(_)) {
                    cue.at_us = at.as_micros() as u64;
                }
            }
        }
    }

    /// The profiles that were in force, as `decider` decided.
    pub fn changes(&self, decider: Decider) -> Result<Vec<Change>> {
        // Where `adaptive` begins.
        let setting: Moderation = "delay:8+frames:256".parse()?;
        let options = NicOptions { ports: Some(Ports::B), ..NicOptions::default() };
        let ethtool = Spawn {
            words: ["ethtool", "-C", "b0", "adaptive-rx", "on"].map(Into::into).into(),
            environment: environment(),
            ..Spawn::default()
        };
        let ethtool = order_at(ADAPT_AT, ETHTOOL, Order::Spawn(ethtool));
        let ethtool = (decider == Decider::Linux).then_some(ethtool);
        let (mut run, readings) = self.prepare(&options, setting, ethtool, |plane| {
            let queue = plane.plane().port_mut(B).queues().first()?;
            Some((queue.counters().interrupts_total(), queue.in_force()))
        })?;
        if decider == Decider::Nic {
            // At the same moment: what either counts before it has an effect on what it does later.
            run.set(instant(ADAPT_AT), "adaptive".parse()?)?;
        }
        let outputs = play(&mut run)?;
        if let Some(output) = outputs.get(&(B, ETHTOOL)) {
            let end = output.end.as_deref().unwrap_or_default();
            let next = if output.is_missing { "; apt-get install ethtool" } else { "" };
            ensure!(output.succeeded || end.is_empty(), "ethtool in guest b {end}{next}");
        }
        only_changes(taken(&readings)).context("virtual time ended before the traffic began")
    }

    /// The intervals that b0 had under `setting`, in their order, and what was measured. Guests
    /// have one of Intel's NICs, as `options` say.
    pub fn intervals(
        &self,
        options: &NicOptions,
        setting: Moderation,
    ) -> Result<(Vec<Interval>, Slice)> {
        let read = |plane: &mut DataPlane| plane.plane().interval(B, 0);
        let (mut run, readings) = self.prepare(options, setting, None, read)?;
        let moment = |seconds| instant(script::go_at(options) + Duration::from_secs_f64(seconds));
        let before = run.snapshot_at(moment(self.plan.warmup_s))?;
        let after = run.snapshot_at(moment(self.seconds()))?;
        let outputs = play(&mut run)?;
        let stopped = "virtual time ended before the measurement did";
        let before = before.try_recv().context(stopped)?;
        let nic = after.try_recv().context(stopped)?.since(&before);
        let mut readings = taken(&readings);
        readings.dedup_by_key(|(_, interval)| *interval);
        let interval = |(at_us, interval): (u64, base::time::Duration)| Interval {
            at_us,
            interval_us: interval.as_nanos() as f64 / 1e3,
        };
        let slice = Slice::new(records(self.plan, &outputs)?, &nic);
        Ok((readings.into_iter().map(interval).collect(), slice))
    }
}

fn play(run: &mut VirtualRun) -> Result<Outputs> {
    let mut outputs = Outputs::new();
    run.play(&mut |guest, program, event| {
        outputs.entry((guest, program)).or_default().note(event);
    })?;
    Ok(outputs)
}

fn taken<T>(readings: &Readings<T>) -> Vec<(u64, T)> {
    std::mem::take(&mut *readings.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Interrupts counted from the first reading, and no profile twice in a row.
fn only_changes(mut readings: Vec<(u64, (u64, Profile))>) -> Option<Vec<Change>> {
    let (_, (before, _)) = *readings.first()?;
    readings.dedup_by_key(|(_, (_, profile))| *profile);
    let change = |(at_us, (interrupts, profile)): (u64, (u64, Profile))| {
        let Profile { rx_usecs, rx_frames } = profile;
        Change { at_us, interrupts: interrupts - before, rx_usecs, rx_frames }
    };
    Some(readings.into_iter().map(change).collect())
}

/// The share of `end_us` microseconds for which each interval was in force, by nanoseconds.
pub fn shares(intervals: &[Interval], end_us: u64) -> BTreeMap<u64, f64> {
    let ends = intervals.iter().skip(1).map(|next| next.at_us).chain([end_us]);
    let mut shares = BTreeMap::new();
    for (interval, end) in intervals.iter().zip(ends) {
        let nanos = (interval.interval_us * 1e3) as u64;
        *shares.entry(nanos).or_default() +=
            end.saturating_sub(interval.at_us) as f64 / end_us.max(1) as f64;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_that_stays_is_kept_once() {
        let read = |at_us, interrupts, rx_usecs| {
            (at_us, (interrupts, Profile { rx_usecs, rx_frames: 256 }))
        };
        let all = vec![read(0, 7, 8), read(50, 9, 8), read(100, 71, 64), read(150, 72, 8)];
        let kept = only_changes(all).unwrap();
        let kept: Vec<_> = kept.iter().map(|it| (it.at_us, it.interrupts, it.rx_usecs)).collect();
        assert_eq!(kept, [(0, 0, 8), (100, 64, 64), (150, 65, 8)]);
        assert_eq!(only_changes(Vec::new()), None);
    }

    #[test]
    fn shares_add_up_what_each_interval_had() {
        let at = |at_us, interval_us| Interval { at_us, interval_us };
        let intervals = [at(0, 50.0), at(250, 14.336), at(500, 50.0)];
        let shares = shares(&intervals, 1_000);
        assert_eq!(shares, BTreeMap::from([(14_336, 0.25), (50_000, 0.75)]));
    }
}

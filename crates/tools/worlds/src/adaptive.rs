//! What is in force on port b0 while a plan is played in virtual time, and when it changes.
//!
//! It is read every 50 us. Linux's own adaptive moderation is compared with ours: b0 is moderated
//! once by our `adaptive`, and once by the driver of guest b. `ethtool -C b0 adaptive-rx on` starts
//! Linux's DIM there, and what it decides comes back to the NIC as commands of the control queue.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::dataplane::DataPlane;
use lab::guest::protocol::{Order, Spawn, TimedCommand};
use lab::names;
use nic::moderation::{Moderation, Profile};
use serde::Serialize;

use crate::script::{self, environment, order_at};
use crate::virtual_run::{VirtualRun, instant, with_usual_cable};
use crate::virtual_time::play;
use bench::experiment::{A, B, Plan};
use bench::options::{NicOptions, Ports};

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

/// A plan to observe; `late` are players, by their place in the plan, that go when half of the time
/// has passed.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// What is played.
    pub plan: &'a Plan,
    /// The players that go later.
    pub late: &'a [usize],
}

/// Microseconds since the start of the traffic, interrupts of the port, and what is in force.
type ProfileAt = (u64, u64, Profile);

impl Observed<'_> {
    fn seconds(&self) -> f64 {
        self.plan.warmup_s + self.plan.duration_s
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
        let options = with_usual_cable(&options);
        let mut scripts = script::of(self.plan, &options)?;
        let go_at = script::go_at(&options);
        self.delay(&mut scripts, go_at + Duration::from_secs_f64(self.seconds() / 2.0));
        if decider == Decider::Linux {
            let words = ["ethtool", "-C", "b0", "adaptive-rx", "on"].map(Into::into).into();
            let ethtool = Spawn { words, environment: environment(), ..Spawn::default() };
            scripts[B].push(order_at(ADAPT_AT, ETHTOOL, Order::Spawn(ethtool)));
        }
        let (scripts, seed) = ((scripts, vec![A, B]), self.plan.seed);
        let mut run = VirtualRun::prepare(&names(2), &options, setting, scripts, seed)?;
        let readings = Arc::<Mutex<Vec<ProfileAt>>>::default();
        let mut since_go = Duration::ZERO;
        while since_go.as_secs_f64() < self.seconds() {
            let (all, at_us) = (Arc::clone(&readings), since_go.as_micros() as u64);
            run.at(instant(go_at + since_go), move |plane: &mut DataPlane| {
                let Some(queue) = plane.plane().port_mut(B).queues().first() else { return };
                let reading = (at_us, queue.counters().interrupts_total(), queue.in_force());
                all.lock().unwrap_or_else(PoisonError::into_inner).push(reading);
            })?;
            since_go += STEP;
        }
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
        let readings =
            std::mem::take(&mut *readings.lock().unwrap_or_else(PoisonError::into_inner));
        only_changes(readings).context("virtual time ended before the traffic began")
    }
}

/// Interrupts counted from the first reading, and no profile twice in a row.
fn only_changes(mut readings: Vec<ProfileAt>) -> Option<Vec<Change>> {
    let (_, before, _) = *readings.first()?;
    readings.dedup_by_key(|(_, _, profile)| *profile);
    let change = |(at_us, interrupts, profile): ProfileAt| {
        let Profile { rx_usecs, rx_frames } = profile;
        Change { at_us, interrupts: interrupts - before, rx_usecs, rx_frames }
    };
    Some(readings.into_iter().map(change).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_that_stays_is_kept_once() {
        let read =
            |at_us, interrupts, rx_usecs| (at_us, interrupts, Profile { rx_usecs, rx_frames: 256 });
        let all = vec![read(0, 7, 8), read(50, 9, 8), read(100, 71, 64), read(150, 72, 8)];
        let kept = only_changes(all).unwrap();
        let kept: Vec<_> = kept.iter().map(|it| (it.at_us, it.interrupts, it.rx_usecs)).collect();
        assert_eq!(kept, [(0, 0, 8), (100, 64, 64), (150, 65, 8)]);
        assert_eq!(only_changes(Vec::new()), None);
    }
}

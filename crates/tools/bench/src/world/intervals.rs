//! The intervals that one of Intel's drivers asks its NIC for, and what comes of them, in virtual
//! time.
//!
//! The driver of guest b is the one of the kernel, unmodified. While a plan is played, the register
//! of the vector that received frames interrupt on is read every 50 us, and its changes are kept.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use lab::dataplane::DataPlane;
use lab::names;
use nic::moderation::Moderation;
use serde::Serialize;

use super::adaptive::{STEP, delay};
use super::script;
use super::virtual_run::{VirtualRun, instant, with_usual_cable};
use super::virtual_time::{Outputs, records};
use crate::experiment::{A, B, Plan};
use crate::options::NicOptions;
use crate::slice::Slice;

/// An interval, and since when the NIC had it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Microseconds since the start of the traffic.
    pub at_us: u64,
    /// The least time between two interrupts for received frames, in microseconds; 0 is none.
    pub interval_us: f64,
}

/// What came of a plan.
#[derive(Debug)]
pub struct Traced {
    /// Each interval that port b0 had, in their order.
    pub intervals: Vec<Interval>,
    /// What was measured.
    pub slice: Slice,
}

/// Plays `plan` between guests with one of Intel's NICs, under `setting`; `late` are players, by
/// their place in the plan, that go when half of the time has passed.
pub fn intervals(
    plan: &Plan,
    late: &[usize],
    options: &NicOptions,
    setting: Moderation,
) -> Result<Traced> {
    let options = with_usual_cable(options);
    let mut scripts = script::of(plan, &options)?;
    let go_at = script::go_at(&options);
    let seconds = plan.warmup_s + plan.duration_s;
    delay(plan, late, &mut scripts, go_at + Duration::from_secs_f64(seconds / 2.0));
    let scripts = (scripts, vec![A, B]);
    let mut run = VirtualRun::prepare(&names(2), &options, setting, scripts, plan.seed)?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut since_go = Duration::ZERO;
    while since_go.as_secs_f64() < seconds {
        observe(&run, go_at, since_go, &seen)?;
        since_go += STEP;
    }
    let before = run.snapshot_at(instant(go_at + Duration::from_secs_f64(plan.warmup_s)))?;
    let after = run.snapshot_at(instant(go_at + Duration::from_secs_f64(seconds)))?;
    let mut outputs = Outputs::new();
    run.play(&mut |guest, program, event| {
        outputs.entry((guest, program)).or_default().note(event);
    })?;
    let stopped = "virtual time ended before the measurement did";
    let before = before.try_recv().context(stopped)?;
    let nic = after.try_recv().context(stopped)?.since(&before);
    let slice = Slice::new(records(plan, &outputs)?, &nic);
    let intervals = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Traced { intervals, slice })
}

/// Will look which interval b0 has then, and keep it if it is another one than before.
fn observe(
    run: &VirtualRun,
    go_at: Duration,
    since_go: Duration,
    seen: &Arc<Mutex<Vec<Interval>>>,
) -> Result<()> {
    let seen = Arc::clone(seen);
    run.at(instant(go_at + since_go), move |plane: &mut DataPlane| {
        let Some(interval) = plane.plane().interval(B, 0) else { return };
        let interval_us = interval.as_nanos() as f64 / 1e3;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.last().is_none_or(|last| last.interval_us != interval_us) {
            seen.push(Interval { at_us: since_go.as_micros() as u64, interval_us });
        }
    })
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
    fn shares_add_up_what_each_interval_had() {
        let at = |at_us, interval_us| Interval { at_us, interval_us };
        let intervals = [at(0, 50.0), at(250, 14.336), at(500, 50.0)];
        let shares = shares(&intervals, 1_000);
        assert_eq!(shares, BTreeMap::from([(14_336, 0.25), (50_000, 0.75)]));
    }
}

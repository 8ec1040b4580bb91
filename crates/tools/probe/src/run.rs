//! Sends what a plan asks for, when it asks for it, and collects what came of it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use infer::{MeasuredTrain, Plan, Probe, Train};
use sys::clock::wall_clock_nanos;

use super::prober::Prober;
use super::spin::pass_time;
use sys::ctrl_c::{self, Interrupted};

/// How long before a moment this thread stops sleeping: a timer is late by about that, and spinning
/// takes a core from others. The kernel reports when a probe left.
const SPIN_FOR: Duration = Duration::from_micros(60);

/// A gap in which there is time to look for answers.
const RECEIVE_TAKES: Duration = Duration::from_micros(20);

/// How long after the last probe of a train an answer is waited for.
const TIMEOUT: Duration = Duration::from_millis(100);

/// How much may be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The most packets; 0: what the plan likes.
    pub count: u32,
    /// The most packets a second, even within a train; 0: no limit.
    pub rate: u32,
}

/// A plan for what `prober` can do.
pub fn plan(prober: &Prober, limits: Limits) -> Plan {
    Plan::new(prober.abilities(limits), u64::from(std::process::id()))
}

/// Carries out a whole plan. A Ctrl-C that is watched ends it once something was heard; whether
/// that was all.
pub fn run(prober: &mut Prober, plan: &mut Plan) -> Result<bool> {
    match run_paced(prober, plan, |_| Ok(ctrl_c::check()?)) {
        Err(error) if error.is::<Interrupted>() && !plan.heard().is_empty() => Ok(false),
        ended => ended.map(|()| true),
    }
}

/// The same, but `wait` comes before each train, with its number of packets.
pub fn run_paced(
    prober: &mut Prober,
    plan: &mut Plan,
    mut wait: impl FnMut(usize) -> Result<()>,
) -> Result<()> {
    while let Some(train) = plan.next_train() {
        wait(train.sends.len())?;
        let heard = send(prober, train).with_context(|| {
            format!("probe {}; does its {} still run?", prober.address, prober.kind().name())
        })?;
        plan.record(heard);
    }
    Ok(())
}

fn send(prober: &mut Prober, train: Train) -> Result<MeasuredTrain> {
    let begin = Instant::now() + Duration::from_nanos(train.quiet.as_nanos());
    let probes = vec![
        Probe { sent: 0, received: None, nic: None, far: None, silent: false };
        train.sends.len()
    ];
    let mut replies = Replies { base: train.number << 16, first_stamp: prober.count(), probes };
    for (at, to_send) in train.sends.iter().enumerate() {
        let due = begin + Duration::from_nanos(to_send.at.as_nanos());
        await_moment(due, || replies.take(prober))?;
        replies.probes[at].sent = wall_clock_nanos();
        replies.probes[at].silent = to_send.silent;
        if to_send.silent {
            prober.send_silent()?;
        } else {
            prober.request(replies.base + at as u32, to_send.wait.as_nanos(), train.length)?;
        }
    }
    let end = Instant::now() + TIMEOUT;
    let is_missing = |probe: &Probe| !probe.silent && probe.received.is_none();
    while replies.probes.iter().any(is_missing) && Instant::now() < end {
        replies.take(prober)?;
        sleep(Duration::from_micros(50));
    }
    replies.take(prober)?;
    let mut probes = replies.probes;
    for probe in &mut probes {
        // Times of a clock that was set meanwhile are of no use.
        probe.received = probe.received.filter(|received| *received >= probe.sent);
        probe.nic = probe.nic.filter(|_| probe.received.is_some());
        probe.far = probe.far.filter(|_| probe.received.is_some());
    }
    Ok(MeasuredTrain { train, probes })
}

/// Waits until `due`, and looks around as long as there is time.
fn await_moment(due: Instant, mut look: impl FnMut() -> Result<()>) -> Result<()> {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        if left > SPIN_FOR {
            look()?;
            sleep(due.saturating_duration_since(Instant::now()).saturating_sub(SPIN_FOR));
        } else if left > RECEIVE_TAKES {
            look()?;
            pass_time(due);
        } else {
            pass_time(due);
        }
    }
}

struct Replies {
    base: u32,
    first_stamp: u32,
    probes: Vec<Probe>,
}

impl Replies {
    /// Takes the answers and the stamps that have come. They share the socket's room: stamps that
    /// are not taken leave none for answers.
    fn take(&mut self, prober: &mut Prober) -> Result<()> {
        while let Some(heard) = prober.receive()? {
            // One of an earlier train that came too late has another base.
            let number = heard.number.wrapping_sub(self.base) as usize;
            if let Some(probe) = self.probes.get_mut(number) {
                probe.received.get_or_insert(heard.at);
                probe.nic = probe.nic.or(heard.nic);
                probe.far = probe.far.or(heard.far);
            }
        }
        // The kernel's word on when each left is better than ours.
        while let Some((number, at)) = prober.transmitted()? {
            let number = number.wrapping_sub(self.first_stamp) as usize;
            if let Some(probe) = self.probes.get_mut(number) {
                probe.sent = at;
            }
        }
        Ok(())
    }
}

//! What is asked of a capture, and what the usual answers are where the user says nothing.

use core::net::IpAddr;

use anyhow::{Context, Result, ensure};
use nic::lanes::Lanes;
use nic::marker::{Rules, USUAL_RULES};
use nic::moderation::{Marks, Moderation, TimerKind};
use nic::processor::Costs;
use predict::{By, Question, RunSettings};

/// Settings that are compared where none are named.
pub(crate) const USUAL: [&str; 6] =
    ["disabled", "delay:20", "delay:75", "throttle:50", "adaptive", "marked:75"];

/// Arrivals that a grid and proposals are made of, at most: some 40 MB.
const SAMPLE: usize = 500_000;

/// Timers that a grid may be of, by their names.
pub(crate) const GRIDS: [&str; 3] = ["delay", "throttle", "periodic"];

/// The timer of that name, if a grid may be of it.
pub(crate) fn grid_timer(name: &str) -> Option<TimerKind> {
    let timers = [TimerKind::Delay, TimerKind::Throttle, TimerKind::Periodic];
    GRIDS.into_iter().zip(timers).find(|(known, _)| *known == name).map(|(_, timer)| timer)
}

/// What the user asks of a capture.
#[derive(Clone, Debug)]
pub struct CaptureQuestion {
    /// Settings to compare.
    pub compare: Vec<Moderation>,
    /// Which packets are marked; `None`: the usual ones, and rules are proposed.
    pub mark: Option<Rules>,
    /// Which packets have a queue of their own under `lane`.
    pub lane: Option<Lanes>,
    /// The timer of which a grid is searched.
    pub grid: Option<TimerKind>,
    /// By what holds are listed.
    pub by: By,
    /// The host whose arrivals count; `None`: the one at which the capture was made.
    pub host: Option<IpAddr>,
    /// The interface of the capture; `None`: the busiest.
    pub interface: Option<String>,
    /// Rate of the wire in Mbit/s, if it is known.
    pub link_rate_mbit: Option<u32>,
    /// Receive queues, over which packets go by their hash.
    pub queues: u16,
    /// Packets that a receive ring holds.
    pub ring: usize,
    /// What interrupts and packets cost the host.
    pub costs: Costs,
    /// Seed of the phases of `periodic`.
    pub seed: u64,
}

impl Default for CaptureQuestion {
    fn default() -> Self {
        Self {
            compare: USUAL.map(|text| text.parse().expect("a setting")).into(),
            mark: None,
            lane: None,
            grid: None,
            by: By::Port,
            host: None,
            interface: None,
            link_rate_mbit: None,
            queues: 1,
            ring: 1_024,
            costs: Costs::default(),
            seed: 1,
        }
    }
}

impl CaptureQuestion {
    /// The question for the engine.
    ///
    /// # Errors
    /// If a setting is one that a capture cannot answer.
    pub fn question(self) -> Result<Question> {
        ensure!(
            self.compare.iter().all(|setting| setting.timer != TimerKind::Driver),
            "driver: what a driver writes into registers is not in a capture; name a strategy, such \
             as itr:3 for e1000e"
        );
        let propose = self.mark.is_none().then(|| self.to_propose_for()).transpose()?;
        let rules = match self.mark {
            Some(rules) => rules,
            None => USUAL_RULES.parse().context("the usual marking rules")?,
        };
        Ok(Question {
            compare: self.compare,
            run: RunSettings {
                queues: self.queues,
                ring: self.ring,
                rules,
                lanes: self.lane.unwrap_or(Lanes::NONE),
                costs: self.costs,
                seed: self.seed,
            },
            by: self.by,
            host: self.host,
            interface: self.interface,
            link_rate: self.link_rate_mbit.map(|mbit| u64::from(mbit) * 1_000_000),
            grid: self.grid,
            propose,
            sample: SAMPLE,
        })
    }

    /// The setting that marks are proposed for: the first that has them, or else that could.
    fn to_propose_for(&self) -> Result<Moderation> {
        let mut marked = self.compare.iter().filter(|it| it.marks != Marks::Ignored);
        let delay =
            || self.compare.iter().find(|it| it.timer == TimerKind::Delay && it.rx_usecs > 0);
        match marked.next().or_else(delay) {
            Some(setting) => Ok(*setting),
            None => "delay:75".parse().context("the usual delay"),
        }
    }
}

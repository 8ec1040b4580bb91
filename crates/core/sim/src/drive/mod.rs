//! Applications that make random requests, checked against the model.
//!
//! A run has parts: for a while applications do what their [habits](crate::seeds::Habits) say, at
//! random times, under faults; then the faults end, what waits is received, and everything has to
//! come to an end; at last all endpoints close. The [model](crate::model) watches throughout.

mod actions;
mod quiesce;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use base::prng::Prng;
use base::time::{Duration, Instant};
use bytes::Bytes;
use mx::ids::{PeerId, ReceiveId};
use mx::status::{Event, RequestError};

use crate::model::{ConnectionSide, Model};
use crate::seeds::Setup;
use crate::world::{Counts, Occurrence, SimEndpoint, World, address};

/// What came of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunReport {
    /// What is wrong: nothing, one hopes.
    pub faults: Vec<String>,
    /// Two runs of one seed have the same.
    pub hash: u64,
    /// What was counted.
    pub counts: Counts,
    /// Messages that were sent.
    pub messages: usize,
    /// Length in simulated time.
    pub took: Duration,
}

/// A host as its application sees it.
#[derive(Debug, Default)]
struct App {
    life: u32,
    is_up: bool,
    is_closing: bool,
    /// Its peers, by number of the host.
    known: BTreeMap<usize, PeerId>,
    /// Its receives that have not ended.
    open: Vec<(ReceiveId, usize)>,
}

/// A run of applications and their checks.
#[derive(Debug)]
pub struct Drive {
    setup: Setup,
    random: Prng,
    world: World,
    model: Model,
    apps: Vec<App>,
    /// Whether faults still happen.
    is_rough: bool,
}

/// What an alarm is for: the highest byte of its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alarm {
    Act,
    Reconnect(usize, usize),
    Wake(usize),
    Begin(usize),
}

impl Alarm {
    const fn number(self) -> u64 {
        match self {
            Self::Act => 0,
            Self::Reconnect(one, other) => 1 << 32 | (one as u64) << 16 | other as u64,
            Self::Wake(host) => 2 << 32 | host as u64,
            Self::Begin(host) => 3 << 32 | host as u64,
        }
    }

    const fn of(number: u64) -> Self {
        let [one, other] = [(number >> 16) as u16 as usize, number as u16 as usize];
        match number >> 32 {
            0 => Self::Act,
            1 => Self::Reconnect(one, other),
            2 => Self::Wake(other),
            _ => Self::Begin(other),
        }
    }
}

/// Runs a seed with what it decides. `contents` are those of [`crate::model::contents`].
pub fn run(seed: u64, contents: Bytes) -> RunReport {
    Drive::new(seed, Setup::new(seed), contents).run()
}

impl Drive {
    /// A run that has not begun.
    pub fn new(seed: u64, setup: Setup, contents: Bytes) -> Self {
        let mut random = Prng::new(!seed);
        let world = World::new(setup.wires, setup.hosts, random.next_u64());
        let apps = (0..setup.hosts).map(|_| App::default()).collect();
        Self { setup, random, world, model: Model::new(contents), apps, is_rough: true }
    }

    /// Runs to the end.
    pub fn run(mut self) -> RunReport {
        for host in 0..self.setup.hosts {
            self.begin(host);
        }
        let span = self.setup.habits.span;
        for _ in 0..self.setup.habits.actions {
            let at = self.world.now() + Duration::from_nanos(self.random.below(span.as_nanos()));
            self.world.alarm(at, Alarm::Act.number());
        }
        self.go_on(self.world.now() + span);
        self.quiesce();
        let took = self.world.now().since(Instant::ZERO);
        self.check_costs();
        if self.setup.wires.hostile {
            self.model.faults.clear();
        }
        RunReport {
            faults: self.model.faults,
            hash: self.world.hash(),
            counts: self.world.counts(),
            messages: self.model.sent.len(),
            took,
        }
    }

    /// A life of a host begins.
    fn begin(&mut self, host: usize) {
        let seed = self.random.next_u64();
        let mut end =
            SimEndpoint::new(self.setup.config, address(host), seed).expect("settings in range");
        if let Some(after) = self.setup.wraps_after {
            end.number_from(0_u32.wrapping_sub(after));
        }
        self.world.start_with(host, end);
        let life = self.apps[host].life + 1;
        self.apps[host] = App { life, is_up: true, ..App::default() };
    }

    /// Goes on until that time, or until nothing happens any more.
    fn go_on(&mut self, until: Instant) {
        while let Some(occurrence) = self.world.next(until) {
            match occurrence {
                Occurrence::Event(host, event) => self.on_event(host, event),
                Occurrence::Alarm(number) => self.rang(Alarm::of(number)),
            }
        }
    }

    fn rang(&mut self, alarm: Alarm) {
        match alarm {
            Alarm::Act => self.act(),
            Alarm::Reconnect(one, other) => self.world.cut(one, other, false),
            Alarm::Wake(host) => self.world.sleep(host, false),
            Alarm::Begin(host) if !self.apps[host].is_up => self.begin(host),
            Alarm::Begin(_) => {}
        }
    }

    fn side(&self, host: usize, peer: PeerId) -> ConnectionSide {
        (host, self.apps[host].life, peer)
    }

    /// An endpoint has an event.
    fn on_event(&mut self, host: usize, event: Event<Vec<u8>>) {
        let is_own = self.apps[host].is_closing;
        let peace = self.setup.habits.are_peaceful() && self.is_rough;
        match event {
            Event::Sent(_, status) => {
                if peace && !matches!(status.result, Ok(()) | Err(RequestError::Truncated)) {
                    self.model.fault(format!("a send failed in peace: {status:?}"));
                }
                self.model.send_ended(status.context, &status, is_own);
            }
            Event::Received(id, status, data) => {
                self.apps[host].open.retain(|(open, _)| *open != id);
                if peace
                    && !matches!(
                        status.result,
                        Ok(()) | Err(RequestError::Truncated | RequestError::Cancelled)
                    )
                {
                    self.model.fault(format!("a receive failed in peace: {status:?}"));
                }
                self.model.receive_ended(status.context as usize, &status, &data, is_own);
            }
            Event::Connected(_, Ok(())) => {}
            Event::Connected(id, Err(error)) => {
                // A peer that was one already may be lost besides, or be silent for now.
                let is_there = self.world.end(host).is_some_and(|end| end.has_peer(id));
                if !is_there && !self.model.lost.contains_key(&self.side(host, id)) {
                    self.lost(host, id, error, peace);
                }
            }
            Event::Lost(id, error) => self.lost(host, id, error, peace),
        }
    }

    fn lost(&mut self, host: usize, id: PeerId, error: RequestError, peace: bool) {
        let side = self.side(host, id);
        self.apps[host].known.retain(|_, known| *known != id);
        if peace || error == RequestError::Protocol {
            self.model.fault(format!("{side:?} was lost: {error:?}"));
        }
        if self.model.lost.insert(side, error).is_some() {
            self.model.fault(format!("{side:?} was lost twice"));
        }
    }

    /// Whether timers and frames were few enough.
    fn check_costs(&mut self) {
        let counts = self.world.counts();
        let bytes: u64 = self.model.sent.iter().map(|message| message.length).sum();
        if counts.unmarked > 0 {
            self.model.fault(format!("{} batches ended without a mark", counts.unmarked));
        }
        let config = &self.setup.config;
        let frames = bytes / u64::from(config.mtu - 100) + 8 * self.model.sent.len() as u64;
        let micros = self.world.now().since(Instant::ZERO).as_micros();
        let hosts = self.setup.hosts as u64;
        // Each pair may probe, repeat and acknowledge now and then.
        let idle = hosts * hosts * (50 + micros / 2_000);
        if counts.sent > 10 * frames + idle || counts.expired > 10 * frames + idle {
            self.model.fault(format!("too much work for {frames} frames, {micros} us: {counts:?}"));
        }
    }

    /// The peer of `host` that `other` is, if there is one.
    fn peer(&self, host: usize, other: usize) -> Option<PeerId> {
        self.world.end(host).and_then(|end| end.peer_at(address(other)))
    }
}

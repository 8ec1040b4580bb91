//! Tracing at a price that is set beforehand.
//!
//! Every event costs the traced program time, and at ten thousand requests a second tracing all of
//! them would cost a tenth of a processor. A few thousand requests say as much. So tracing is on in
//! *windows*, and off between them, for as long as it takes for its cost to be no more than
//! [`SHARE`] of the time of one processor. The cost is our own CPU time, which is measured, and that
//! of the kernel, for which each event counts [`EVENT`]. Where few packets come, the window never
//! ends.
//!
//! Wake-ups would be the most frequent events by far on a busy machine. Only those of threads that
//! send or receive are let pass, once these are known.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use linux::clock;
use linux::perf::tracefs::Tracefs;
use linux::perf::{Missing, Session, Unit, Wish};

use super::decode::Decoder;
use super::engine::{Engine, Odds, Path};
use super::event::{Event, What};
use super::wishes::wishes;

/// What tracing may cost, of one processor: 1 %, with a margin for what is not counted.
pub const SHARE: f64 = 0.008;

/// What an event costs the kernel, in nanoseconds: 650 on a virtual machine, 200 to 300 on others
/// (`cargo run --release -p earmark-linux --example perf_cost`).
const EVENT: u64 = 1_000;

/// So many threads can be named in a filter; where there are more, the wake-ups of all are seen.
const ACTORS: usize = 40;

/// How long a window is at least, in nanoseconds; and how often rings are emptied in one.
const WINDOW: u64 = 25_000_000;
const GLANCE: Duration = Duration::from_millis(12);

/// Who is traced.
#[derive(Clone, Debug)]
pub enum Target {
    /// A thread, and what it starts; of the network only this device, if one is named.
    Task {
        /// The thread.
        tid: u32,
        /// The device.
        device: Option<String>,
        /// The thread's own name, if nobody but it is woken for what matters.
        name: Option<String>,
    },
    /// Everything that a device receives.
    Device(String),
}

/// What was traced, and what was not.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Account {
    /// The tracepoints that were used.
    pub events: Vec<&'static str>,
    /// Those that were not there, and why.
    pub missing: Vec<(&'static str, String)>,
    /// Whether tracefs had to be mounted, for this process alone.
    pub private_tracefs: bool,
    /// Events that were seen.
    pub seen: u64,
    /// Packets received, and interrupts served, in windows.
    pub packets: u64,
    /// Interrupts that asked for receiving, in windows.
    pub interrupts: u64,
    /// Seconds in windows, and altogether.
    pub traced_s: f64,
    /// Seconds altogether.
    pub elapsed_s: f64,
    /// CPU time of the thread that traces, in seconds.
    pub own_cpu_s: f64,
    /// What could not be followed.
    pub odds: Odds,
}

/// Traces.
pub struct Tracer {
    tracefs: Tracefs,
    session: Session,
    decoder: Decoder,
    engine: Engine,
    events: Vec<Event>,
    account: Account,
    share: f64,
    /// When the first window began, when this one did, and what it had cost before.
    began: u64,
    window: Option<(u64, u64)>,
    /// Until when there is none.
    rest_until: u64,
    cpu_before: u64,
    cpu_at_first: u64,
    at_least: u64,
    actors: Actors,
}

/// The threads that send and receive, as they show: only their wake-ups have to be seen.
#[derive(Default)]
struct Actors {
    /// All of them, if they matter: a thread that is known by name needs no filter.
    seen: Option<BTreeSet<u32>>,
    /// Those that the filters name.
    filtered: Option<BTreeSet<u32>>,
}

impl Actors {
    fn see(&mut self, event: &Event) {
        if let Some(seen) = &mut self.seen
            && matches!(event.what, What::CallEnter { .. } | What::Copied { .. })
        {
            seen.insert(event.task);
        }
    }

    /// Whether the wake-ups of a thread are seen.
    fn shows(&self, task: u32) -> bool {
        self.filtered.as_ref().is_none_or(|tasks| tasks.contains(&task))
    }

    /// Filters for the wake-ups and the switches of these threads, if there are new ones.
    fn filters(&mut self) -> Option<[(&'static str, String); 2]> {
        let seen = self.seen.as_ref().filter(|seen| !seen.is_empty())?;
        if self.filtered.as_ref() == Some(seen) || seen.len() > ACTORS {
            return None;
        }
        let terms = |field: &str| {
            let terms: Vec<String> = seen.iter().map(|task| format!("{field} == {task}")).collect();
            terms.join(" || ")
        };
        let switches = format!("{} || {}", terms("prev_pid"), terms("next_pid"));
        self.filtered = Some(seen.clone());
        Some([("sched:sched_waking", terms("pid")), ("sched:sched_switch", switches)])
    }
}

impl Tracer {
    /// Opens what `target` needs. Nothing is traced yet.
    ///
    /// # Errors
    /// If this process may not trace, or the kernel cannot.
    pub fn open(target: &Target) -> Result<Self> {
        let tracefs = Tracefs::open()?;
        let (wishes, switches) = wishes(target);
        let (session, missing) = Session::open(&tracefs, &wishes, switches)?;
        let decoder = Decoder::new(session.formats());
        let engine = match target {
            Target::Task { .. } => Engine::new(),
            Target::Device(_) => Engine::of_arrivals(),
        };
        let known = matches!(target, Target::Task { name: Some(_), .. });
        let seen = (!known).then(BTreeSet::new);
        let actors = Actors { seen, filtered: None };
        let account = Account {
            events: session.formats().map(|(event, _)| event).collect(),
            missing: missing.into_iter().map(|Missing { event, why }| (event, why)).collect(),
            private_tracefs: tracefs.is_private(),
            ..Account::default()
        };
        Ok(Self {
            tracefs,
            session,
            decoder,
            engine,
            events: Vec::new(),
            account,
            share: SHARE,
            began: 0,
            window: None,
            rest_until: 0,
            cpu_before: 0,
            cpu_at_first: 0,
            at_least: WINDOW,
            actors,
        })
    }

    /// Makes windows at least this long: several round trips have to fit.
    pub fn widen(&mut self, nanos: u64) {
        self.at_least = self.at_least.max(nanos);
    }

    /// Goes on for a moment, in a window or between two; shows the paths that have ended.
    ///
    /// # Errors
    /// If the kernel does not switch events on or off.
    pub fn step(&mut self, mut look: impl FnMut(&Decoder, Path)) -> Result<()> {
        let now = clock::now().as_nanos();
        if self.began == 0 {
            self.began = now;
            self.cpu_at_first = cpu();
        }
        let Some((since, seen_before)) = self.window else {
            if now < self.rest_until {
                sleep(GLANCE.min(Duration::from_nanos(self.rest_until - now)));
                return Ok(());
            }
            self.cpu_before = cpu();
            self.filter(false)?;
            self.session.enable()?;
            self.window = Some((clock::now().as_nanos(), self.account.seen));
            return Ok(());
        };
        sleep(GLANCE);
        self.read(&mut look);
        self.filter(true)?;
        let now = clock::now().as_nanos();
        let length = now - since;
        let events = self.account.seen - seen_before;
        let cost = events * EVENT + cpu().saturating_sub(self.cpu_before);
        let allowed = (length as f64 * self.share) as u64;
        if length >= self.at_least && cost > allowed {
            self.close(&mut look)?;
            let cost = events * EVENT + cpu().saturating_sub(self.cpu_before);
            let period = (cost as f64 / self.share) as u64;
            self.rest_until = since + period.max(length);
        }
        Ok(())
    }

    /// Sees the wake-ups of those threads alone that matter.
    fn filter(&mut self, on: bool) -> Result<()> {
        for (event, filter) in self.actors.filters().into_iter().flatten() {
            let wish = Wish { event, filter: Some(filter), unit: Unit::All };
            self.session.replace(&self.tracefs, &wish, on)?;
        }
        Ok(())
    }

    /// Ends the window, if there is one.
    fn close(&mut self, look: &mut impl FnMut(&Decoder, Path)) -> Result<()> {
        let Some((since, _)) = self.window.take() else { return Ok(()) };
        self.session.disable()?;
        self.account.traced_s += seconds(clock::now().as_nanos() - since);
        self.read(look);
        self.engine.pause();
        Ok(())
    }

    /// Ends tracing; what it was like.
    ///
    /// # Errors
    /// If the kernel does not switch events off.
    pub fn finish(mut self, mut look: impl FnMut(&Decoder, Path)) -> Result<Account> {
        self.close(&mut look)?;
        self.account.elapsed_s = seconds(clock::now().as_nanos().saturating_sub(self.began));
        self.account.own_cpu_s = seconds(cpu().saturating_sub(self.cpu_at_first));
        self.account.odds = self.engine.odds;
        Ok(self.account)
    }

    /// Reads the rings and follows what they tell. What is still to come may be older than the
    /// newest of it, on another processor: that is small, and kept for the next time.
    fn read(&mut self, look: &mut impl FnMut(&Decoder, Path)) {
        let until = clock::now().as_nanos();
        let (session, decoder, events) = (&mut self.session, &mut self.decoder, &mut self.events);
        let read_before = events.len();
        session.drain(|record| decoder.decode(&record, &mut |event| events.push(event)));
        self.account.seen += (events.len() - read_before) as u64;
        events.sort_by_key(|event| event.at);
        let whole = self.window.is_none();
        let ripe = events.partition_point(|event| whole || event.at < until);
        for event in &events[..ripe] {
            match event.what {
                What::Received { .. } => self.account.packets += 1,
                What::Interrupt { .. } => self.account.interrupts += 1,
                _ => {}
            }
            self.actors.see(event);
            if let Some(path) = self.engine.see(event)
                && self.actors.shows(path.task)
            {
                look(&self.decoder, path);
            }
        }
        events.drain(..ripe);
    }
}

fn cpu() -> u64 {
    clock::thread_cpu_time().as_nanos()
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

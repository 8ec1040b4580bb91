//! Tracing at a price that is set beforehand.
//!
//! Every event costs the traced program time, and at ten thousand requests a second tracing all of
//! them would cost a tenth of a processor. A few thousand requests say as much. So tracing is on in
//! *windows*, and off between them, for as long as it takes for its cost to be no more than
//! [`SHARE`] of the time of one processor. The cost is our own CPU time, which is measured, and
//! that of the kernel, for which each event counts a microsecond. To open a window costs some
//! milliseconds, so it stays open until its events have cost as much. Where few packets come, it
//! never ends.
//!
//! System calls and wake-ups would be the most frequent events by far on a busy machine. Only those
//! of threads that matter are let pass ([`super::task_filter`]). Events of one thread alone would
//! need no filter, but have the kernel go through all of them at each context switch.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use sys::clock;
use tracepoints::tracefs::Tracefs;
use tracepoints::{Missing, Session};

use super::decode::Decoder;
use super::engine::{Engine, Path, Untracked};
use super::event::{TraceEvent, What};
use super::event_requests::{Target, event_requests};
use super::task_filter::{ProcessTree, TaskFilter};

/// What tracing may cost, of one processor: 1 %, with a margin for what is not counted.
pub(crate) const SHARE: f64 = 0.008;

/// What an event costs the kernel, in nanoseconds: 650 on a virtual machine, 200 to 300 on others
/// (`cargo run --release -p earmark-tracepoints --example perf_cost`).
const EVENT: u64 = 1_000;

/// How long a window is at least, in nanoseconds; and how often rings are emptied in one.
const WINDOW: u64 = 25_000_000;
const POLL_INTERVAL: Duration = Duration::from_millis(12);

/// How often it is looked for new threads of a program in a window, in nanoseconds.
const LOOK: u64 = 200_000_000;

/// A window on a program stays open until it has shown so many requests, or has used up a share of
/// what tracing may cost in all: requests of a slow server do not fit into a short window.
const ENOUGH: u64 = 50;
const ONE_OF: f64 = 2.0;
const DEAREST: u64 = 100_000_000;

/// For so long after the start of a program it is looked for them each time the rings are emptied:
/// a wrapper starts the real program at once, and that one may not live for long.
const YOUNG: u64 = 500_000_000;

/// What was traced, and what was not.
#[derive(Clone, Debug, Default, serde::Serialize, schemars::JsonSchema)]
pub(crate) struct Account {
    pub events: Vec<&'static str>,
    pub missing: Vec<(&'static str, String)>,
    /// Whether tracefs had to be mounted, for this process alone.
    pub private_tracefs: bool,
    pub seen: u64,
    /// Packets received, and interrupts served, in windows.
    pub packets: u64,
    /// Interrupts that asked for receiving, in windows.
    pub interrupts: u64,
    /// How often tracing was off between two windows, or after the last one. A program may do all
    /// that it does in one of them.
    pub gaps: u64,
    /// Seconds in windows.
    pub traced_s: f64,
    /// Seconds in and between windows.
    pub elapsed_s: f64,
    /// CPU time of the thread that traces, in seconds.
    pub own_cpu_s: f64,
    pub untracked: Untracked,
}

pub(crate) struct Tracer {
    tracefs: Tracefs,
    target: Target,
    open: Option<Open>,
    decoder: Decoder,
    engine: Engine,
    events: Vec<TraceEvent>,
    account: Account,
    started: u64,
    /// Until when there is no window.
    rest_until: u64,
    cpu_at_first: u64,
    cpu_at_close: u64,
    at_least: u64,
    /// The tasks to see, as far as they are known by now.
    filter: TaskFilter,
    tree: ProcessTree,
    /// When it was looked for new members of the family.
    looked: u64,
    adopted: u64,
    /// What a window may cost that has not shown enough, in nanoseconds.
    credit: u64,
}

struct Open {
    session: Session,
    filter: TaskFilter,
    since: u64,
    /// Events seen, and CPU time used, before it.
    seen: u64,
    cpu: u64,
    /// What it has cost to open it.
    opening: u64,
    shown: u64,
}

impl Tracer {
    /// Opens what `target` needs, to see whether it can be had. Nothing is traced yet.
    pub(crate) fn open(target: Target) -> Result<Self> {
        let tracefs = Tracefs::open()?;
        let (engine, filter, name) = match &target {
            Target::Threads { name, .. } => (Engine::new(), TaskFilter::named(name), name.as_str()),
            Target::Program(name) => (Engine::new(), TaskFilter::named(name), name.as_str()),
            Target::Device(_) => (Engine::of_arrivals(), TaskFilter::All, ""),
        };
        let tree = ProcessTree::new(name);
        let (session, missing) = Session::open(&tracefs, &event_requests(&target, &filter), None)?;
        let account = Account {
            events: session.formats().map(|(event, _)| event).collect(),
            missing: missing.into_iter().map(|Missing { event, why }| (event, why)).collect(),
            private_tracefs: tracefs.is_private(),
            ..Account::default()
        };
        Ok(Self {
            decoder: Decoder::new(session.formats()),
            tracefs,
            target,
            open: None,
            engine,
            events: Vec::new(),
            account,
            started: 0,
            rest_until: 0,
            cpu_at_first: 0,
            cpu_at_close: 0,
            at_least: WINDOW,
            filter,
            tree,
            looked: 0,
            adopted: 0,
            credit: 0,
        })
    }

    /// Traces what process `pid` and those that it starts do, from now on.
    pub(crate) fn follow(&mut self, pid: u32) {
        self.tree.adopt(pid);
        self.adopted = clock::now().as_nanos();
    }

    /// Makes windows at least this long: several requests have to fit.
    pub(crate) fn widen(&mut self, nanos: u64) {
        self.at_least = self.at_least.max(nanos);
    }

    /// Keeps windows open that have not shown enough, as far as that may cost in so many seconds.
    pub(crate) fn plan(&mut self, seconds: f64) {
        self.credit = ((seconds * 1e9 * SHARE / ONE_OF) as u64).min(DEAREST);
    }

    /// Goes on for a moment, in a window or between two; shows the paths that have ended.
    pub(crate) fn step(&mut self, mut look: impl FnMut(&Decoder, Path)) -> Result<()> {
        let now = clock::now().as_nanos();
        if self.started == 0 {
            self.started = now;
            self.cpu_at_first = cpu();
            self.cpu_at_close = self.cpu_at_first;
        }
        if self.open.is_none() {
            if now < self.rest_until {
                sleep(POLL_INTERVAL.min(Duration::from_nanos(self.rest_until - now)));
                return Ok(());
            }
            return self.begin();
        }
        sleep(POLL_INTERVAL);
        self.read(&mut look);
        self.look_around(false);
        let now = clock::now().as_nanos();
        let Some(open) = &self.open else { return Ok(()) };
        let length = now - open.since;
        let cost = self.cost(open);
        let paid_off = cost >= 2 * open.opening;
        let waits = open.shown < ENOUGH && cost < self.credit;
        if !waits && length >= self.at_least && paid_off && cost > (length as f64 * SHARE) as u64 {
            let (since, seen, cpu_before) = (open.since, open.seen, open.cpu);
            self.leave_gap(&mut look);
            self.cpu_at_close = cpu();
            let own = self.cpu_at_close.saturating_sub(cpu_before);
            let cost = (self.account.seen - seen) * EVENT + own;
            self.rest_until = since + (cost as f64 / SHARE) as u64;
        } else if open.filter != self.filter {
            // There is a new thread, which the filters do not let pass.
            let next = self.session()?;
            self.leave_gap(&mut look);
            return self.enable(next);
        }
        Ok(())
    }

    /// What a window has cost so far, in nanoseconds of CPU time.
    fn cost(&self, open: &Open) -> u64 {
        (self.account.seen - open.seen) * EVENT + cpu().saturating_sub(open.cpu)
    }

    /// Begins a window. Events that are open and switched off still cost something at each system
    /// call and tracepoint, so between windows there are none.
    fn begin(&mut self) -> Result<()> {
        self.look_around(true);
        let session = self.session()?;
        self.enable(session)
    }

    fn session(&self) -> Result<Session> {
        Ok(Session::open(&self.tracefs, &event_requests(&self.target, &self.filter), None)?.0)
    }

    fn enable(&mut self, session: Session) -> Result<()> {
        session.enable()?;
        // To have opened it is a part of its cost.
        let opening = cpu().saturating_sub(self.cpu_at_close);
        let cpu = self.cpu_at_close;
        let (filter, seen) = (self.filter.clone(), self.account.seen);
        self.open = Some(Open {
            session,
            filter,
            since: clock::now().as_nanos(),
            seen,
            cpu,
            opening,
            shown: 0,
        });
        Ok(())
    }

    /// Looks for new processes and threads of a program, now and then.
    fn look_around(&mut self, now: bool) {
        let at = clock::now().as_nanos();
        let is_due = now || at - self.looked > LOOK || at - self.adopted < YOUNG;
        if matches!(self.target, Target::Program(_)) && is_due {
            self.looked = at;
            self.tree.refresh();
            self.filter = self.tree.filter();
        }
    }

    fn leave_gap(&mut self, look: &mut impl FnMut(&Decoder, Path)) {
        self.account.gaps += 1;
        self.close(look);
    }

    fn close(&mut self, look: &mut impl FnMut(&Decoder, Path)) {
        let Some(open) = &self.open else { return };
        // What cannot be switched off is closed below.
        let _ = open.session.disable();
        self.account.traced_s += seconds(clock::now().as_nanos() - open.since);
        self.read(look);
        if let Some(Open { session, .. }) = self.open.take() {
            // The kernel takes its time until no processor is in a tracepoint any more.
            std::thread::spawn(move || drop(session));
        }
        self.events.clear();
        self.engine.pause();
    }

    pub(crate) fn finish(mut self, mut look: impl FnMut(&Decoder, Path)) -> Account {
        self.close(&mut look);
        self.account.elapsed_s = seconds(clock::now().as_nanos().saturating_sub(self.started));
        self.account.own_cpu_s = seconds(cpu().saturating_sub(self.cpu_at_first));
        self.account.untracked = self.engine.untracked;
        self.account
    }

    /// Reads the rings and follows their events. What has happened since this began may be there
    /// of one processor and not yet of another: it is kept for the next time.
    fn read(&mut self, look: &mut impl FnMut(&Decoder, Path)) {
        let Some(open) = &mut self.open else { return };
        let until = clock::now().as_nanos();
        let (decoder, events) = (&mut self.decoder, &mut self.events);
        let read_before = events.len();
        open.session.drain(|record| decoder.decode(&record, &mut |event| events.push(event)));
        self.account.seen += (events.len() - read_before) as u64;
        events.sort_by_key(|event| event.at);
        let ripe = events.partition_point(|event| event.at < until);
        for event in &events[..ripe] {
            match event.what {
                What::Received { .. } => self.account.packets += 1,
                What::Interrupt { .. } => self.account.interrupts += 1,
                What::Copied { .. } | What::Took { .. }
                    if matches!(self.target, Target::Device(_)) =>
                {
                    self.filter.add(event.task);
                }
                _ => {}
            }
            if let Some(path) = self.engine.see(event)
                && open.filter.shows(path.task)
                && self.tree.has(self.decoder.pid(path.task))
            {
                open.shown += 1;
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

//! Hosts, their cores, and the network between them, in simulated time.
//!
//! # Theory of operation
//!
//! ```text
//! process ──send──▶ NIC ──cable──▶ NIC: DMA, moderation ──interrupt──▶ handler ──▶ softirq: poll
//!    ▲                                                                                  │
//!    └──────────────── ring or socket ◀──── handler of the protocol, packet by packet ◀─┘
//! ```
//!
//! Everything that happens is an event of one [calendar](Calendar); what happens at one moment
//! happens in the order in which it was planned, and all randomness comes from one seed, so that a
//! seed is a run. A core does one thing at a time, for as long as the [machine](Machine) says, and
//! has done it when that time has passed. What it finds to do next depends on what is there then: a
//! poll finds packets that came while it was busy, which is how hosts absorb interrupts.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::mem::take;

use base::calendar::Calendar;
use base::prng::Prng;
use base::time::{Duration, Instant};
use nic::link::LinkSettings;
use nic::moderation::Moderation;
use nic::observer::Observer;

use crate::cpu::{BUDGET, Busy, Core, MAX_SOFTIRQ, Poll, Running, cores};
use crate::device::{Cause, Device, Frame, NicSettings};
use crate::machine::{Costs, Machine, Routing};
use crate::network::{End, Network};
use crate::stack::{KernelFrame, Stack, Step, StepAction, Work};

/// How far ahead of its cable a host fills its NIC, at most: the limit that byte queue limits
/// (`lib/dynamic_queue_limits.c`) settle at is a few frames of the MTU.
const QUEUED: Duration = Duration::from_micros(30);

/// What a simulation is made of, beside its stacks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What hosts are like.
    pub machine: Machine,
    /// The NIC of each host and what things cost there; the last one is that of all that follow.
    pub hosts: Vec<(NicSettings, Costs)>,
    /// Faults of the cables; rate and latency are the machine's.
    pub faults: LinkSettings,
    /// Frames that a port of the switch queues.
    pub switch_queue: usize,
    /// Where everything random comes from.
    pub seed: u64,
}

#[derive(Clone, Copy, Debug)]
enum Occurrence {
    Arrival(End),
    Nic(usize),
    Sent(usize),
    Interrupt(usize, usize, Cause),
    Core(usize, usize, u32),
    Timer(usize),
    Room(usize),
}

/// What a poll is busy with.
#[derive(Debug)]
enum Item {
    Received(Frame),
    Send { process: usize, number: u64, frame: Frame },
}

/// A process of a host, as its cores know it.
struct ProcessState<A> {
    action: Option<StepAction<A>>,
    /// The number under which the frame it is sending was written.
    number: u64,
    /// Frames that were written, in order, and whether they may leave: a protocol whose kernel and
    /// whose process both send holds a lock.
    order: VecDeque<(u64, Option<Frame>)>,
    written: u64,
    /// Cache lines that it needs are on the core that received for it.
    has_moved: bool,
    /// It sleeps in the kernel.
    is_blocked: bool,
}

impl<A> Default for ProcessState<A> {
    fn default() -> Self {
        let (has_moved, is_blocked) = (false, false);
        Self { action: None, number: 0, order: VecDeque::new(), written: 0, has_moved, is_blocked }
    }
}

impl<A> ProcessState<A> {
    fn write(&mut self) -> u64 {
        self.written += 1;
        self.order.push_back((self.written, None));
        self.written
    }
}

/// A host: its NIC, cores, protocols and processes.
pub struct Host<S: Stack, O> {
    /// Its protocols and processes.
    pub stack: S,
    /// The NIC, which has its counters.
    pub device: Device<O>,
    costs: Costs,
    cores: Vec<Core>,
    /// Those that processes are bound to.
    homes: Vec<usize>,
    states: Vec<ProcessState<S::StepAction>>,
    /// Polls that are going on, by queue.
    polls: Vec<Option<Poll<Item>>>,
    /// The core of the last interrupt, where they take turns.
    turn: usize,
    /// The core that polled last.
    last_core: usize,
    /// Completed transmissions that no core has cleaned up, and the core that did so last.
    transmitted: u32,
    cleaned_on: Option<usize>,
    nic_at: Option<Instant>,
    timer_at: Option<Instant>,
    room_at: Option<Instant>,
    /// Packets that its polls have taken.
    pub polled: u64,
}

impl<S: Stack, O> Host<S, O> {
    /// What its cores were busy with so far.
    pub fn busy(&self) -> Busy {
        self.cores.iter().fold(Busy::default(), |sum, core| sum + core.busy)
    }
}

/// Hosts and a network.
pub struct Simulation<S: Stack, O = ()> {
    now: Instant,
    calendar: Calendar<Occurrence>,
    events: u64,
    /// The hosts, by number.
    pub hosts: Vec<Host<S, O>>,
    network: Network,
    machine: Machine,
    random: Prng,
    touched: Vec<usize>,
    end_at: [Vec<Option<Instant>>; 2],
}

impl<S: Stack, O: Observer> Simulation<S, O> {
    /// A world at its beginning, of hosts with these stacks, each with what observes its NIC.
    pub fn new(settings: &Settings, stacks: impl IntoIterator<Item = (S, O)>) -> Self {
        let Settings { machine, hosts, faults, switch_queue, seed } = settings;
        let mut random = Prng::new(*seed);
        let usual = (NicSettings::default(), machine.constants.costs);
        let host = |(number, (stack, observer)): (usize, (S, O))| {
            let (nic, costs) = hosts.get(number).or(hosts.last()).unwrap_or(&usual);
            let device = Device::new(machine, (nic, costs), random.next_u64(), observer);
            let bound_to = stack.processes().iter().map(|process| process.core % machine.cores);
            Host {
                homes: bound_to.clone().collect::<BTreeSet<_>>().into_iter().collect(),
                costs: *costs,
                cores: cores(machine.cores, bound_to),
                states: stack.processes().iter().map(|_| ProcessState::default()).collect(),
                polls: (0..device.queues()).map(|_| None).collect(),
                turn: (*seed as usize % 1_000 * 3 + number * 5) % machine.cores,
                stack,
                device,
                last_core: 0,
                transmitted: 0,
                cleaned_on: None,
                nic_at: None,
                timer_at: None,
                room_at: None,
                polled: 0,
            }
        };
        let hosts: Vec<_> = stacks.into_iter().enumerate().map(host).collect();
        let cable = LinkSettings {
            rate_mbit: Some(machine.link.rate_mbit),
            latency: Duration::from_nanos(machine.link.latency_ns.into()),
            ..faults.clone()
        };
        let mut world = Self {
            now: Instant::ZERO,
            calendar: Calendar::default(),
            events: 0,
            network: Network::new(hosts.len(), &cable, *switch_queue, &mut random),
            end_at: [(); 2].map(|()| (0..hosts.len()).map(|_| None).collect()),
            hosts,
            machine: machine.clone(),
            random,
            touched: Vec::new(),
        };
        (0..world.hosts.len()).for_each(|host| world.settle(host, None));
        world
    }

    /// The present moment.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Events so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Frames that were lost on the cable of a host, or found no room in the switch for it.
    pub fn lost(&self, host: usize) -> u64 {
        self.network.lost(host)
    }

    /// Changes the setting of the NIC of a host, whatever is pending.
    pub fn set_moderation(&mut self, host: usize, moderation: Moderation) {
        self.hosts[host].device.set_moderation(self.now, moderation);
        self.settle(host, None);
    }

    /// Goes on up to `until`.
    pub fn run(&mut self, until: Instant) {
        while self.calendar.next_at().is_some_and(|at| at <= until) {
            let Some((at, event)) = self.calendar.take() else { break };
            self.now = self.now.max(at);
            self.events += 1;
            self.handle(event);
        }
        self.now = self.now.max(until);
    }

    fn handle(&mut self, event: Occurrence) {
        match event {
            Occurrence::Arrival(End::Switch(host)) => {
                self.end_at[1][host] = None;
                let mut touched = take(&mut self.touched);
                self.network.forward(self.now, host, &mut touched);
                touched.drain(..).for_each(|to| self.watch(End::Host(to)));
                self.touched = touched;
                self.watch(End::Switch(host));
            }
            Occurrence::Arrival(End::Host(host)) => {
                self.end_at[0][host] = None;
                while let Some(frame) = self.network.receive(self.now, host) {
                    self.hosts[host].device.receive(self.now, frame);
                }
                self.hosts[host].device.advance(self.now);
                self.watch(End::Host(host));
                self.settle(host, None);
            }
            Occurrence::Nic(host) => {
                if self.hosts[host].nic_at == Some(self.now) {
                    self.hosts[host].nic_at = None;
                }
                self.hosts[host].device.advance(self.now);
                self.settle(host, None);
            }
            Occurrence::Sent(host) => {
                self.hosts[host].transmitted += 1;
                self.hosts[host].device.transmitted(self.now);
                self.settle(host, None);
            }
            Occurrence::Interrupt(host, core, cause) => {
                self.interrupt(host, core, cause);
                self.settle(host, None);
            }
            Occurrence::Core(host, core, number) => {
                if self.hosts[host].cores[core].number == number {
                    self.ended(host, core);
                    self.settle(host, Some(core));
                }
            }
            Occurrence::Timer(host) => {
                self.hosts[host].timer_at = None;
                self.settle(host, None);
            }
            Occurrence::Room(host) => {
                self.hosts[host].room_at = None;
                let core = self.hosts[host].last_core;
                self.send_in_softirq(host, core);
                self.settle(host, Some(core));
            }
        }
    }

    /// Looks at a cable when the next frame comes to its end.
    fn watch(&mut self, end: End) {
        let (kind, host) = match end {
            End::Host(host) => (0, host),
            End::Switch(host) => (1, host),
        };
        let watched = &mut self.end_at[kind][host];
        if let Some(at) = self.network.next_arrival(end)
            && watched.is_none_or(|watched| watched > at)
        {
            *watched = Some(at);
            self.calendar.plan(at, Occurrence::Arrival(end));
        }
    }

    /// Delivers interrupts, lets `core` and those with processes find work if they are idle, and
    /// plans what comes by itself.
    fn settle(&mut self, host: usize, core: Option<usize>) {
        loop {
            while let Some(cause) = self.hosts[host].device.take_interrupt() {
                self.signal(host, cause);
            }
            if let Some(core) = core {
                self.dispatch(host, core);
            }
            for home in 0..self.hosts[host].homes.len() {
                self.dispatch(host, self.hosts[host].homes[home]);
            }
            match self.hosts[host].device.take_interrupt() {
                Some(cause) => self.signal(host, cause),
                None => break,
            }
        }
        let Host { device, nic_at, timer_at, stack, .. } = &mut self.hosts[host];
        if let Some(at) = device.deadline().map(|at| at.max(self.now))
            && nic_at.is_none_or(|planned| at < planned)
        {
            *nic_at = Some(at);
            self.calendar.plan(at, Occurrence::Nic(host));
        }
        if let Some(at) = stack.deadline(self.now)
            && timer_at.is_none_or(|planned| at < planned)
        {
            *timer_at = Some(at);
            self.calendar.plan(at, Occurrence::Timer(host));
        }
    }

    /// The NIC has raised an interrupt.
    fn signal(&mut self, host: usize, cause: Cause) {
        if let Cause::Queue(queue) = cause
            && let Some(poll) = &mut self.hosts[host].polls[queue]
        {
            // The kernel is at work already.
            poll.rearms = true;
            return self.hosts[host].device.handled(self.now, cause);
        }
        let core = self.route(host, cause);
        if let Cause::Queue(queue) = cause {
            self.hosts[host].polls[queue] = Some(Poll::new());
        }
        let costs = &self.hosts[host].costs;
        if self.machine.sleeps && self.hosts[host].cores[core].is_asleep(self.now, costs) {
            let at = self.now + nanos(costs.idle_exit);
            self.calendar.plan(at, Occurrence::Interrupt(host, core, cause));
        } else {
            self.interrupt(host, core, cause);
        }
    }

    fn route(&mut self, host: usize, cause: Cause) -> usize {
        let cores = self.machine.cores;
        let turn = &mut self.hosts[host].turn;
        match (self.machine.routing, cause) {
            (Routing::RoundRobin, _) => {
                *turn = (*turn + 1) % cores;
                *turn
            }
            (Routing::Core(core), _) => core,
            (Routing::ByQueue, Cause::Queue(queue)) => queue % cores,
            (Routing::ByQueue, Cause::Transmissions) => 0,
        }
    }

    /// A core takes an interrupt.
    fn interrupt(&mut self, host: usize, core: usize, cause: Cause) {
        let cost = nanos(self.hosts[host].costs.interrupt);
        let state = &mut self.hosts[host].cores[core];
        state.busy.interrupts += cost.as_nanos();
        match &mut state.running {
            None => {}
            Some((Running::Process(process, false), ends)) => {
                state.preempted = Some((*process, ends.since(self.now)));
                state.busy.processes -= ends.since(self.now).as_nanos();
            }
            Some((_, ends)) => {
                // Softirqs are held back; the handler is paid for here.
                *ends += cost;
                state.number += 1;
                state.handled.push_back(cause);
                let (at, number) = (*ends, state.number);
                return self.calendar.plan(at, Occurrence::Core(host, core, number));
            }
        }
        self.begin(host, core, Running::Handler(cause), cost);
    }

    fn begin(&mut self, host: usize, core: usize, running: Running, lasts: Duration) {
        let state = &mut self.hosts[host].cores[core];
        let ends = self.now + lasts;
        state.running = Some((running, ends));
        state.idle_since = None;
        state.number += 1;
        match running {
            Running::Handler(_) => {}
            Running::Poll(_) => {
                state.busy.softirqs += lasts.as_nanos();
                state.debt += lasts.as_nanos();
            }
            Running::Process(..) => {
                state.busy.processes += lasts.as_nanos();
                state.debt = state.debt.saturating_sub(lasts.as_nanos());
                state.yields &= state.debt > 0;
            }
        }
        self.calendar.plan(ends, Occurrence::Core(host, core, state.number));
    }

    /// What ran on a core has come to its end.
    fn ended(&mut self, host: usize, core: usize) {
        let Some((running, _)) = self.hosts[host].cores[core].running.take() else { return };
        match running {
            Running::Handler(cause) => self.handled(host, core, cause),
            Running::Poll(queue) => self.polled(host, core, queue),
            Running::Process(process, _) => {
                match self.hosts[host].states[process].action.take() {
                    Some(StepAction::Send(frame)) => {
                        let number = self.hosts[host].states[process].number;
                        self.leave(host, process, number, frame);
                    }
                    Some(StepAction::Own(action)) => {
                        self.hosts[host].stack.done(self.now, process, action);
                    }
                    None => {}
                }
                self.send_in_softirq(host, core);
            }
        }
        while let Some(cause) = self.hosts[host].cores[core].handled.pop_front() {
            self.handled(host, core, cause);
        }
    }

    /// The handler of an interrupt has ended.
    fn handled(&mut self, host: usize, core: usize, cause: Cause) {
        self.clean_up(host, core);
        self.hosts[host].device.handled(self.now, cause);
        if let Cause::Queue(queue) = cause {
            self.hosts[host].cores[core].softirqs.push_back(queue);
        }
    }

    /// The kernel has something to send by itself, and no poll that would do so.
    fn send_in_softirq(&mut self, host: usize, core: usize) {
        let Host { stack, polls, cores, .. } = &mut self.hosts[host];
        if stack.has_kernel_frames() && polls[0].is_none() {
            polls[0] = Some(Poll { rearms: false, is_charged: true, ..Poll::new() });
            cores[core].softirqs.push_back(0);
        }
    }

    /// Transmissions that completed are seen on this core.
    fn clean_up(&mut self, host: usize, core: usize) {
        let host = &mut self.hosts[host];
        if take(&mut host.transmitted) > 0 {
            host.cleaned_on = Some(core);
        }
    }

    /// A poll has done with a packet or a frame.
    fn polled(&mut self, host: usize, core: usize, queue: usize) {
        let item = self.hosts[host].polls[queue].as_mut().and_then(|poll| poll.item.take());
        match item {
            Some(Item::Received(frame)) => {
                let Host { stack, polls, states, .. } = &mut self.hosts[host];
                let process = stack.receive(self.now, frame);
                let (Some(poll), Some(process)) = (&mut polls[queue], process) else { return };
                let is_far = stack.processes()[process].core != core;
                if poll.has_moved && is_far && !poll.is_charged {
                    poll.is_charged = true;
                    states[process].has_moved = true;
                }
            }
            Some(Item::Send { process, number, frame }) => self.leave(host, process, number, frame),
            None => {}
        }
    }

    /// An idle core finds something to do.
    fn dispatch(&mut self, host: usize, core: usize) {
        if self.hosts[host].cores[core].running.is_some() {
            return;
        }
        let state = &mut self.hosts[host].cores[core];
        state.yields |= state.debt >= MAX_SOFTIRQ.as_nanos();
        if !state.yields && self.begin_softirq(host, core) || self.begin_process(host, core) {
            return;
        }
        let state = &mut self.hosts[host].cores[core];
        (state.yields, state.debt) = (false, 0);
        if self.begin_softirq(host, core) {
            return;
        }
        let Host { cores, stack, .. } = &mut self.hosts[host];
        let state = &mut cores[core];
        if state.idle_since.is_none()
            && state.processes.iter().all(|it| stack.processes()[*it].blocks)
        {
            state.idle_since = Some(self.now);
        }
    }

    /// Goes on with a poll of a core, if there is one.
    fn begin_softirq(&mut self, host: usize, core: usize) -> bool {
        while let Some(queue) = self.hosts[host].cores[core].softirqs.pop_front() {
            if let Some(lasts) = self.poll(host, core, queue) {
                self.begin(host, core, Running::Poll(queue), lasts);
                let Host { cores, polls, .. } = &mut self.hosts[host];
                match polls[queue].as_mut().filter(|poll| poll.budget == 0) {
                    Some(poll) => {
                        poll.budget = BUDGET;
                        cores[core].softirqs.push_back(queue);
                    }
                    None => cores[core].softirqs.push_front(queue),
                }
                return true;
            }
        }
        false
    }

    /// Goes on with the process that was pre-empted, or with the next one that has work.
    fn begin_process(&mut self, host: usize, core: usize) -> bool {
        if let Some((process, left)) = self.hosts[host].cores[core].preempted.take() {
            self.begin(host, core, Running::Process(process, false), left);
            return true;
        }
        for _ in 0..self.hosts[host].cores[core].processes.len() {
            let processes = &mut self.hosts[host].cores[core].processes;
            processes.rotate_left(1);
            let Some(&process) = processes.back() else { break };
            if self.run_process(host, core, process) {
                return true;
            }
        }
        false
    }

    /// The next packet or frame of a poll, and how long it takes; or its end.
    fn poll(&mut self, host: usize, core: usize, queue: usize) -> Option<Duration> {
        let may_send = self.may_send(host);
        let now = self.now;
        let Host { costs, stack, device, polls, states, cleaned_on, last_core, polled, .. } =
            &mut self.hosts[host];
        let poll = polls[queue].as_mut()?;
        let sent = if may_send { stack.kernel_frame(now, costs) } else { None };
        let (work, item, has_moved) = if let Some(KernelFrame { process, work, frame }) = sent {
            let moved = cleaned_on.take().is_some_and(|at| at != core);
            let number = states[process].write();
            (
                work.ns + work.transmitted * if moved { costs.moved } else { 0.0 },
                Item::Send { process, number, frame },
                false,
            )
        } else if let Some(frame) = device.poll(now, queue) {
            *polled += 1;
            let work = stack.receive_work(costs, &frame);
            let moved = poll.is_first && core != *last_core;
            (poll.is_first, *last_core) = (false, core);
            poll.budget -= 1;
            let lines = if moved { work.received * costs.moved } else { 0.0 };
            (work.ns + lines, Item::Received(frame), moved)
        } else {
            let rearms = poll.rearms;
            polls[queue] = None;
            self.clean_up(host, core);
            if rearms {
                self.hosts[host].device.rearm(now, queue);
            }
            return None;
        };
        poll.item = Some(item);
        poll.has_moved |= has_moved;
        Some(self.vary(host, work))
    }

    /// A process takes up work, if it has some.
    fn run_process(&mut self, host: usize, core: usize, process: usize) -> bool {
        let may_send = self.may_send(host);
        let (now, sleeps) = (self.now, self.machine.sleeps);
        let Host { costs, stack, states, cores, cleaned_on, .. } = &mut self.hosts[host];
        let blocks = stack.processes()[process].blocks;
        let state = &mut states[process];
        let Some(Step { work, action }) = stack.next(now, costs, process, may_send) else {
            state.is_blocked = blocks;
            return false;
        };
        let Work { mut ns, received, transmitted } = work;
        if received > 0.0 && take(&mut state.has_moved) {
            ns += received * costs.moved;
        }
        if transmitted > 0.0 && cleaned_on.take().is_some_and(|at| at != core) {
            ns += transmitted * costs.moved;
        }
        if take(&mut state.is_blocked) {
            let exits = sleeps && cores[core].is_asleep(now, costs);
            ns += costs.wake + if exits { costs.idle_exit } else { 0.0 };
        }
        let sends = matches!(action, StepAction::Send(_));
        if sends {
            state.number = state.write();
        }
        state.action = Some(action);
        let lasts = self.vary(host, ns);
        self.begin(host, core, Running::Process(process, sends), lasts);
        true
    }

    /// Whether the NIC takes a frame; plans to look again if it does not.
    fn may_send(&mut self, host: usize) -> bool {
        let room_at = self.network.free_at(host);
        if room_at <= self.now + QUEUED {
            return true;
        }
        let planned = &mut self.hosts[host].room_at;
        if planned.is_none() {
            let at = Instant::from_nanos(room_at.as_nanos() - QUEUED.as_nanos());
            *planned = Some(at);
            self.calendar.plan(at, Occurrence::Room(host));
        }
        false
    }

    /// A frame may leave, after those that were written before it.
    fn leave(&mut self, host: usize, process: usize, number: u64, frame: Frame) {
        let order = &mut self.hosts[host].states[process].order;
        if let Some((_, place)) = order.iter_mut().find(|(of, _)| *of == number) {
            *place = Some(frame);
        }
        loop {
            let order = &mut self.hosts[host].states[process].order;
            let Some(frame) = order.front_mut().and_then(|(_, frame)| frame.take()) else { break };
            order.pop_front();
            self.transmit(host, frame);
        }
    }

    /// A frame leaves the memory of a host.
    fn transmit(&mut self, host: usize, frame: Frame) {
        let fetch = self.hosts[host].costs.dma_engine().transfer(frame.len() as u32);
        let on_wire = self.machine.link.on_wire(frame.len());
        // A NIC that fetches more slowly than its cable sends is waited for.
        let waits = Duration::from_nanos(fetch.as_nanos().saturating_sub(on_wire.as_nanos()));
        let begins = self.network.free_at(host).max(self.now) + waits;
        let end = self.network.send(begins, host, frame);
        if !self.hosts[host].device.is_silent() {
            let sent = self.network.free_at(host).max(self.now);
            self.calendar.plan(sent, Occurrence::Sent(host));
        }
        self.watch(end);
    }

    /// A time that varies. What is long is a sum of many pieces.
    fn vary(&mut self, host: usize, ns: f64) -> Duration {
        let jitter = self.hosts[host].costs.jitter;
        if jitter == 0.0 || ns == 0.0 {
            return nanos(ns);
        }
        let share = self.random.below(2_000_001) as f64 / 1e6 - 1.0;
        let narrow = ((PIECE_NS / ns.max(PIECE_NS) * 1e12) as u64).isqrt() as f64 / 1e6;
        nanos((ns * (1.0 + jitter * narrow * share)).max(0.0))
    }
}

/// The longest work that varies by all of [`Costs::jitter`], in nanoseconds.
const PIECE_NS: f64 = 3_000.0;

fn nanos(ns: f64) -> Duration {
    Duration::from_nanos(ns as u64)
}

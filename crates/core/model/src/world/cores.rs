//! What cores do: they take interrupts, poll, and run processes.

use core::mem::take;

use base::time::Duration;
use nic::processor::Activity;

use super::host::{Host, Item};
use super::{HostEvent, Simulation};
use crate::cpu::{BUDGET, MAX_SOFTIRQ, Poll, Running};
use crate::device::Cause;
use crate::machine::Routing;
use crate::napi::{EMPTY_POLL, NapiThread};
use crate::stack::{KernelFrame, Stack, Step, StepAction, Work};
use crate::watch::Watch;

impl<S: Stack, O: Watch> Simulation<S, O> {
    /// The NIC has raised an interrupt.
    pub(super) fn signal(&mut self, host: usize, cause: Cause) {
        if let Cause::Queue(queue) = cause
            && let Some(poll) = &mut self.hosts[host].polls[usize::from(queue)]
        {
            // The kernel is at work already.
            poll.rearms = true;
            return self.hosts[host].device.handled(self.now, cause);
        }
        let core = self.route(host, cause);
        if let Cause::Queue(queue) = cause
            && self.hosts[host].instances[usize::from(queue)].claimed_by.is_none()
        {
            self.schedule(host, queue.into());
        }
        self.interrupt_or_wake(host, core, cause);
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
            (Routing::ByQueue, Cause::Queue(queue)) => usize::from(queue) % cores,
            (Routing::ByQueue, Cause::Transmissions) => 0,
        }
    }

    /// A core takes an interrupt.
    pub(super) fn interrupt(&mut self, host: usize, core: usize, cause: Cause) {
        let cost = nanos(self.hosts[host].costs.interrupt);
        let Host { cores, device, .. } = &mut self.hosts[host];
        let state = &mut cores[core];
        state.busy.interrupts += cost.as_nanos();
        match &mut state.running {
            None => {}
            Some((Running::Process(process, false), ends)) => {
                let left = ends.since(self.now);
                state.preempted = Some((*process, left + take(&mut state.rest)));
                state.busy.processes -= left.as_nanos();
                device.observer.ran(core, Activity::Work, state.begun, self.now);
            }
            Some((_, ends)) => {
                // Softirqs are held back; the handler is paid for here.
                *ends += cost;
                state.number += 1;
                state.handled.push_back(cause);
                let (at, number) = (*ends, state.number);
                return self.plan(at, host, HostEvent::Core(core as u16, number));
            }
        }
        self.begin(host, core, Running::Handler(cause), cost);
    }

    pub(super) fn begin(&mut self, host: usize, core: usize, running: Running, lasts: Duration) {
        let state = &mut self.hosts[host].cores[core];
        let ends = self.now + lasts;
        state.running = Some((running, ends));
        state.begun = self.now;
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
        let number = state.number;
        self.plan(ends, host, HostEvent::Core(core as u16, number));
    }

    /// What ran on a core has come to its end.
    pub(super) fn ended(&mut self, host: usize, core: usize) {
        let Host { cores, device, .. } = &mut self.hosts[host];
        let Some((running, _)) = cores[core].running.take() else { return };
        device.observer.ran(core, running.activity(), cores[core].begun, self.now);
        match running {
            Running::Handler(cause) => self.handled(host, core, cause),
            Running::Poll(queue) => self.polled(host, core, queue),
            Running::Process(process, _) => {
                let state = &mut self.hosts[host].cores[core];
                let rest = take(&mut state.rest);
                if rest > Duration::ZERO {
                    state.preempted = Some((process, rest));
                    return;
                }
                self.received_by_polling(host, process);
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
        // A program that polls a queue finds its packets by itself.
        if let Cause::Queue(queue) = cause
            && take(&mut self.hosts[host].instances[usize::from(queue)].is_scheduled)
        {
            let core = self.polling_core(host, core, queue.into());
            self.hosts[host].cores[core].softirqs.push_back(queue.into());
        }
    }

    /// The kernel has something to send by itself, and no poll that would do so.
    pub(super) fn send_in_softirq(&mut self, host: usize, core: usize) {
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
                (states[process].has_events, states[process].queue) = (true, Some(queue));
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
    pub(super) fn dispatch(&mut self, host: usize, core: usize) {
        if self.hosts[host].cores[core].running.is_some() {
            return;
        }
        // A thread that never sleeps leaves its core to programs that have something to do.
        let Host { napi, cores, .. } = &self.hosts[host];
        let has_thread = napi.thread == Some(NapiThread::Polling) && core + 1 == cores.len();
        if has_thread && self.begin_process(host, core) {
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
            self.begin_turn(host, core, process, left);
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
        let Host {
            costs, stack, device, polls, states, cleaned_on, last_core, polled, napi, ..
        } = &mut self.hosts[host];
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
            let work = stack.receive_work(costs, frame.whole(&mut self.place));
            let moved = poll.is_first && core != *last_core;
            (poll.is_first, *last_core) = (false, core);
            poll.budget -= 1;
            let lines = if moved { work.received * costs.moved } else { 0.0 };
            (work.ns + lines, Item::Received(frame), moved)
        } else if napi.thread == Some(NapiThread::Polling) {
            // Each look is a poll of its own, and other queues have their turn.
            (poll.is_first, poll.budget) = (true, 0);
            return Some(EMPTY_POLL);
        } else {
            let (rearms, has_worked) = (poll.rearms, !poll.is_first);
            polls[queue] = None;
            self.clean_up(host, core);
            if rearms {
                self.complete(host, queue, has_worked);
            }
            return None;
        };
        poll.item = Some(item);
        poll.has_moved |= has_moved;
        let work = work + take(&mut poll.wake_ns);
        Some(self.vary(host, work))
    }

    /// A process takes up work, if it has some.
    fn run_process(&mut self, host: usize, core: usize, process: usize) -> bool {
        if self.goes_on_polling(host, core, process) {
            return true;
        }
        let may_send = self.may_send(host);
        let (now, sleeps) = (self.now, self.machine.sleeps);
        let Host { costs, stack, states, cores, cleaned_on, device, .. } = &mut self.hosts[host];
        let blocks = stack.processes()[process].blocks;
        let state = &mut states[process];
        let Some(Step { work, action }) = stack.next(now, costs, process, may_send) else {
            return blocks && !state.is_blocked && self.wait(host, core, process);
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
            let wakes = costs.wake + if exits { costs.idle_exit } else { 0.0 };
            device.observer.ran(core, Activity::Wakeup, now, now + nanos(wakes));
            ns += wakes;
        }
        let sends = matches!(action, StepAction::Send(_));
        if sends {
            state.number = state.write();
        }
        state.action = Some(action);
        self.found_work(host, process);
        let lasts = self.vary(host, ns);
        if sends {
            self.begin(host, core, Running::Process(process, true), lasts);
        } else {
            self.begin_turn(host, core, process, lasts);
        }
        true
    }

    /// Lets a process work; beside softirqs, until it has made up for what they had.
    fn begin_turn(&mut self, host: usize, core: usize, process: usize, lasts: Duration) {
        let state = &mut self.hosts[host].cores[core];
        let most = if state.yields { Duration::from_nanos(state.debt) } else { lasts };
        let turn = lasts.min(most);
        state.rest = Duration::from_nanos(lasts.as_nanos() - turn.as_nanos());
        self.begin(host, core, Running::Process(process, false), turn);
    }

    /// A time that varies. What is long is a sum of many pieces.
    pub(super) fn vary(&mut self, host: usize, ns: f64) -> Duration {
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

pub(super) fn nanos(ns: f64) -> Duration {
    Duration::from_nanos(ns as u64)
}

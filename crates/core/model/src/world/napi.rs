//! Who polls without an interrupt: the kernel by its timer, and programs that do not sleep yet.

use base::time::Duration;
use nic::processor::Activity;

use super::cores::nanos;
use super::host::Host;
use super::{HostEvent, Simulation};
use crate::cpu::{BUDGET, Poll, Running};
use crate::device::Cause;
use crate::napi::{BusyPolling, EMPTY_POLL, NapiThread, PollingSession};
use crate::stack::Stack;
use crate::watch::Watch;

impl<S: Stack, O: Watch> Simulation<S, O> {
    /// A poll of a queue has found no more (`napi_complete_done`).
    pub(super) fn complete(&mut self, host: usize, queue: usize, has_worked: bool) {
        let Host { napi, instances, device, .. } = &mut self.hosts[host];
        let instance = &mut instances[queue];
        if has_worked {
            instance.deferrals = napi.defer_hard_irqs;
        }
        if instance.deferrals > 0 && napi.flush_timeout > Duration::ZERO {
            instance.deferrals -= 1;
            let lasts = napi.flush_timeout;
            return self.set_napi_timer(host, queue, lasts);
        }
        device.rearm(self.now, queue);
    }

    /// The core that polls a queue whose interrupt was handled on `core`: that one, or that of the
    /// thread, which wakes up for it.
    pub(super) fn polling_core(&mut self, host: usize, core: usize, queue: usize) -> usize {
        let Host { napi, cores, costs, polls, .. } = &mut self.hosts[host];
        if napi.thread.is_none() {
            return core;
        }
        let core = cores.len() - 1;
        let exits = self.machine.sleeps && cores[core].is_asleep(self.now, costs);
        if let Some(poll) = &mut polls[queue] {
            poll.wake_ns = costs.wake + if exits { costs.idle_exit } else { 0.0 };
        }
        core
    }

    /// The threads of a host that never sleep begin to poll.
    pub(super) fn start_threads(&mut self, host: usize) {
        let Host { napi, cores, polls, .. } = &mut self.hosts[host];
        if napi.thread == Some(NapiThread::Polling)
            && let Some(core) = cores.last_mut()
        {
            polls.iter_mut().for_each(|poll| *poll = Some(Poll::new()));
            core.softirqs.extend(0..polls.len());
        }
    }

    /// The kernel is going to poll a queue, behind the handler of an interrupt.
    pub(super) fn schedule(&mut self, host: usize, queue: usize) {
        let Host { polls, instances, .. } = &mut self.hosts[host];
        polls[queue] = Some(Poll::new());
        instances[queue].is_scheduled = true;
    }

    fn set_napi_timer(&mut self, host: usize, queue: usize, lasts: Duration) {
        let at = self.now + lasts;
        self.hosts[host].instances[queue].timer = Some(at);
        self.plan(at, host, HostEvent::Napi(queue as u16));
    }

    /// The timer of a queue has run out (`napi_watchdog`), unless it was set anew since.
    pub(super) fn napi_timer(&mut self, host: usize, queue: usize) {
        let Host { instances, polls, last_core, .. } = &mut self.hosts[host];
        if instances[queue].timer != Some(self.now) {
            return;
        }
        instances[queue].timer = None;
        // Who polls already will set it again.
        if polls[queue].is_none() && instances[queue].claimed_by.is_none() {
            let core = *last_core;
            self.schedule(host, queue);
            self.interrupt_or_wake(host, core, Cause::Queue(queue as u16));
        }
    }

    /// A process that finds nothing to do polls for packets before it sleeps; whether it goes on.
    pub(super) fn wait(&mut self, host: usize, core: usize, process: usize) -> bool {
        let now = self.now;
        let Host { napi, instances, polls, states, .. } = &mut self.hosts[host];
        let state = &mut states[process];
        state.has_events = false;
        let (Some(BusyPolling { lasts, .. }), Some(queue)) = (napi.busy, state.queue) else {
            state.is_blocked = true;
            return false;
        };
        let begun = PollingSession { until: now + lasts, taken: 0, has_worked: false };
        let PollingSession { until, .. } = *state.session.get_or_insert(begun);
        let claim = &mut instances[queue].claimed_by;
        if polls[queue].is_none() && claim.is_none_or(|by| by == process) {
            *claim = Some(process);
            if self.take_packet(host, core, process) {
                return true;
            }
        }
        if now < until {
            self.begin(host, core, Running::Process(process, false), EMPTY_POLL);
            return true;
        }
        self.stop_polling(host, process);
        let Host { napi, polls, states, cores, .. } = &mut self.hosts[host];
        states[process].is_blocked = true;
        if napi.suspend_timeout > Duration::ZERO && polls[queue].is_none() {
            // The kernel looks once more, and defers interrupts from there (`napi_resume_irqs`).
            polls[queue] = Some(Poll::new());
            cores[core].softirqs.push_back(queue);
        }
        false
    }

    /// A process goes on with the poll in which it has found packets, if there are more.
    pub(super) fn goes_on_polling(&mut self, host: usize, core: usize, process: usize) -> bool {
        let session = self.hosts[host].states[process].session;
        let may_take = session.is_some_and(|it| (1..BUDGET).contains(&it.taken));
        if may_take && self.take_packet(host, core, process) {
            return true;
        }
        if let Some(session) = &mut self.hosts[host].states[process].session {
            session.taken = 0;
        }
        false
    }

    /// A process that polls takes a packet, if there is one.
    fn take_packet(&mut self, host: usize, core: usize, process: usize) -> bool {
        let Host { states, device, stack, costs, polled, .. } = &mut self.hosts[host];
        let state = &mut states[process];
        let (Some(queue), Some(session)) = (state.queue, &mut state.session) else { return false };
        let Some(frame) = device.poll(self.now, queue) else { return false };
        (session.taken, session.has_worked) = (session.taken + 1, true);
        *polled += 1;
        let ns = stack.receive_work(costs, frame.whole(&mut self.place)).ns;
        state.received = Some(frame);
        let lasts = self.vary(host, ns);
        self.begin(host, core, Running::Process(process, false), lasts);
        true
    }

    /// The packet that a process took while it polled has come up to its protocol.
    pub(super) fn received_by_polling(&mut self, host: usize, process: usize) {
        let Host { states, stack, .. } = &mut self.hosts[host];
        let Some(frame) = states[process].received.take() else { return };
        let queue = states[process].queue;
        if let Some(to) = stack.receive(self.now, frame) {
            (states[to].has_events, states[to].queue) = (true, queue);
        }
    }

    /// A process has something to do: it stops polling, and what came keeps interrupts off.
    pub(super) fn found_work(&mut self, host: usize, process: usize) {
        self.stop_polling(host, process);
        let Host { napi, states, .. } = &mut self.hosts[host];
        let state = &mut states[process];
        let has_events = core::mem::take(&mut state.has_events);
        let lasts = napi.suspend_timeout;
        if let Some(queue) = state.queue.filter(|_| has_events && lasts > Duration::ZERO) {
            self.set_napi_timer(host, queue, lasts);
        }
    }

    /// The end of a poll by a process (`__busy_poll_stop`).
    fn stop_polling(&mut self, host: usize, process: usize) {
        let Host { napi, instances, states, .. } = &mut self.hosts[host];
        let Some(session) = states[process].session.take() else { return };
        let Some(queue) = states[process].queue else { return };
        if instances[queue].claimed_by != Some(process) {
            return;
        }
        instances[queue].claimed_by = None;
        let prefers = napi.busy.is_some_and(|busy| busy.prefer);
        if prefers && napi.defer_hard_irqs > 0 && napi.flush_timeout > Duration::ZERO {
            instances[queue].deferrals = napi.defer_hard_irqs;
            let lasts = napi.flush_timeout;
            return self.set_napi_timer(host, queue, lasts);
        }
        self.complete(host, queue, session.has_worked);
    }

    /// A core takes an interrupt, once it is awake.
    pub(super) fn interrupt_or_wake(&mut self, host: usize, core: usize, cause: Cause) {
        let Host { costs, cores, .. } = &self.hosts[host];
        if self.machine.sleeps && cores[core].is_asleep(self.now, costs) {
            let at = self.now + nanos(costs.idle_exit);
            let now = self.now;
            self.hosts[host].device.observer.ran(core, Activity::Wakeup, now, at);
            self.plan(at, host, HostEvent::Interrupt(core as u16, cause));
        } else {
            self.interrupt(host, core, cause);
        }
    }
}

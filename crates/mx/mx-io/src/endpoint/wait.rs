//! Testing and waiting for completions.

use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use base::time::Instant;
use mx::buffers::{Sink, Source};
use mx::matching::Match;

use super::Endpoint;
use super::completions::Filter;
use super::core::Core;
use super::error::MxError;
use super::request::{Completed, RequestId};
use super::shared::{Shared, WaitMode};
use super::sources::Role;
use crate::port::Room;
use sys::clock;

impl<S: Source + Send + 'static, R: Sink + Send + 'static> Endpoint<S, R> {
    /// The end of a request, if it has ended (`mx_test`). Each completion is returned once.
    pub fn test(&self, request: RequestId) -> Result<Option<Completed<R>>, MxError> {
        self.try_take(Filter::One(request))
    }

    /// The first end of a request whose match information fits (`mx_test_any`).
    pub fn test_any(&self, wanted: Match) -> Result<Option<Completed<R>>, MxError> {
        self.try_take(Filter::Any(wanted))
    }

    /// Waits for the end of a request, for `timeout` at most (`mx_wait`). None if the time is over,
    /// or [`Endpoint::wakeup`] was called.
    pub fn wait(
        &self,
        request: RequestId,
        timeout: Option<Duration>,
    ) -> Result<Option<Completed<R>>, MxError> {
        let want = Filter::One(request);
        self.wait_for(want, timeout, |core| core.ended.take(want))
    }

    /// Waits for the end of any request whose match information fits (`mx_wait_any`).
    pub fn wait_any(
        &self,
        wanted: Match,
        timeout: Option<Duration>,
    ) -> Result<Option<Completed<R>>, MxError> {
        let want = Filter::Any(wanted);
        self.wait_for(want, timeout, |core| core.ended.take(want))
    }

    /// The context of the request that has ended first, of those that were given another one than 0
    /// and that no call has returned, for which it waits (`mx_peek`).
    pub fn peek_context(&self, timeout: Option<Duration>) -> Result<Option<u64>, MxError> {
        self.wait_for(Filter::Any(Match::ANY), timeout, |core| core.ended.peek_context())
    }

    /// Lets all threads that wait return without an end (`mx_wakeup`).
    pub fn wakeup(&self) {
        let mut core = self.shared.lock();
        core.wakeups += 1;
        core.leadership.wake_all();
    }

    /// Receives and sends what there is; whether frames came. Only an endpoint without a progress
    /// thread needs it.
    pub fn progress(&self) -> Result<bool, MxError> {
        self.core()?.advance()
    }

    pub(super) fn linger(&self, patience: Duration) -> Result<(), MxError> {
        let mut core = self.core()?;
        let now = core.tick();
        core.engine.close(now);
        core.leadership.lead_to_close();
        let until = deadline(Some(patience));
        let address = core.engine.address();
        loop {
            let advanced = core.advance()?;
            if core.engine.is_closed() {
                return Ok(());
            }
            if until.is_some_and(|until| until <= clock::now()) {
                return Err(MxError::Unfinished(address));
            }
            if !advanced {
                core = self.shared.sleep_on_port(core, until, Role::Leader)?;
            }
        }
    }

    fn try_take(&self, want: Filter) -> Result<Option<Completed<R>>, MxError> {
        let mut core = self.shared.lock();
        if let Some(completed) = core.ended.take(want) {
            return Ok(Some(completed));
        }
        core.check()?;
        core.advance()?;
        let now = core.now();
        core.leadership.polled(now);
        Ok(core.ended.take(want))
    }

    fn wait_for<T>(
        &self,
        want: Filter,
        timeout: Option<Duration>,
        take: impl Fn(&mut Core<S, R>) -> Option<T>,
    ) -> Result<Option<T>, MxError> {
        let until = deadline(timeout);
        let mut core = self.shared.lock();
        let wakeups = core.wakeups;
        loop {
            if let Some(taken) = take(&mut core) {
                return Ok(Some(taken));
            }
            core.check()?;
            if core.wakeups != wakeups || until.is_some_and(|until| until <= clock::now()) {
                return Ok(None);
            }
            core = if core.leadership.has_leader() {
                follow(core, want, until)
            } else {
                self.shared.lead(core, want, until)?
            };
        }
    }
}

impl<S: Source, R: Sink> Shared<S, R> {
    /// Drives the endpoint until something has ended that is wanted, or the time is over.
    fn lead<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core<S, R>>,
        want: Filter,
        until: Option<Instant>,
    ) -> Result<MutexGuard<'a, Core<S, R>>, MxError> {
        core.leadership.lead(want);
        let wakeups = core.wakeups;
        let mut begun = None;
        // After a sleep, what is due is done at once.
        let mut has_slept = true;
        let result = loop {
            let advanced = if has_slept { core.advance() } else { core.look() };
            let advanced = match advanced {
                Ok(advanced) => advanced,
                Err(error) => break Err(error),
            };
            let now = core.now();
            let begun = *begun.get_or_insert(now);
            let is_over = until.is_some_and(|until| until <= now) || core.wakeups != wakeups;
            if is_over || core.ended.has(want) || core.is_broken() {
                break Ok(());
            }
            let spins = match self.waiting {
                WaitMode::Sleep => false,
                WaitMode::Spin => true,
                WaitMode::Hybrid(span) => now.since(begun) < clock::span(span),
            };
            if advanced || spins || core.end_lent() {
                has_slept = false;
                // Others want the lock, too.
                drop(core);
                std::hint::spin_loop();
                core = self.lock();
                continue;
            }
            match self.sleep_on_port(core, until, Role::Leader) {
                Ok(awake) => core = awake,
                Err(error) => {
                    core = self.lock();
                    break Err(error);
                }
            }
            has_slept = true;
        };
        let now = core.now();
        core.leadership.step_down(now);
        result.map(|()| core)
    }

    /// Sleeps until a frame comes, the bell rings, or something is due.
    pub(super) fn sleep_on_port<'a>(
        &'a self,
        mut core: MutexGuard<'a, Core<S, R>>,
        until: Option<Instant>,
        role: Role,
    ) -> Result<MutexGuard<'a, Core<S, R>>, MxError> {
        if core.arm()? {
            return Ok(core);
        }
        let room = match core.blocked {
            Some(Room::Later(wait)) => deadline(Some(wait)),
            _ => None,
        };
        let deadline = core.engine.deadline().filter(|due| !core.leadership.is_watched(role, *due));
        let due = [until, deadline, room].into_iter().flatten().min();
        core.leadership.set_sleep(role, Some(due.unwrap_or(Instant::from_nanos(u64::MAX))));
        let writable = core.blocked == Some(Room::Writable);
        drop(core);
        let slept = self.sources.wait(role, due, writable);
        let mut core = self.lock();
        core.leadership.set_sleep(role, None);
        slept.map_err(|error| MxError::System(error.into()))?;
        match core.port.clear() {
            Ok(()) => Ok(core),
            Err(error) => Err(core.breaks(error)),
        }
    }
}

/// Sleeps until the leader has something for this thread, or leaves.
fn follow<'a, S, R>(
    mut core: MutexGuard<'a, Core<S, R>>,
    want: Filter,
    until: Option<Instant>,
) -> MutexGuard<'a, Core<S, R>> {
    let signal = core.leadership.follow(want);
    let mut core = match until {
        None => signal.wait(core).unwrap_or_else(PoisonError::into_inner),
        Some(until) => {
            let left = Duration::from_nanos(until.since(clock::now()).as_nanos());
            signal.wait_timeout(core, left).unwrap_or_else(PoisonError::into_inner).0
        }
    };
    core.leadership.unfollow(&signal);
    core
}

pub(super) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    Some(clock::now() + clock::span(timeout?))
}

//! Who drives an endpoint: a leader/follower machine.
//!
//! The *leader* is the thread of the application that drives engine and port: it was the first to
//! wait. *Followers* are the other threads that wait; each sleeps until the leader has completed
//! its request, or leaves. The *progress thread* drives while there is no leader. At most one
//! leader and the progress thread sleep on the port, each with a bell of its own.
//!
//! | state | leader | progress thread |
//! |---|---|---|
//! | idle | none; no call for a [`LEASE`] | drives, sleeps on the port |
//! | polled | none; a call within a `LEASE` | looks after a `LEASE`, more rarely if that lasts |
//! | led | drives, sleeps on the port without timers | looks after each `LEASE`, sees to timers |
//! | led for long | drives, sets its own timers | sleeps until its bell rings |
//!
//! Each look takes the processor from a program that polls.
//!
//! The machine has no clock and does no I/O but to ring; its owner has the lock of the endpoint.

use std::sync::{Arc, Condvar};
use std::time::Duration;

use base::time::Instant;
use sys::clock;

use super::completions::Filter;
use super::request::Completed;
use super::sources::{Role, Sources};

/// While the application has driven the endpoint within this time, the progress thread leaves it to
/// the application.
pub(super) const LEASE: Duration = Duration::from_micros(500);

/// If the application only polls, the progress thread looks again after this part of the time for
/// which it has: if it stops, this is how long no thread drives.
const LOOK_AFTER: u64 = 8;
/// It looks after this time at the latest, so that a peer resends one frame in vain at most
/// ([`Config::resend_min`](mx::config::Config::resend_min)).
const MAX_LOOK_AFTER: Duration = Duration::from_millis(2);

/// A leader that has been there for so many leases stays for a while: the progress thread stops
/// looking, and is woken when it leaves.
const LONG: u64 = 5;

/// What the leader is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leader {
    None,
    WaitsFor(Filter),
    /// It closes the endpoint and waits for no request.
    Closes,
}

/// What the progress thread does while others drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standby {
    /// It drives, or is about to look.
    No,
    /// It looks at this time whether something is due.
    Until(Instant),
    /// It sleeps until the leader rings.
    UntilBell,
}

/// A thread that sleeps until its request has ended or the leader leaves.
struct Follower {
    want: Filter,
    signal: Arc<Condvar>,
}

/// The state machine: which thread drives, and which threads wait.
pub(super) struct Leadership {
    leader: Leader,
    /// There was one since the progress thread has looked.
    was_led: bool,
    followers: Vec<Follower>,
    /// When a thread of the application last drove.
    driven_at: Instant,
    standby: Standby,
    /// Until when each role will sleep on the port, if it does and was not woken.
    sleeps_until: [Option<Instant>; 2],
    sources: Arc<Sources>,
}

impl Leadership {
    pub(super) const fn new(sources: Arc<Sources>) -> Self {
        Self {
            leader: Leader::None,
            was_led: false,
            followers: Vec::new(),
            driven_at: Instant::ZERO,
            standby: Standby::No,
            sleeps_until: [None; 2],
            sources,
        }
    }

    pub(super) fn has_leader(&self) -> bool {
        self.leader != Leader::None
    }

    /// The calling thread drives until this is completed.
    pub(super) const fn lead(&mut self, want: Filter) {
        self.leader = Leader::WaitsFor(want);
        self.was_led = true;
    }

    /// The calling thread drives until the endpoint is closed.
    pub(super) const fn lead_to_close(&mut self) {
        self.leader = Leader::Closes;
        self.was_led = true;
    }

    /// The leader leaves. A follower becomes the next, if there is one.
    pub(super) fn step_down(&mut self, now: Instant) {
        self.leader = Leader::None;
        self.driven_at = now;
        if self.standby == Standby::UntilBell {
            self.standby = Standby::No;
            self.sources.ring(Role::Progress);
        }
        if let Some(next) = self.followers.first() {
            next.signal.notify_one();
        }
    }

    /// The calling thread sleeps on what this returns until it is completed or the leader leaves.
    pub(super) fn follow(&mut self, want: Filter) -> Arc<Condvar> {
        let signal = Arc::new(Condvar::new());
        self.followers.push(Follower { want, signal: Arc::clone(&signal) });
        signal
    }

    /// A follower is awake.
    pub(super) fn unfollow(&mut self, signal: &Arc<Condvar>) {
        self.followers.retain(|follower| !Arc::ptr_eq(&follower.signal, signal));
    }

    /// A thread of the application drives, and does not wait.
    pub(super) const fn polled(&mut self, now: Instant) {
        self.driven_at = now;
    }

    /// The application drives no longer, and the progress thread must not wait to see that.
    pub(super) fn release(&mut self) {
        self.driven_at = Instant::ZERO;
        self.sources.ring(Role::Progress);
    }

    /// Whether the application has stopped driving.
    pub(super) fn is_over(&self, now: Instant) -> bool {
        !self.has_leader() && now.since(self.driven_at) >= clock::span(LEASE)
    }

    /// The progress thread drives again.
    pub(super) const fn take_over(&mut self) {
        self.standby = Standby::No;
    }

    /// Whether there is a leader, or was one since this was last asked.
    pub(super) fn was_led(&mut self) -> bool {
        let has_leader = self.has_leader();
        std::mem::replace(&mut self.was_led, has_leader)
    }

    /// The progress thread leaves the endpoint to the application, which has a leader since `led`:
    /// it sleeps until `at`, or until its bell rings.
    pub(super) fn stand_by(&mut self, now: Instant, at: Instant, led: Instant) -> Option<Instant> {
        let is_long = now.since(led) >= clock::span(LEASE).times(LONG);
        self.standby = if is_long { Standby::UntilBell } else { Standby::Until(at) };
        (!is_long).then_some(at)
    }

    /// Whether the progress thread will see to what is `due`, a lease late at most, so that a
    /// leader need not set a timer for it: that costs as much as a frame, each time it sleeps.
    pub(super) fn is_watched(&self, role: Role, due: Instant) -> bool {
        let Standby::Until(at) = self.standby else { return false };
        role == Role::Leader && at <= due + clock::span(LEASE)
    }

    /// This role sleeps on the port, or does not any more.
    pub(super) const fn set_sleep(&mut self, role: Role, until: Option<Instant>) {
        self.sleeps_until[role as usize] = until;
    }

    /// Whether no thread sleeps on the port.
    pub(super) fn is_awake(&self) -> bool {
        self.sleeps_until == [None; 2]
    }

    /// Wakes this role, which sleeps on the port. Once is enough, however long it takes until it
    /// has a processor: then it looks into the port, as one that is awake does.
    fn wake(&mut self, role: Role) {
        self.set_sleep(role, None);
        self.sources.ring(role);
    }

    /// Wakes all who sleep on the port, since the caller leaves it without arming it.
    pub(super) fn wake_sleepers(&mut self) {
        for role in [Role::Leader, Role::Progress] {
            if self.sleeps_until[role as usize].is_some() {
                self.wake(role);
            }
        }
    }

    /// Who sleeps on the port if anybody does, and until when.
    const fn sleeper(&self) -> (Role, Option<Instant>) {
        let role = match self.leader {
            Leader::None => Role::Progress,
            _ => Role::Leader,
        };
        (role, self.sleeps_until[role as usize])
    }

    /// Frames were sent, and not all if the port `is_blocked`. Who sleeps on the port has to know
    /// of a port without room; one that closes the endpoint looks after each frame.
    pub(super) fn sent(&mut self, is_blocked: bool) {
        if let (role, Some(_)) = self.sleeper()
            && (is_blocked || self.leader == Leader::Closes)
        {
            self.wake(role);
        }
    }

    /// Wakes who sleeps on the port and would miss what is due, so that it sets a timer.
    pub(super) fn hand_over_timer(&mut self, due: impl FnOnce() -> Option<Instant>) {
        if let (role, Some(until)) = self.sleeper()
            && let Some(due) = due()
            && due < until
            && !self.is_watched(role, due)
        {
            self.wake(role);
        }
    }

    /// Wakes who waits for this.
    pub(super) fn completed<R>(&mut self, completed: &Completed<R>) {
        // Another thread may have received what the leader sleeps for.
        if let Leader::WaitsFor(want) = self.leader
            && want.fits(completed)
            && self.sleeps_until[Role::Leader as usize].is_some()
        {
            self.wake(Role::Leader);
        }
        let wanted = |follower: &&Follower| follower.want.fits(completed);
        if let Some(follower) = self.followers.iter().find(wanted) {
            follower.signal.notify_one();
        }
    }

    /// Wakes all threads of the application that wait.
    pub(super) fn wake_all(&self) {
        for follower in &self.followers {
            follower.signal.notify_one();
        }
        self.sources.ring(Role::Leader);
    }

    /// Wakes the progress thread.
    pub(super) fn wake_progress(&self) {
        self.sources.ring(Role::Progress);
    }
}

/// When the progress thread looks again whether the application still drives, as it does since
/// `begun`, with a leader or without.
pub(super) fn look_at(now: Instant, begun: Instant, is_led: bool) -> Instant {
    if is_led {
        return now + clock::span(LEASE);
    }
    let part = base::time::Duration::from_nanos(now.since(begun).as_nanos() / LOOK_AFTER);
    now + part.clamp(clock::span(LEASE), clock::span(MAX_LOOK_AFTER))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_rarer_the_longer_the_application_has_polled() {
        let after = |us: u64, is_led| {
            let (begun, now) = (Instant::ZERO, Instant::from_micros(us));
            look_at(now, begun, is_led).since(now).as_nanos() / 1000
        };
        let times = [0, 4_000, 8_000, 16_000, 1_000_000];
        assert_eq!(times.map(|us| after(us, false)), [500, 500, 1_000, 2_000, 2_000]);
        assert_eq!(times.map(|us| after(us, true)), [500; 5]);
    }
}

//! How a kernel and its programs get at packets without an interrupt for each: what rivals
//! moderation by the NIC.
//!
//! Deferral ([`NapiSettings::defer_hard_irqs`], [`NapiSettings::flush_timeout`]) is what
//! `napi_complete_done` and `napi_watchdog` of `net/core/dev.c` do; busy polling
//! ([`NapiSettings::busy`]) is `napi_busy_loop` and `__busy_poll_stop` there, and `ep_busy_loop` of
//! `fs/eventpoll.c`; suspension ([`NapiSettings::suspend_timeout`]) is `napi_suspend_irqs` and
//! `napi_resume_irqs`, since Linux 6.13.
//!
//! `Documentation/networking/napi.rst` says what they are for.

use base::time::{Duration, Instant};

/// How a kernel polls, and its programs. All of it is off by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NapiSettings {
    /// After a poll that found packets the kernel polls so often by a timer, where it finds
    /// nothing, before it waits for interrupts again (`napi_defer_hard_irqs`).
    pub defer_hard_irqs: u32,
    /// From a poll to the next one by the timer (`gro_flush_timeout`).
    pub flush_timeout: Duration,
    /// For how long interrupts stay off after a program has found something, unless it looks again
    /// and finds nothing (`irq_suspend_timeout`); 0 is not at all.
    pub suspend_timeout: Duration,
    /// How programs poll before they sleep.
    pub busy: Option<BusyPolling>,
    /// A thread of the kernel polls instead of the softirq, on the last core of the machine
    /// (`threaded` of a NAPI instance).
    pub thread: Option<NapiThread>,
}

/// A thread that polls a NAPI instance. It competes with programs of its core as `ksoftirqd` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NapiThread {
    /// An interrupt wakes it, and it sleeps when it finds nothing more (`enabled`, Linux 5.12).
    Woken,
    /// It never sleeps, and interrupts stay off (`busy-poll`).
    Polling,
}

/// How a program polls for packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPolling {
    /// For how long (`busy_poll_usecs`, `SO_BUSY_POLL`); 0 is once.
    pub lasts: Duration,
    /// Interrupts stay off behind it, for as long as the kernel defers them (`prefer_busy_poll`,
    /// `SO_PREFER_BUSY_POLL`).
    pub prefer: bool,
}

/// What a queue's NAPI instance remembers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NapiInstance {
    /// Polls by the timer that may find nothing.
    pub(crate) deferrals: u32,
    /// When its timer runs out.
    pub(crate) timer: Option<Instant>,
    /// The process that polls it.
    pub(crate) claimed_by: Option<usize>,
    /// A softirq is to poll it as soon as the handler of an interrupt has ended.
    pub(crate) is_scheduled: bool,
}

/// A process that polls instead of sleeping.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PollingSession {
    /// Until when it does, if it finds nothing.
    pub(crate) until: Instant,
    /// Packets that the poll which is going on has taken.
    pub(crate) taken: u32,
    /// It has taken some at all.
    pub(crate) has_worked: bool,
}

/// What a look at an empty ring takes a program: the time in which it notices a packet.
pub(crate) const EMPTY_POLL: Duration = Duration::from_nanos(200);

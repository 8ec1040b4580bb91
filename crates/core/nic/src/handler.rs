//! The handler of a queue's interrupts on a processor that they keep busy.
//!
//! An interrupt is taken when the processor is free. Its handler polls: what has completed by then
//! is paid for, shown, and the host called. What completes meanwhile belongs to the same poll, as
//! under NAPI: it costs no second interrupt. Only a host that finds nothing more re-arms.
//!
//! ```text
//! NIC        raises                       m more complete
//! stage      Raised ────▶ Polls ──────▶ Receives ──▶ Idle ▶ Receives ──▶ Idle
//! processor  (until free) │ interrupt   │ n packets │       │ m packets │
//! host                                              called              called, re-arms
//! ```

use crate::processor::Processor;
use crate::queue::Queue;
use crate::time::Instant;

/// The most packets of one poll (`NAPI_POLL_WEIGHT`, `include/linux/netdevice.h`).
const WEIGHT: usize = 64;

/// How far the host is with an interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// There is none, or the host has been called.
    #[default]
    Idle,
    /// It is on its way, or waits for the processor, until this moment.
    Raised(Instant),
    /// It is taken, and the handler polls at this moment.
    Polls(Instant),
    /// So many packets have been received at this moment.
    Receives(Instant, usize),
}

/// The handler of a queue's interrupts.
#[derive(Debug, Default)]
pub struct Handler {
    stage: Stage,
}

impl Handler {
    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.stage == Stage::Idle
    }

    /// Forgets what is under way.
    pub fn reset(&mut self) {
        self.stage = Stage::Idle;
    }

    /// When [`next`](Self::next) has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Idle => None,
            Stage::Raised(at) | Stage::Polls(at) | Stage::Receives(at, _) => Some(at),
        }
    }

    /// Goes on up to `now`. If packets have been paid for: how many of those that `queue` has, to
    /// be shown now, before the next call. `raised` is an interrupt that the queue has raised,
    /// which is taken from there and reaches the host at `raised_until`.
    pub fn next<F, T>(
        &mut self,
        now: Instant,
        queue: &Queue<F>,
        processor: &mut Processor<T>,
        (raised, raised_until): (&mut bool, Instant),
    ) -> Option<usize> {
        loop {
            self.stage = match self.stage {
                Stage::Idle if core::mem::take(raised) => Stage::Raised(raised_until),
                // The host has been called and has not re-armed: it polls on, and nothing that it
                // does first takes time. It must be decided now, or its clock might run ahead.
                Stage::Idle if queue.is_masked() && queue.backlog() > 0 => Stage::Polls(now),
                Stage::Raised(at) if at <= now && processor.free_at() > now => {
                    Stage::Raised(processor.free_at())
                }
                Stage::Raised(at) if at <= now => Stage::Polls(processor.interrupt(now)),
                Stage::Polls(at) if at <= now => {
                    let count = queue.backlog().min(WEIGHT);
                    Stage::Receives(processor.receive(now, count), count)
                }
                Stage::Receives(at, count) if at <= now => {
                    self.stage = Stage::Idle;
                    return Some(count);
                }
                _ => return None,
            };
        }
    }
}

//! What a host's kernel costs its processor, where computing itself takes no time: in virtual time
//! and in predictions.
//!
//! A host has one processor. The kernel's part comes first and in order of arrival: interrupts,
//! packets that are received, packets that are sent. Work of a program runs when the kernel has
//! nothing to do, and whatever the kernel does meanwhile makes it end later:
//!
//! ```text
//! kernel          ┌─interrupt─┬─packet─┬─packet─┐         ┌─send─┐
//! work     ───────┘           waits             └─────────┘      └───▶ ends later by all four
//! ```
//!
//! A processor does not know what it is used for: its owner says when something begins, and asks
//! when it ends. Nothing here reads a clock.

use alloc::collections::VecDeque;
use core::iter::Sum;
use core::ops::{Index, Sub};

use crate::time::{Duration, Instant};

/// What the kernel of a host costs. All of it is free by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// An interrupt, until its handler polls.
    pub interrupt: Duration,
    /// A packet that is received.
    pub packet: Duration,
    /// A packet that is sent.
    pub send: Duration,
    /// Waking the processor, on top of an interrupt that finds it asleep.
    pub wakeup: Duration,
    /// For how long a processor is idle before it sleeps.
    pub idle_after: Duration,
}

impl Costs {
    /// Whether nothing costs anything.
    pub fn are_zero(&self) -> bool {
        let Self { interrupt, packet, send, wakeup, .. } = *self;
        [interrupt, packet, send, wakeup] == [Duration::ZERO; 4]
    }
}

/// What a processor is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It wakes up.
    Wakeup,
    /// It takes an interrupt.
    Interrupt,
    /// It receives packets.
    Receive,
    /// It sends a packet.
    Send,
    /// It works for a program.
    Work,
}

impl Activity {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Wakeup, Self::Interrupt, Self::Receive, Self::Send, Self::Work];
}

/// For how long a processor has been busy, and with what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy([Duration; Activity::ALL.len()]);

impl Index<Activity> for Busy {
    type Output = Duration;

    fn index(&self, activity: Activity) -> &Duration {
        &self.0[activity as usize]
    }
}

impl Busy {
    fn add(&mut self, activity: Activity, span: Duration) {
        let sum = &mut self.0[activity as usize];
        *sum = *sum + span;
    }
}

impl Sum for Busy {
    fn sum<I: Iterator<Item = Self>>(each: I) -> Self {
        each.fold(Self::default(), |sum, one| {
            Self(core::array::from_fn(|at| sum.0[at] + one.0[at]))
        })
    }
}

impl Sub for Busy {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self(core::array::from_fn(|at| self.0[at] - earlier.0[at]))
    }
}

/// Something that the kernel does without a break.
#[derive(Clone, Copy, Debug)]
struct Span {
    activity: Activity,
    from: Instant,
    until: Instant,
}

/// The one processor of a host; `T` is what a piece of work is for.
#[derive(Clone, Debug)]
pub struct Processor<T> {
    costs: Costs,
    /// What the kernel does and has still to do. What is over is in `busy`.
    kernel: VecDeque<Span>,
    /// When the kernel has done all of it.
    free_at: Instant,
    /// What is left of each piece of work; the first one is done when the kernel does nothing.
    work: VecDeque<(Duration, T)>,
    /// Up to when the first one's progress has been reckoned.
    work_from: Instant,
    /// When the last piece of work ended.
    worked_until: Instant,
    busy: Busy,
}

impl<T> Processor<T> {
    /// A processor that sleeps.
    pub fn new(costs: Costs) -> Self {
        Self {
            costs,
            kernel: VecDeque::new(),
            free_at: Instant::ZERO,
            work: VecDeque::new(),
            work_from: Instant::ZERO,
            worked_until: Instant::ZERO,
            busy: Busy::default(),
        }
    }

    /// When the kernel has nothing to do any more; it may have passed.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// The host is interrupted at `now`, when its kernel is free; when its handler polls.
    pub fn interrupt(&mut self, now: Instant) -> Instant {
        let idle_since = self.free_at.max(self.worked_until);
        let idle = now.since(idle_since);
        let sleeps = self.work.is_empty() && idle > Duration::ZERO && idle >= self.costs.idle_after;
        if sleeps {
            self.run(now, Activity::Wakeup, self.costs.wakeup);
        }
        self.run(now, Activity::Interrupt, self.costs.interrupt)
    }

    /// A poll of `count` packets; when all of them have been received.
    pub fn receive(&mut self, now: Instant, count: usize) -> Instant {
        let all = Duration::from_nanos(self.costs.packet.as_nanos() * count as u64);
        self.run(now, Activity::Receive, all)
    }

    /// A packet that a program sends; when it leaves.
    pub fn send(&mut self, now: Instant) -> Instant {
        self.run(now, Activity::Send, self.costs.send)
    }

    /// A program begins to work, behind work that is there.
    pub fn work(&mut self, now: Instant, length: Duration, of: T) {
        if self.work.is_empty() {
            self.work_from = now.max(self.free_at);
        }
        self.work.push_back((length, of));
    }

    /// When the first piece of work ends if nothing else comes.
    pub fn work_ends_at(&self) -> Option<Instant> {
        self.work.front().map(|(left, _)| self.work_from + *left)
    }

    /// The first piece of work, if it has ended.
    pub fn take_ended(&mut self, now: Instant) -> Option<T> {
        let end = self.work_ends_at().filter(|end| *end <= now)?;
        self.progress(end);
        self.worked_until = end;
        self.work.pop_front().map(|(_, of)| of)
    }

    /// For how long it has been busy up to `now`, and with what.
    pub fn busy(&self, now: Instant) -> Busy {
        let mut busy = self.busy;
        for span in &self.kernel {
            busy.add(span.activity, span.until.min(now).since(span.from.min(now)));
        }
        if let Some((left, _)) = self.work.front() {
            busy.add(Activity::Work, now.since(self.work_from).min(*left));
        }
        busy
    }

    /// The kernel does something from `now` on, or after what it has to do before.
    fn run(&mut self, now: Instant, activity: Activity, length: Duration) -> Instant {
        let from = now.max(self.free_at);
        if let Some((left, _)) = self.work.front()
            && from < self.work_from + *left
        {
            self.progress(from);
            self.work_from = from + length;
        }
        while let Some(over) = self.kernel.front().copied().filter(|span| span.until <= now) {
            self.kernel.pop_front();
            self.busy.add(over.activity, over.until.since(over.from));
        }
        self.free_at = from + length;
        if length > Duration::ZERO {
            self.kernel.push_back(Span { activity, from, until: self.free_at });
        }
        self.free_at
    }

    /// The first piece of work has been done up to `until`.
    fn progress(&mut self, until: Instant) {
        let Some((left, _)) = self.work.front_mut() else { return };
        let done = until.since(self.work_from);
        *left = *left - done;
        self.busy.add(Activity::Work, done);
        self.work_from = self.work_from.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ns(nanos: u64) -> Duration {
        Duration::from_nanos(nanos)
    }

    const fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn processor() -> Processor<&'static str> {
        Processor::new(Costs {
            interrupt: ns(191),
            packet: ns(774),
            send: ns(500),
            wakeup: ns(4_000),
            idle_after: ns(10_000),
        })
    }

    #[test]
    fn kernel_does_one_thing_after_the_other() {
        let mut processor = processor();
        assert_eq!(processor.interrupt(at(1_000)), at(1_191));
        assert_eq!(processor.receive(at(1_191), 3), at(1_191 + 3 * 774));
        // Sent meanwhile, so it leaves behind what is received.
        assert_eq!(processor.send(at(2_000)), at(1_191 + 3 * 774 + 500));
        assert_eq!(processor.send(at(9_000)), at(9_500));
    }

    #[test]
    fn only_a_processor_that_was_idle_for_long_wakes_up() {
        let mut processor = processor();
        assert_eq!(processor.interrupt(at(10_000)), at(14_191), "from the beginning of time");
        assert_eq!(processor.interrupt(at(24_190)), at(24_381), "a nanosecond too early to sleep");
        assert_eq!(processor.interrupt(at(34_381)), at(38_572));
        processor.work(at(40_000), ns(20_000), "kept awake");
        assert_eq!(processor.interrupt(at(59_000)), at(59_191));
        assert_eq!(processor.busy(at(99_000))[Activity::Wakeup], ns(8_000));
    }

    #[test]
    fn work_ends_later_by_what_the_kernel_does_meanwhile() {
        let mut processor = processor();
        processor.work(at(1_000), ns(100_000), "first");
        processor.work(at(1_000), ns(50_000), "second");
        assert_eq!(processor.work_ends_at(), Some(at(101_000)));
        processor.interrupt(at(20_000));
        processor.receive(at(20_191), 1);
        assert_eq!(processor.work_ends_at(), Some(at(101_965)));
        processor.send(at(20_500));
        assert_eq!(processor.work_ends_at(), Some(at(102_465)));
        assert_eq!(processor.take_ended(at(102_464)), None);
        assert_eq!(processor.take_ended(at(102_465)), Some("first"));
        assert_eq!(processor.work_ends_at(), Some(at(152_465)));
        // At its very end, so it is not delayed.
        assert_eq!(processor.interrupt(at(152_465)), at(152_656));
        assert_eq!(processor.take_ended(at(152_465)), Some("second"));
        assert_eq!(processor.take_ended(at(999_999)), None);
    }

    #[test]
    fn work_begins_when_the_kernel_has_time() {
        let mut processor = processor();
        processor.receive(at(0), 2);
        processor.work(at(100), ns(1_000), "patient");
        assert_eq!(processor.work_ends_at(), Some(at(2 * 774 + 1_000)));
    }

    #[test]
    fn what_it_was_busy_with_adds_up_at_any_moment() {
        let mut processor = processor();
        let seen = |processor: &Processor<_>, moment| {
            let busy = processor.busy(at(moment));
            Activity::ALL.map(|activity| busy[activity].as_nanos())
        };
        processor.work(at(1_000), ns(3_000), "work");
        assert_eq!(seen(&processor, 1_500), [0, 0, 0, 0, 500]);
        processor.interrupt(at(2_000));
        assert_eq!(seen(&processor, 2_100), [0, 100, 0, 0, 1_000]);
        processor.receive(at(2_191), 1);
        assert_eq!(seen(&processor, 2_291), [0, 191, 100, 0, 1_000]);
        assert_eq!(seen(&processor, 3_965), [0, 191, 774, 0, 2_000]);
        assert_eq!(seen(&processor, 9_999), [0, 191, 774, 0, 3_000]);
    }
}

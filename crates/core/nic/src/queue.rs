//! One receive queue: a ring of packets in host memory, and the vector that signals them.

use alloc::collections::VecDeque;

use crate::counters::Counters;
use crate::descriptor::Descriptor;
use crate::moderation::{
    Interrupt, Moderation, Moderator as _, Phase, Profile, Taken, TimerKind, Unseen,
};
use crate::observer::{Delivered, Interrupted, Observer};
use crate::time::{Duration, Instant};
use crate::vector::Vector;

#[derive(Clone, Debug)]
struct Slot<F> {
    descriptor: Descriptor,
    frame: F,
}

/// A ring of `F` (whatever holds a frame's bytes), its vector and its counters.
///
/// DMAs complete in the order in which they were submitted, so the ring is a run of completed
/// packets followed by a run of pending ones.
#[derive(Clone, Debug)]
pub struct Queue<F> {
    number: u16,
    ring: VecDeque<Slot<F>>,
    size: usize,
    completed: usize,
    completed_marked: u32,
    /// What the host has taken since the last interrupt.
    taken: Taken,
    transmitted_at: Option<Instant>,
    moderation: Moderation,
    vector: Vector,
    interrupt: Option<Interrupted>,
    raised: bool,
    pub(crate) counters: Counters,
}

impl<F> Queue<F> {
    /// An empty queue with a ring of `size` packets.
    #[must_use]
    pub fn new(number: u16, size: usize, moderation: Moderation, now: Instant) -> Self {
        Self::in_phase(number, size, moderation, Phase::default(), now)
    }

    /// The same; free-running ticks start in `phase`.
    #[must_use]
    pub fn in_phase(
        number: u16,
        size: usize,
        moderation: Moderation,
        phase: Phase,
        now: Instant,
    ) -> Self {
        Self {
            number,
            ring: VecDeque::with_capacity(size),
            size,
            completed: 0,
            completed_marked: 0,
            taken: Taken::default(),
            transmitted_at: None,
            moderation,
            vector: Vector::in_phase(moderation, phase, now),
            interrupt: None,
            raised: false,
            counters: Counters::default(),
        }
    }

    /// The setting in force.
    #[must_use]
    pub fn moderation(&self) -> &Moderation {
        &self.moderation
    }

    /// The microseconds and the frame count in force: those of the setting, or what `adaptive` or
    /// `itr` has chosen.
    #[must_use]
    pub fn in_force(&self) -> Profile {
        let Moderation { rx_usecs, rx_frames, .. } = self.moderation;
        match (self.vector.moderator().chosen(), self.moderation.timer) {
            (Some(chosen), TimerKind::Adaptive) => chosen,
            (Some(chosen), _) => Profile { rx_frames, ..chosen },
            (None, _) => Profile { rx_usecs, rx_frames },
        }
    }

    /// What this queue has counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Puts an arrived packet into the ring and submits its DMA, to complete at
    /// `descriptor.completed_at`.
    ///
    /// # Errors
    /// Gives the frame back if the ring is full. It is counted.
    pub fn arrive(&mut self, now: Instant, descriptor: Descriptor, frame: F) -> Result<(), F> {
        if self.ring.len() >= self.size {
            self.counters.ring_full += 1;
            return Err(frame);
        }
        self.counters.count_arrival(&descriptor);
        self.vector.packet_arrived(now, &descriptor);
        self.ring.push_back(Slot { descriptor, frame });
        Ok(())
    }

    /// Completes the DMAs that are due by `now`, then lets the timer act.
    pub fn advance(&mut self, now: Instant, observer: &mut impl Observer) {
        while let Some(slot) = self.ring.get_mut(self.completed) {
            if slot.descriptor.completed_at > now {
                break;
            }
            slot.descriptor.completed_at = now;
            let descriptor = slot.descriptor;
            self.completed += 1;
            self.completed_marked += u32::from(descriptor.marked);
            let pending = self.dma_pending();
            let interrupt = self.vector.dma_completed(now, &descriptor, pending);
            self.raise(now, interrupt, observer);
        }
        let interrupt = self.vector.advance(now);
        self.raise(now, interrupt, observer);
    }

    /// A transmission of the host completed, on a NIC whose transmit completions share this
    /// interrupt.
    pub fn transmit_completed(&mut self, now: Instant, observer: &mut impl Observer) {
        self.counters.transmit_completions += 1;
        self.transmitted_at.get_or_insert(now);
        let interrupt = self.vector.transmit_completed(now);
        self.raise(now, interrupt, observer);
    }

    /// The device interrupts the host by registers of its own ([`Driver`]); nothing while masked.
    ///
    /// [`Driver`]: crate::moderation::Driver
    pub fn interrupt(&mut self, now: Instant, observer: &mut impl Observer) {
        let interrupt = self.vector.interrupt(now);
        self.raise(now, interrupt, observer);
    }

    /// When [`advance`](Self::advance) has something to do next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let dma = self.ring.get(self.completed).map(|slot| slot.descriptor.completed_at);
        [dma, self.vector.deadline()].into_iter().flatten().min()
    }

    /// Whether an interrupt was raised since the last call; the host then polls until it re-arms.
    pub fn take_interrupt(&mut self) -> bool {
        core::mem::take(&mut self.raised)
    }

    /// Whether the host has been interrupted and has not re-armed yet.
    #[must_use]
    pub fn is_masked(&self) -> bool {
        self.vector.is_masked()
    }

    /// Packets in the ring, their DMA completed or not.
    #[must_use]
    pub fn in_ring(&self) -> usize {
        self.ring.len()
    }

    /// Completed packets that the host has not taken yet.
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.completed
    }

    /// The frames of those packets, oldest first, without the first `skip`.
    ///
    /// For an owner whose host has buffers of its own: it copies frames there as soon as their
    /// DMA has completed, and [`poll`](Self::poll)s them when the host knows of them.
    pub fn completed_frames(&self, skip: usize) -> impl ExactSizeIterator<Item = &F> {
        self.ring.range(skip.min(self.completed)..self.completed).map(|slot| &slot.frame)
    }

    /// Changes how many packets the ring holds. What is in it stays, even if that is more.
    ///
    /// For an owner whose host posts buffers as it goes: the size is then what the host has not
    /// taken yet and the buffers it has posted.
    pub fn set_size(&mut self, size: usize) {
        self.size = size;
    }

    /// The host takes up to `budget` completed packets, oldest first; how many it took.
    ///
    /// Less than the budget means that the ring was empty, and the host re-arms. A host may also
    /// poll without having been interrupted; the timer then forgets the packets it took.
    pub fn poll(
        &mut self,
        now: Instant,
        budget: usize,
        observer: &mut impl Observer,
        mut take: impl FnMut(&Delivered, F),
    ) -> usize {
        let count = budget.min(self.completed);
        for Slot { descriptor, frame } in self.ring.drain(..count) {
            let signalled_at = self.interrupt.map(|interrupt| interrupt.at);
            self.completed_marked -= u32::from(descriptor.marked);
            self.taken.add(descriptor.length);
            let delivered = Delivered {
                queue: self.number,
                descriptor,
                at: now,
                hold: signalled_at.unwrap_or(now).since(descriptor.completed_at),
                interrupt: self.interrupt,
            };
            observer.delivered(&delivered);
            take(&delivered, frame);
        }
        self.completed -= count;
        self.transmitted_at = None;
        self.counters.delivered += count as u64;
        self.counters.polls += u64::from(count > 0);
        if !self.vector.is_masked() {
            self.rearm(now, observer);
        }
        count
    }

    /// The host unmasks the interrupt. What completed since its last poll is signalled at once if
    /// it is due.
    pub fn rearm(&mut self, now: Instant, observer: &mut impl Observer) {
        self.interrupt = None;
        let unseen = Unseen { taken: Some(self.taken), ..self.unseen() };
        let interrupt = self.vector.rearm(now, &unseen);
        self.raise(now, interrupt, observer);
    }

    /// Changes the setting, whatever is pending: none is lost, none waits longer than the new rule
    /// says.
    pub fn set_moderation(
        &mut self,
        now: Instant,
        moderation: Moderation,
        observer: &mut impl Observer,
    ) {
        self.moderation = moderation;
        let unseen = self.unseen();
        let interrupt = self.vector.set_moderation(now, moderation, &unseen);
        self.raise(now, interrupt, observer);
    }

    fn dma_pending(&self) -> u32 {
        (self.ring.len() - self.completed) as u32
    }

    fn unseen(&self) -> Unseen {
        let first = self.ring.front().filter(|_| self.completed > 0);
        let last = self.completed.checked_sub(1).and_then(|last| self.ring.get(last));
        let received = first.map(|slot| slot.descriptor.completed_at);
        Unseen {
            packets: self.completed as u32,
            marked: self.completed_marked,
            oldest: [received, self.transmitted_at].into_iter().flatten().min(),
            newest: last.map(|slot| slot.descriptor.completed_at),
            dma_pending: self.dma_pending(),
            taken: None,
        }
    }

    fn raise(&mut self, now: Instant, interrupt: Interrupt, observer: &mut impl Observer) {
        let Some(reason) = interrupt else { return };
        self.counters.count_interrupt(reason);
        let interrupt = Interrupted {
            queue: self.number,
            number: self.counters.interrupts_total(),
            at: now,
            reason,
            packets: self.completed as u32,
        };
        self.interrupt = Some(interrupt);
        self.taken = Taken::default();
        self.raised = true;
        observer.interrupted(&interrupt);
    }
}

/// The DMA engine of a port: how long a frame takes from the wire into host memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dma {
    /// Time until the last byte is visible to the host, on top of the transfer itself.
    pub latency: Duration,
    /// Transfer rate in bytes per microsecond (which is MB/s); 0: no limit.
    pub bytes_per_us: u32,
}

impl Dma {
    /// Time that the engine is busy with a frame of `length` bytes.
    #[must_use]
    pub fn transfer(&self, length: u32) -> Duration {
        let nanos = (u64::from(length) * 1_000).checked_div(self.bytes_per_us.into());
        Duration::from_nanos(nanos.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(at: u64) -> Descriptor {
        let at = Instant::from_micros(at);
        Descriptor { length: 64, marked: false, arrived_at: at, completed_at: at }
    }

    #[test]
    fn completed_frames_are_those_that_the_host_can_read() {
        let at = Instant::from_micros;
        let mut queue = Queue::new(0, 8, Moderation::DISABLED, at(0));
        for number in 1..=3 {
            queue.arrive(at(0), packet(number), number).unwrap();
        }
        queue.advance(at(2), &mut ());
        assert!(queue.completed_frames(0).eq(&[1, 2]));
        assert!(queue.completed_frames(1).eq(&[2]));
        assert_eq!(queue.completed_frames(9).len(), 0);
        queue.poll(at(2), 1, &mut (), |_, _| {});
        assert!(queue.completed_frames(0).eq(&[2]));
    }

    #[test]
    fn smaller_ring_keeps_what_it_has_and_takes_no_more() {
        let at = Instant::from_micros;
        let mut queue = Queue::new(0, 2, Moderation::DISABLED, at(0));
        queue.arrive(at(0), packet(1), 1).unwrap();
        queue.arrive(at(0), packet(1), 2).unwrap();
        queue.set_size(1);
        assert_eq!(queue.arrive(at(0), packet(1), 3), Err(3));
        queue.advance(at(1), &mut ());
        assert_eq!(queue.poll(at(1), 64, &mut (), |_, _| {}), 2);
        queue.arrive(at(1), packet(1), 4).unwrap();
        assert_eq!(queue.counters().ring_full, 1);
    }
}

//! A receive queue whose NIC writes completions with its reports and asks for interrupts by claims.
//!
//! myri10ge is such a NIC: the host learns of packets from a status block that the NIC writes when
//! its moderation says so, and it goes on to write reports while the host polls. An interrupt needs
//! a claim token, which the host hands back (`irq_claim` in
//! `drivers/net/ethernet/myricom/myri10ge/myri10ge.c`): one when it has polled, and one for
//! transmissions when the handler of an interrupt has cleaned up.
//!
//! A [`Queue`](crate::queue::Queue) differs in both: a poll finds every packet whose DMA has
//! completed, and its vector decides nothing while it is masked.

use alloc::collections::VecDeque;

use crate::counters::Counters;
use crate::descriptor::Descriptor;
use crate::moderation::{Interrupt, Moderation, Unseen};
use crate::observer::{Delivered, Interrupted, Observer};
use crate::time::Instant;
use crate::vector::Vector;

/// What an interrupt of a [`ClaimQueue`] asks of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// To poll, and to [re-arm](ClaimQueue::rearm) after it.
    Poll,
    /// To clean up transmissions, and to say when its [handler](ClaimQueue::handled) has ended.
    Transmissions,
}

/// A ring of `F`, reported in parts.
#[derive(Clone, Debug)]
pub struct ClaimQueue<F> {
    ring: VecDeque<(Descriptor, F)>,
    size: usize,
    completed: usize,
    reported: usize,
    vector: Vector,
    /// Transmissions have a token of their own, so that they interrupt a host that polls.
    claims_transmissions: bool,
    may_poll: bool,
    may_interrupt: bool,
    raised: Option<Claimed>,
    /// Something was reported that no interrupt has signalled, because no token was there.
    is_owed: bool,
    has_transmitted: bool,
    last: Option<Interrupted>,
    counters: Counters,
}

impl<F> ClaimQueue<F> {
    /// An empty queue with a ring of `size` packets.
    #[must_use]
    pub fn new(size: usize, moderation: Moderation, transmissions: bool, now: Instant) -> Self {
        Self {
            ring: VecDeque::new(),
            size,
            completed: 0,
            reported: 0,
            vector: Vector::new(moderation, now),
            claims_transmissions: transmissions,
            may_poll: true,
            may_interrupt: true,
            raised: None,
            is_owed: false,
            has_transmitted: false,
            last: None,
            counters: Counters::default(),
        }
    }

    /// What this queue has counted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Packets in the ring.
    #[must_use]
    pub fn in_ring(&self) -> usize {
        self.ring.len()
    }

    /// Puts an arrived packet into the ring and submits its DMA.
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
        self.ring.push_back((descriptor, frame));
        Ok(())
    }

    /// Completes the DMAs that are due by `now`, then lets the timer act.
    pub fn advance(&mut self, now: Instant, observer: &mut impl Observer) {
        while let Some((descriptor, _)) = self.ring.get(self.completed) {
            if descriptor.completed_at > now {
                break;
            }
            let descriptor = *descriptor;
            self.completed += 1;
            let pending = (self.ring.len() - self.completed) as u32;
            let reason = self.vector.dma_completed(now, &descriptor, pending);
            self.report(now, reason, observer);
        }
        let reason = self.vector.advance(now);
        self.report(now, reason, observer);
    }

    /// A transmission of the host completed.
    pub fn transmit_completed(&mut self, now: Instant, observer: &mut impl Observer) {
        self.counters.transmit_completions += 1;
        self.has_transmitted = true;
        let reason = self.vector.transmit_completed(now);
        self.report(now, reason, observer);
    }

    /// When [`advance`](Self::advance) has something to do next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        let dma = self.ring.get(self.completed).map(|(descriptor, _)| descriptor.completed_at);
        [dma, self.vector.deadline()].into_iter().flatten().min()
    }

    /// The interrupt that was raised since the last call.
    pub fn take_interrupt(&mut self) -> Option<Claimed> {
        self.raised.take()
    }

    /// The handler of an interrupt has ended, and gives its token back.
    pub fn handled(&mut self, now: Instant, observer: &mut impl Observer) {
        self.may_interrupt = true;
        self.raise(now, observer);
    }

    /// The host takes a packet that was reported.
    pub fn poll(&mut self, now: Instant, observer: &mut impl Observer) -> Option<F> {
        self.reported = self.reported.checked_sub(1)?;
        self.completed -= 1;
        let (descriptor, frame) = self.ring.pop_front()?;
        self.counters.delivered += 1;
        let signalled = self.last.filter(|last| last.at >= descriptor.completed_at);
        let hold = signalled.map_or(now, |last| last.at).since(descriptor.completed_at);
        let (queue, interrupt) = (0, self.last);
        observer.delivered(&Delivered { queue, descriptor, at: now, hold, interrupt });
        Some(frame)
    }

    /// The host has polled until nothing was left, and gives its token back.
    pub fn rearm(&mut self, now: Instant, observer: &mut impl Observer) {
        self.may_poll = true;
        // What was reported during the poll and taken by it needs no interrupt.
        let transmissions = self.claims_transmissions && self.has_transmitted;
        self.is_owed = self.reported > 0 || self.is_owed && transmissions;
        self.raise(now, observer);
    }

    /// Changes the setting, whatever is pending: none is lost.
    pub fn set_moderation(
        &mut self,
        now: Instant,
        moderation: Moderation,
        observer: &mut impl Observer,
    ) {
        let unreported = self.ring.range(self.reported..self.completed);
        let pending = (self.ring.len() - self.completed) as u32;
        let unseen = Unseen::of(unreported.map(|(descriptor, _)| descriptor), pending);
        let reason = self.vector.set_moderation(now, moderation, &unseen);
        self.report(now, reason, observer);
    }

    /// The NIC writes a report: what has completed is visible, and moderation begins anew.
    fn report(&mut self, now: Instant, reason: Interrupt, observer: &mut impl Observer) {
        let Some(reason) = reason else { return };
        self.reported = self.completed;
        // With nothing unseen no strategy has a reason to interrupt again.
        let again = self.vector.rearm(now, &Unseen::default());
        debug_assert_eq!(again, None);
        self.is_owed = true;
        let number = self.counters.interrupts_total() + 1;
        let packets = self.reported as u32;
        self.last = Some(Interrupted { queue: 0, number, at: now, reason, packets });
        self.raise(now, observer);
    }

    fn raise(&mut self, now: Instant, observer: &mut impl Observer) {
        let has_packets = self.reported > 0 || !self.claims_transmissions;
        let polls = self.is_owed && self.may_poll && has_packets;
        let transmissions = self.is_owed && self.claims_transmissions && self.has_transmitted;
        if !self.may_interrupt || !(polls || transmissions) {
            return;
        }
        self.may_interrupt = !self.claims_transmissions;
        self.may_poll &= !polls;
        self.raised = Some(if polls { Claimed::Poll } else { Claimed::Transmissions });
        (self.is_owed, self.has_transmitted) = (false, false);
        if let Some(last) = self.last {
            self.counters.count_interrupt(last.reason);
            observer.interrupted(&Interrupted { at: now, ..last });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_micros(us)
    }

    fn arrive(queue: &mut ClaimQueue<u64>, us: u64) {
        let now = at(us);
        let packet = Descriptor { length: 64, marked: false, arrived_at: now, completed_at: now };
        queue.advance(now, &mut ());
        queue.arrive(now, packet, us).unwrap();
        queue.advance(now, &mut ());
    }

    #[test]
    fn a_poll_finds_what_was_reported_and_nothing_else() {
        let mut queue = ClaimQueue::new(8, "delay:10".parse().unwrap(), false, at(0));
        arrive(&mut queue, 1);
        assert_eq!(queue.poll(at(1), &mut ()), None);
        queue.advance(at(11), &mut ());
        assert_eq!(queue.take_interrupt(), Some(Claimed::Poll));
        arrive(&mut queue, 12);
        assert_eq!(queue.poll(at(12), &mut ()), Some(1));
        assert_eq!(queue.poll(at(12), &mut ()), None, "the second has completed, unreported");
        queue.advance(at(22), &mut ());
        assert_eq!(queue.take_interrupt(), None, "the host polls, and the NIC has reported");
        assert_eq!(queue.poll(at(23), &mut ()), Some(12));
        queue.rearm(at(24), &mut ());
        assert_eq!(queue.take_interrupt(), None, "a report whose packets were taken is no debt");
        assert_eq!(queue.counters().interrupts_total(), 1);
    }

    #[test]
    fn transmissions_with_a_token_of_their_own_interrupt_a_host_that_polls() {
        for (own, raised) in [(false, None), (true, Some(Claimed::Transmissions))] {
            let mut queue = ClaimQueue::new(8, Moderation::DISABLED, own, at(0));
            arrive(&mut queue, 1);
            assert_eq!(queue.take_interrupt(), Some(Claimed::Poll));
            queue.handled(at(2), &mut ());
            queue.transmit_completed(at(3), &mut ());
            assert_eq!(queue.take_interrupt(), raised, "own token: {own}");
            queue.transmit_completed(at(4), &mut ());
            assert_eq!(queue.take_interrupt(), None, "its handler has not ended");
            queue.handled(at(5), &mut ());
            assert_eq!(queue.take_interrupt(), raised);
        }
    }

    #[test]
    fn a_full_ring_gives_the_frame_back() {
        let mut queue = ClaimQueue::new(1, Moderation::DISABLED, false, at(0));
        arrive(&mut queue, 1);
        let packet =
            Descriptor { length: 64, marked: false, arrived_at: at(1), completed_at: at(1) };
        assert_eq!(queue.arrive(at(1), packet, 2), Err(2));
        assert_eq!(queue.counters().ring_full, 1);
    }
}

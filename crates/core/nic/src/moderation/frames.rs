//! `rx-frames`: enough packets have gathered.

use super::{Interrupt, Moderator, Reason, Unseen};
use crate::descriptor::Descriptor;
use crate::time::Instant;

/// Interrupts when the timer does, or when `limit` packets have gathered, whichever is first.
#[derive(Clone, Debug)]
pub struct Frames<T> {
    timer: T,
    limit: u32,
    gathered: u32,
}

impl<T> Frames<T> {
    /// Bounds `timer` by a count of frames; a `limit` of 0 leaves the timer alone, as `rx-frames 0`
    /// does.
    #[must_use]
    pub fn new(timer: T, limit: u32) -> Self {
        Self { timer, limit, gathered: 0 }
    }

    /// Changes the limit.
    pub fn set_limit(&mut self, limit: u32) {
        self.limit = limit;
    }

    /// The timer underneath.
    #[must_use]
    pub fn timer(&self) -> &T {
        &self.timer
    }

    /// The timer underneath, to retune it.
    pub fn timer_mut(&mut self) -> &mut T {
        &mut self.timer
    }

    fn enough(&self) -> bool {
        self.limit > 0 && self.gathered >= self.limit
    }
}

impl<T: Moderator> Moderator for Frames<T> {
    forward_to_timer!(packet_arrived transmit_completed timer_expired deadline);

    #[inline]
    fn dma_completed(&mut self, now: Instant, descriptor: &Descriptor, pending: u32) -> Interrupt {
        // Without a limit it may wrap, and nobody looks.
        self.gathered = self.gathered.wrapping_add(1);
        let timer = self.timer.dma_completed(now, descriptor, pending);
        if self.enough() { Some(Reason::Frames) } else { timer }
    }

    #[inline]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        self.gathered = unseen.packets;
        let timer = self.timer.host_rearmed(now, unseen);
        if self.enough() { Some(Reason::Rearm) } else { timer }
    }

    #[inline]
    fn interrupt_raised(&mut self, now: Instant) {
        self.gathered = 0;
        self.timer.interrupt_raised(now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Timeline;
    use super::super::{Delay, Throttle};
    use super::*;
    use crate::time::Duration;

    fn frames(limit: u32) -> Timeline<Frames<Delay>> {
        Timeline::of(Frames::new(Delay::new(Duration::from_micros(75)), limit))
    }

    #[test]
    fn nth_packet_interrupts_before_the_timer_does() {
        let mut nic = frames(3);
        assert_eq!(
            [nic.packet(0), nic.packet(1), nic.packet(2)],
            [None, None, Some(Reason::Frames)]
        );
        assert_eq!(nic.host_answers(5), None);
        assert_eq!(nic.packet(10), None);
        assert_eq!(nic.expires(), Some((85, Reason::Timer)));
    }

    #[test]
    fn interrupt_of_the_timer_starts_the_count_anew() {
        let mut nic = frames(2);
        nic.packet(0);
        nic.expires();
        nic.host_answers(80);
        assert_eq!(nic.packet(90), None);
        assert_eq!(nic.packet(91), Some(Reason::Frames));
    }

    #[test]
    fn packets_that_the_last_poll_missed_count() {
        let mut nic = frames(2);
        nic.packet(0);
        nic.packet(1);
        nic.host_polls();
        nic.packet(2);
        assert_eq!(nic.host_rearms(3), None);
        assert_eq!(nic.packet(4), Some(Reason::Frames));
        nic.host_polls();
        nic.packet(5);
        nic.packet(6);
        assert_eq!(nic.host_rearms(7), Some(Reason::Rearm));
    }

    #[test]
    fn no_limit_leaves_the_timer_alone() {
        let mut nic = frames(0);
        assert!((0..50).all(|at| nic.packet(at).is_none()));
        assert_eq!(nic.expires(), Some((75, Reason::Timer)));
    }

    #[test]
    fn frames_cut_the_gap_of_a_throttle_short() {
        let mut nic = Timeline::of(Frames::new(Throttle::new(Duration::from_micros(125)), 2));
        assert_eq!(nic.packet(0), Some(Reason::Timer));
        nic.host_answers(0);
        assert_eq!(nic.packet(10), None);
        assert_eq!(nic.packet(11), Some(Reason::Frames));
    }
}

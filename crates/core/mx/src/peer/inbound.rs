//! Numbered frames on their way in: in order they are processed at once, early ones wait for those
//! before them, and what was seen is acknowledged.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

use base::time::{Duration, Instant};

use crate::seq::Seq;
use crate::wire::BITMAP;

/// Frames beyond the first missing one that can be kept, and listed in an acknowledgement.
pub(crate) const MAX_EARLY: usize = BITMAP * 8;

/// What to do with a numbered frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameOrder {
    Next,
    /// Others before it are missing.
    Early,
    Seen,
    /// It is beyond everything that was permitted.
    Beyond,
}

#[derive(Debug, Default)]
pub(crate) struct Inbound {
    /// The first frame that has not come.
    next: Seq,
    /// Those from `next` on that have come early; the first is always absent.
    early: VecDeque<Option<Box<[u8]>>>,
    early_bytes: u64,
    /// Frames that are not acknowledged yet.
    unacked: u16,
    ack_at: Option<Instant>,
    /// Frames are missing, or came twice: an acknowledgement is due now.
    ack_now: bool,
}

impl Inbound {
    pub(crate) fn new(first: Seq) -> Self {
        Self { next: first, ..Self::default() }
    }

    pub(crate) const fn next(&self) -> Seq {
        self.next
    }

    pub(crate) fn place(&self, seq: Seq) -> FrameOrder {
        match seq.after(self.next) {
            0 => FrameOrder::Next,
            ahead @ 1.. if ahead as usize <= MAX_EARLY => {
                let kept = self.early.get(ahead as usize).is_some_and(Option::is_some);
                if kept { FrameOrder::Seen } else { FrameOrder::Early }
            }
            1.. => FrameOrder::Beyond,
            _ => FrameOrder::Seen,
        }
    }

    pub(crate) fn keep(&mut self, seq: Seq, frame: &[u8]) {
        let ahead = seq.after(self.next) as usize;
        debug_assert_eq!(self.place(seq), FrameOrder::Early, "{seq} after {}", self.next);
        if self.early.len() <= ahead {
            self.early.resize_with(ahead + 1, || None);
        }
        self.early_bytes += frame.len() as u64;
        self.early[ahead] = Some(frame.into());
    }

    pub(crate) const fn early_bytes(&self) -> u64 {
        self.early_bytes
    }

    /// The next frame has been processed. The one after it, if it came early.
    pub(crate) fn advance(&mut self) -> Option<Box<[u8]>> {
        self.next = self.next.plus(1);
        self.early.pop_front();
        let frame = self.early.front_mut()?.take()?;
        self.early_bytes -= frame.len() as u64;
        Some(frame)
    }

    /// A frame has come that has to be acknowledged: by an acknowledgement of its own after `every`
    /// of them or after `delay`, if no other frame takes it along.
    pub(crate) fn on_frame(&mut self, now: Instant, every: u16, delay: Duration) {
        self.unacked = self.unacked.saturating_add(1);
        self.ack_now |= self.unacked >= every;
        self.ack_at.get_or_insert(now + delay);
    }

    /// An acknowledgement that has waited long enough is due, and waits no longer.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.ack_at = None;
            self.ack_now = true;
        }
    }

    pub(crate) fn ack_now(&mut self) {
        self.ack_now = true;
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.ack_now || self.ack_at.is_some_and(|at| at <= now)
    }

    /// Whether frames are missing that the peer should know: only an acknowledgement lists them.
    pub(crate) const fn is_urgent(&self) -> bool {
        self.ack_now && self.early_bytes > 0
    }

    /// When an acknowledgement will be due that is not due at once.
    pub(crate) const fn deadline(&self) -> Option<Instant> {
        self.ack_at
    }

    /// A frame with the acknowledgement goes out. Only a frame of its own lists those that came
    /// early.
    pub(crate) fn ack_sent(&mut self, with_bitmap: bool) {
        self.unacked = 0;
        self.ack_at = None;
        self.ack_now &= !with_bitmap && self.early_bytes > 0;
    }

    /// Writes which frames came early, and says how many bytes that takes.
    pub(crate) fn bitmap(&self, bitmap: &mut [u8; BITMAP]) -> usize {
        let mut length = 0;
        // The first bit is the frame after the missing one.
        for (bit, _) in self.early.iter().skip(1).enumerate().filter(|(_, early)| early.is_some()) {
            bitmap[bit / 8] |= 1 << (bit % 8);
            length = bit / 8 + 1;
        }
        length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn early_frames_wait_for_those_before_them() {
        let first = Seq(u32::MAX - 1);
        let mut inbound = Inbound::new(first);
        for ahead in [3, 1, 2, 9] {
            assert_eq!(inbound.place(first.plus(ahead)), FrameOrder::Early);
            inbound.keep(first.plus(ahead), &[ahead as u8; 4]);
            assert_eq!(inbound.place(first.plus(ahead)), FrameOrder::Seen);
        }
        assert_eq!(inbound.early_bytes(), 16);
        let mut bitmap = [0; BITMAP];
        assert_eq!(inbound.bitmap(&mut bitmap), 2);
        assert_eq!(bitmap[..2], [0b0000_0111, 0b0000_0001]);
        assert_eq!(inbound.place(first), FrameOrder::Next);
        let mut came = Vec::new();
        while let Some(frame) = inbound.advance() {
            came.push(frame[0]);
        }
        assert_eq!(came, [1, 2, 3]);
        assert_eq!((inbound.next(), inbound.early_bytes()), (first.plus(4), 4));
        assert_eq!(inbound.place(first.plus(3)), FrameOrder::Seen);
        assert_eq!(inbound.place(first.plus(9)), FrameOrder::Seen);
        assert_eq!(inbound.place(first.plus(4 + MAX_EARLY as u32)), FrameOrder::Early);
        assert_eq!(inbound.place(first.plus(5 + MAX_EARLY as u32)), FrameOrder::Beyond);
    }

    #[test]
    fn acknowledgements_wait_for_company() {
        let at = Instant::from_micros;
        let mut inbound = Inbound::new(Seq(0));
        let delay = Duration::from_micros(250);
        inbound.on_frame(at(0), 3, delay);
        inbound.on_frame(at(100), 3, delay);
        assert_eq!((inbound.is_due(at(249)), inbound.deadline()), (false, Some(at(250))));
        assert!(inbound.is_due(at(250)));
        inbound.ack_sent(false);
        assert_eq!((inbound.is_due(at(999)), inbound.deadline()), (false, None));
        for _ in 0..3 {
            inbound.on_frame(at(1_000), 3, delay);
        }
        assert!(inbound.is_due(at(1_000)));
    }
}

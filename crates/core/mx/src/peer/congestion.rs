//! Congestion control: how many frames may be in flight.
//!
//! On one Ethernet segment the queue is a switch port's: it is short, and it overflows when many
//! send to one. The window grows with what arrives, by as much as arrives at first and by one frame
//! a round trip after a loss. A second timeout in a row closes it to one frame.
//!
//! A loss means that a queue was full, or that a cable is bad, and only the queue is helped by a
//! smaller window. So once for all losses of one round trip the window becomes what the way has
//! carried lately in the time of the shortest round trip, which leaves nothing in the queue (as in
//! TCP Westwood; Mascolo and others, 2001), though not less than half of what it was (RFC 5681).
//! If the queue was empty anyway, that is what it was.

/// A window, in frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Congestion {
    window: u32,
    /// Slow start ends here: below it the window grows by what arrives.
    ssthresh: u32,
    /// What has arrived towards the next frame of the window.
    acked: u32,
    /// Losses of transmissions before this one belong to a recovery that has begun.
    recovery_start: u64,
    min: u32,
    max: u32,
}

impl Congestion {
    /// A window of `first` frames that may become `min` to `max`.
    pub(crate) const fn new(first: u32, min: u32, max: u32) -> Self {
        Self { window: first, ssthresh: max, acked: 0, recovery_start: 0, min, max }
    }

    pub(crate) const fn window(&self) -> u32 {
        self.window
    }

    /// So many frames arrived, while the window was what limited them.
    pub(crate) fn on_ack(&mut self, frames: u32) {
        if self.window < self.ssthresh {
            self.window = (self.window + frames).min(self.max);
            return;
        }
        self.acked += frames;
        if self.acked >= self.window {
            self.acked = 0;
            self.window = (self.window + 1).min(self.max);
        }
    }

    /// The transmission number `lost` has not arrived; `next` is the number of the next one, and
    /// `bdp_frames` are the frames that the way carries without a queue, as far as that is known.
    pub(crate) fn on_loss(&mut self, lost: u64, next: u64, bdp_frames: u32) {
        if lost < self.recovery_start {
            return;
        }
        self.recovery_start = next;
        // What is measured is a little less than what there is: of a window that no queue has
        // slowed down nothing is to be taken away.
        let bdp_frames = bdp_frames + bdp_frames / 8 + 1;
        self.ssthresh = bdp_frames.clamp(self.window / 2, self.window).max(self.min);
        self.window = self.ssthresh;
        self.acked = 0;
    }

    pub(crate) fn on_timeout(&mut self, next: u64) {
        self.on_loss(self.recovery_start, next, 0);
        self.window = self.min;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_of_losses_halves_it_once() {
        let mut congestion = Congestion::new(64, 1, 256);
        for lost in 0..20 {
            congestion.on_loss(lost, 64, 0);
        }
        assert_eq!(congestion.window(), 32);
        congestion.on_loss(64, 96, 0);
        assert_eq!(congestion.window(), 16);
        congestion.on_ack(15);
        assert_eq!(congestion.window(), 16);
        congestion.on_ack(1);
        assert_eq!(congestion.window(), 17);
    }

    #[test]
    fn it_stays_within_its_limits() {
        let mut congestion = Congestion::new(64, 2, 256);
        for next in 0..100 {
            congestion.on_timeout(next);
        }
        assert_eq!(congestion.window(), 2);
        for _ in 0..100_000 {
            congestion.on_ack(3);
        }
        assert_eq!(congestion.window(), 256);
    }
}

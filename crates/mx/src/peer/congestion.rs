//! How many frames may be under way, so that a port's queue somewhere holds them.
//!
//! On one Ethernet segment the queue is a switch port's: it is short, and it overflows when many
//! send to one. The window grows with what arrives, by as much as arrives at first and by one frame
//! a round trip after a loss. A second silence in a row closes it to one frame.
//!
//! A loss means that a queue was full, or that a cable is bad, and only the queue is helped by a
//! smaller window. So once for all losses of one round trip the window becomes what the way has
//! carried lately in the time of the shortest round trip, which leaves nothing in the queue (as in
//! TCP Westwood; Mascolo and others, 2001), though not less than half of what it was (RFC 5681).
//! If the queue was empty anyway, that is what it was.

/// A window, in frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Congestion {
    window: u32,
    /// Below it the window grows by what arrives.
    threshold: u32,
    /// What has arrived towards the next frame of the window.
    arrived: u32,
    /// Losses of transmissions before this one have been answered.
    answered: u64,
    least: u32,
    most: u32,
}

impl Congestion {
    /// A window of `first` frames that may become `least` to `most`.
    pub(crate) const fn new(first: u32, least: u32, most: u32) -> Self {
        Self { window: first, threshold: most, arrived: 0, answered: 0, least, most }
    }

    /// Frames that may be under way.
    pub(crate) const fn window(&self) -> u32 {
        self.window
    }

    /// So many frames arrived, while the window was what limited them.
    pub(crate) fn arrived(&mut self, frames: u32) {
        if self.window < self.threshold {
            self.window = (self.window + frames).min(self.most);
            return;
        }
        self.arrived += frames;
        if self.arrived >= self.window {
            self.arrived = 0;
            self.window = (self.window + 1).min(self.most);
        }
    }

    /// The transmission number `lost` has not arrived; `next` is the number of the next one, and
    /// `carried` are the frames that the way carries without a queue, as far as that is known.
    pub(crate) fn lost(&mut self, lost: u64, next: u64, carried: u32) {
        if lost < self.answered {
            return;
        }
        self.answered = next;
        // What is measured is a little less than what there is: of a window that no queue has
        // slowed down nothing is to be taken away.
        let carried = carried + carried / 8 + 1;
        self.threshold = carried.clamp(self.window / 2, self.window).max(self.least);
        self.window = self.threshold;
        self.arrived = 0;
    }

    /// Nothing has arrived for a while.
    pub(crate) fn silence(&mut self, next: u64) {
        self.lost(self.answered, next, 0);
        self.window = self.least;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_of_losses_halves_it_once() {
        let mut congestion = Congestion::new(64, 1, 256);
        for lost in 0..20 {
            congestion.lost(lost, 64, 0);
        }
        assert_eq!(congestion.window(), 32);
        congestion.lost(64, 96, 0);
        assert_eq!(congestion.window(), 16);
        congestion.arrived(15);
        assert_eq!(congestion.window(), 16);
        congestion.arrived(1);
        assert_eq!(congestion.window(), 17);
    }

    #[test]
    fn it_stays_within_its_limits() {
        let mut congestion = Congestion::new(64, 2, 256);
        for next in 0..100 {
            congestion.silence(next);
        }
        assert_eq!(congestion.window(), 2);
        for _ in 0..100_000 {
            congestion.arrived(3);
        }
        assert_eq!(congestion.window(), 256);
    }
}

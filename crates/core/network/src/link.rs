//! One direction of a cable between two ports.
//!
//! A frame that is sent waits for the frames before it, occupies the wire for as long as its bits
//! take, and travels for the latency of the cable. On the way it may be lost, doubled, or held up
//! so that later frames pass it:
//!
//! ```text
//! send -> [ wait | wire: (bytes + 24) * 8 / rate ] -> lost?
//!                                                  -> + latency -> + reorder delay? -> receive
//!                                                  -> a copy follows on the wire?
//! ```
//!
//! There is no I/O and no clock. The caller sends, asks when the next frame arrives, and receives
//! what has arrived. `now` must never go backwards. Same settings and same calls give same results:
//! each kind of fault has its own random stream, so that, for example, turning on duplication does
//! not change which of the frames sent are lost.
//!
//! Time on the wire is exact: a nanosecond's fraction is carried from frame to frame while the wire
//! is busy, and an arrival is rounded up to the nanosecond. The bound on frames stands for the
//! sender's queue and the cable together; a frame beyond it is dropped at once.

use alloc::collections::VecDeque;
use base::prng::Prng;
use base::time::{Duration, Instant};
use core::num::NonZeroU32;
use core::ops::Sub;

/// What a frame occupies on the wire beyond its own bytes (IEEE 802.3): preamble and start
/// delimiter 8, FCS 4, gap to the next frame 12.
pub const OVERHEAD_BYTES: u64 = 24;
/// The least bytes of a frame on the wire, without FCS; shorter ones are padded there.
pub const MIN_FRAME_BYTES: u64 = 60;

/// How a link behaves. The default is ideal: no limit, no delay, no faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSettings {
    /// Megabits (10^6) a second; `None` or 0 is no limit.
    pub rate_mbit: Option<u32>,
    /// From the last bit sent to the frame's arrival.
    pub latency: Duration,
    /// Frames in a million that vanish after their time on the wire.
    pub loss_ppm: u32,
    /// Frames in a million that are followed by a copy; it takes its own time on the wire, and is
    /// neither lost nor reordered.
    pub duplicate_ppm: u32,
    /// Frames in a million that arrive `reorder_delay` late, so that later ones pass them.
    pub reorder_ppm: u32,
    /// How late a reordered frame is.
    pub reorder_delay: Duration,
    /// Where the random decisions come from.
    pub seed: u64,
}

/// What happened on a link since it was made, in frames. At any time
/// `sent + duplicated = delivered + lost + overflowed + in flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Given to [`Link::send`], whatever became of them.
    pub sent: u64,
    /// Handed out by [`Link::receive`], copies included.
    pub delivered: u64,
    /// Lost on the way.
    pub lost: u64,
    /// Additional copies of frames that the link made.
    pub duplicated: u64,
    /// Delayed so that others may pass.
    pub reordered: u64,
    /// Dropped because the link was full.
    pub overflowed: u64,
}

impl Sub for LinkCounters {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            delivered: self.delivered - earlier.delivered,
            lost: self.lost - earlier.lost,
            duplicated: self.duplicated - earlier.duplicated,
            reordered: self.reordered - earlier.reordered,
            overflowed: self.overflowed - earlier.overflowed,
        }
    }
}

/// A frame that will not arrive, given back so that its buffer can be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped<B> {
    /// The link was full: the frame never reached the wire.
    Overflowed(B),
    /// The frame took its time on the wire and vanished. A sender on a real cable would not know.
    Lost(B),
}

impl<B> Dropped<B> {
    /// The frame that was dropped.
    #[must_use]
    pub fn into_frame(self) -> B {
        match self {
            Self::Overflowed(frame) | Self::Lost(frame) => frame,
        }
    }
}

/// One direction of a cable; see the [module](self).
///
/// `B` is a frame without FCS. It is cloned for a duplicate only; where nothing may be allocated on
/// the way, `B` is a counted reference, or `duplicate_ppm` is 0.
#[derive(Clone, Debug)]
pub struct Link<B> {
    settings: LinkSettings,
    rate_mbit: Option<NonZeroU32>,
    capacity: usize,
    wire: Wire,
    loss: Prng,
    duplication: Prng,
    reordering: Prng,
    /// In order of arrival; of those that arrive at once, the one sent first is first.
    in_flight: VecDeque<(Instant, B)>,
    counters: LinkCounters,
}

/// Until when the wire is busy: `free_at` and `fraction / rate` nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Wire {
    free_at: Instant,
    fraction: u32,
}

impl Wire {
    /// Occupies the wire with a frame of `bytes`, and returns when that ends, rounded up.
    fn occupy(&mut self, now: Instant, bytes: usize, rate_mbit: NonZeroU32) -> Instant {
        if self.free_at < now {
            *self = Self { free_at: now, fraction: 0 };
        }
        let bytes = (bytes as u64).max(MIN_FRAME_BYTES).saturating_add(OVERHEAD_BYTES);
        // A bit takes 1000 / rate nanoseconds.
        let scaled = bytes.saturating_mul(8_000).saturating_add(self.fraction.into());
        let rate = u64::from(rate_mbit.get());
        self.free_at += Duration::from_nanos(scaled / rate);
        self.fraction = (scaled % rate) as u32;
        self.free_at + Duration::from_nanos(u64::from(self.fraction > 0))
    }
}

/// Of losses, duplicates and reorderings.
fn streams(seed: u64) -> [Prng; 3] {
    let mut seeds = Prng::new(seed);
    core::array::from_fn(|_| Prng::new(seeds.next_u64()))
}

impl<B: AsRef<[u8]> + Clone> Link<B> {
    /// Sends a frame.
    ///
    /// # Errors
    ///
    /// [`Dropped`] gives back a frame that will not arrive. It is counted already.
    pub fn send(&mut self, now: Instant, frame: B) -> Result<(), Dropped<B>> {
        let bytes = frame.as_ref().len();
        self.send_sized(now, frame, bytes)
    }
}

impl<B: Clone> Link<B> {
    /// An empty link that holds at most `capacity` frames, waiting and on their way. It allocates
    /// now and never again.
    #[must_use]
    pub fn new(settings: LinkSettings, capacity: usize) -> Self {
        let [loss, duplication, reordering] = streams(settings.seed);
        Self {
            rate_mbit: settings.rate_mbit.and_then(NonZeroU32::new),
            settings,
            capacity,
            wire: Wire::default(),
            loss,
            duplication,
            reordering,
            in_flight: VecDeque::with_capacity(capacity),
            counters: LinkCounters::default(),
        }
    }

    /// Draws anew what happens to the frames from now on, from another seed.
    pub fn reseed(&mut self, seed: u64) {
        self.settings.seed = seed;
        [self.loss, self.duplication, self.reordering] = streams(seed);
    }

    /// Sends a frame of so many bytes, for an owner whose `B` does not hold all of them.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    pub fn send_sized(&mut self, now: Instant, frame: B, bytes: usize) -> Result<(), Dropped<B>> {
        self.counters.sent += 1;
        if self.is_full() {
            self.counters.overflowed += 1;
            return Err(Dropped::Overflowed(frame));
        }
        // All three are drawn for every frame on the wire, or a loss would shift the other streams.
        // What never happens needs no draw: its stream is its own.
        let LinkSettings { loss_ppm, duplicate_ppm, reorder_ppm, .. } = self.settings;
        let lost = loss_ppm > 0 && self.loss.chance(loss_ppm);
        let duplicated = duplicate_ppm > 0 && self.duplication.chance(duplicate_ppm);
        let reordered = reorder_ppm > 0 && self.reordering.chance(reorder_ppm);

        let mut arrival = self.transmit(now, bytes);
        if lost {
            self.counters.lost += 1;
            return Err(Dropped::Lost(frame));
        }
        if reordered {
            self.counters.reordered += 1;
            arrival += self.settings.reorder_delay;
        }
        // Without room for two there is no copy.
        if duplicated && self.in_flight.len() + 1 < self.capacity {
            self.counters.duplicated += 1;
            let arrival = self.transmit(now, bytes);
            self.enqueue(arrival, frame.clone());
        }
        self.enqueue(arrival, frame);
        Ok(())
    }

    /// Takes the first frame that has arrived by `now`, with the time of its arrival.
    pub fn receive(&mut self, now: Instant) -> Option<(Instant, B)> {
        if self.next_arrival()? > now {
            return None;
        }
        self.counters.delivered += 1;
        let first = self.in_flight.pop_front();
        if self.in_flight.is_empty() {
            // Starts again at the memory that is in the cache, rather than going through all of it.
            self.in_flight.clear();
        }
        first
    }

    /// When [`receive`](Self::receive) will next have a frame; it may be in the past.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Instant> {
        self.in_flight.front().map(|&(arrival, _)| arrival)
    }

    /// When the wire has sent all that it was given; in the past if it is idle.
    #[must_use]
    pub const fn free_at(&self) -> Instant {
        self.wire.free_at
    }

    /// Frames that are waiting, on their way, or arrived and not received.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> LinkCounters {
        self.counters
    }

    /// How the link was made.
    #[must_use]
    pub const fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    fn is_full(&self) -> bool {
        self.in_flight.len() >= self.capacity
    }

    /// Puts a frame on the wire, and returns when it arrives if nothing happens to it.
    fn transmit(&mut self, now: Instant, bytes: usize) -> Instant {
        let sent = match self.rate_mbit {
            Some(rate) => self.wire.occupy(now, bytes, rate),
            None => now,
        };
        sent + self.settings.latency
    }

    /// Almost every frame goes to the end; only those that pass a reordered one do not.
    fn enqueue(&mut self, arrival: Instant, frame: B) {
        if self.in_flight.back().is_none_or(|&(last, _)| last <= arrival) {
            return self.in_flight.push_back((arrival, frame));
        }
        let position = self.in_flight.partition_point(|&(other, _)| other <= arrival);
        self.in_flight.insert(position, (arrival, frame));
    }
}

#[cfg(test)]
mod tests;

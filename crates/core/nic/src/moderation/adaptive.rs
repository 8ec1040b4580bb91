//! `adaptive-rx on`: a delay and a frame count that follow the traffic.

use super::dim::{BEFORE_ANY_DECISION, Dim, Profile, Sample};
use super::{Delay, Frames, Interrupt, Moderator, Unseen};
use crate::descriptor::Descriptor;
use crate::time::{Duration, Instant};

/// A [`Delay`] with a frame count, both picked by Linux's DIM.
///
/// It measures at the end of each poll, as drivers call `net_dim` when NAPI completes; decides
/// every 64 interrupts; and applies a new profile to what the poll left behind.
#[derive(Clone, Debug)]
pub struct Adaptive {
    timer: Frames<Delay>,
    dim: Dim,
    in_force: Profile,
    totals: Sample,
    /// How many packets there had been at the last sample.
    sampled: u32,
}

impl Adaptive {
    /// Starts with the drivers' default profile, 8 us or 256 frames.
    #[must_use]
    pub fn new() -> Self {
        let in_force = BEFORE_ANY_DECISION;
        let delay = Delay::new(Duration::from_micros(in_force.rx_usecs.into()));
        let timer = Frames::new(delay, in_force.rx_frames);
        Self { timer, dim: Dim::new(), in_force, totals: Sample::default(), sampled: 0 }
    }

    fn apply(&mut self, profile: Profile) {
        self.in_force = profile;
        self.timer.timer_mut().set_delay(Duration::from_micros(profile.rx_usecs.into()));
        self.timer.set_limit(profile.rx_frames);
    }
}

impl Default for Adaptive {
    fn default() -> Self {
        Self::new()
    }
}

impl Moderator for Adaptive {
    forward_moderator!(timer: dma_completed transmit_completed timer_expired deadline);

    #[inline]
    fn packet_arrived(&mut self, now: Instant, descriptor: &Descriptor) {
        self.totals.packets = self.totals.packets.wrapping_add(1);
        self.totals.bytes = self.totals.bytes.wrapping_add(descriptor.length);
        self.timer.packet_arrived(now, descriptor);
    }

    #[inline(never)] // It needs registers that every other strategy would save, too.
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        // A poll that found nothing, or a setting that was made without a poll, is no sample:
        // a measurement that began in silence would call any traffic an improvement.
        if self.totals.packets != self.sampled {
            self.sampled = self.totals.packets;
            self.totals.time = now;
            if let Some(profile) = self.dim.sample(self.totals) {
                self.apply(profile);
            }
        }
        self.timer.host_rearmed(now, unseen)
    }

    #[inline]
    fn interrupt_raised(&mut self, now: Instant) {
        self.totals.interrupts = self.totals.interrupts.wrapping_add(1);
        self.timer.interrupt_raised(now);
    }

    fn chosen(&self) -> Option<Profile> {
        Some(self.in_force)
    }
}

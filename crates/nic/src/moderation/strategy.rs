//! One strategy out of one setting.

use super::{
    Adaptive, Delay, Disabled, Frames, Interrupt, Marked, Marks, Moderation, Moderator, Periodic,
    Stream, Throttle, TimerKind, Unseen,
};
use crate::descriptor::Descriptor;
use crate::time::{Duration, Instant};

/// The timers, as one type.
#[derive(Clone, Debug)]
pub enum Timer {
    /// See [`Disabled`].
    Disabled(Disabled),
    /// See [`Delay`].
    Delay(Delay),
    /// See [`Throttle`].
    Throttle(Throttle),
    /// See [`Periodic`].
    Periodic(Periodic),
    /// See [`Adaptive`].
    Adaptive(Adaptive),
}

/// Any strategy that a [`Moderation`] setting can name, as one type: no allocation, no dynamic
/// dispatch.
#[derive(Clone, Debug)]
pub enum Strategy {
    /// Marks are ignored.
    Plain(Frames<Timer>),
    /// Algorithm 1.
    Marked(Marked<Frames<Timer>>),
    /// Algorithm 2.
    Stream(Stream<Frames<Timer>>),
}

impl Strategy {
    /// Builds what `moderation` asks for. A periodic tick starts to run at `now`.
    #[must_use]
    pub fn new(moderation: &Moderation, now: Instant) -> Self {
        let usecs = Duration::from_micros(moderation.rx_usecs.into());
        let timer = match moderation.timer {
            TimerKind::Disabled => Timer::Disabled(Disabled),
            TimerKind::Delay => Timer::Delay(Delay::new(usecs)),
            TimerKind::Throttle => Timer::Throttle(Throttle::new(usecs)),
            TimerKind::Periodic => Timer::Periodic(Periodic::new(usecs, now)),
            TimerKind::Adaptive => Timer::Adaptive(Adaptive::new()),
        };
        let timer = Frames::new(timer, moderation.rx_frames);
        match moderation.marks {
            Marks::Ignored => Self::Plain(timer),
            Marks::Immediate => Self::Marked(Marked::new(timer)),
            Marks::Deferred => Self::Stream(Stream::new(timer)),
        }
    }
}

/// Implements [`Moderator`] for an enum by asking whichever moderator it holds.
macro_rules! ask_the_held_moderator {
    ($type:ty: $($variant:ident)*) => {
        impl Moderator for $type {
            fn packet_arrived(&mut self, now: Instant, descriptor: &Descriptor) {
                match self { $(Self::$variant(held) => held.packet_arrived(now, descriptor),)* }
            }
            fn dma_completed(
                &mut self,
                now: Instant,
                descriptor: &Descriptor,
                pending: u32,
            ) -> Interrupt {
                match self {
                    $(Self::$variant(held) => held.dma_completed(now, descriptor, pending),)*
                }
            }
            fn transmit_completed(&mut self, now: Instant) -> Interrupt {
                match self { $(Self::$variant(held) => held.transmit_completed(now),)* }
            }
            fn timer_expired(&mut self, now: Instant) -> Interrupt {
                match self { $(Self::$variant(held) => held.timer_expired(now),)* }
            }
            fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
                match self { $(Self::$variant(held) => held.host_rearmed(now, unseen),)* }
            }
            fn interrupt_raised(&mut self, now: Instant) {
                match self { $(Self::$variant(held) => held.interrupt_raised(now),)* }
            }
            fn deadline(&self) -> Option<Instant> {
                match self { $(Self::$variant(held) => held.deadline(),)* }
            }
        }
    };
}

ask_the_held_moderator!(Timer: Disabled Delay Throttle Periodic Adaptive);
ask_the_held_moderator!(Strategy: Plain Marked Stream);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moderation::Reason;

    const SETTINGS: [&str; 9] = [
        "delay:75+frames:2",
        "throttle:75+frames:2",
        "periodic:75+frames:2",
        "adaptive+frames:2",
        "marked:75+frames:2",
        "marked+throttle:75",
        "stream:75+frames:2",
        "stream+periodic:75",
        "stream+adaptive",
    ];

    /// Also without a vector, which would replace the moderator's memory at the next re-arm.
    #[test]
    fn every_strategy_forgets_what_the_host_was_told_of() {
        for setting in SETTINGS {
            let mut strategy = Strategy::new(&setting.parse().unwrap(), Instant::ZERO);
            let now = Instant::from_micros(10);
            let mut packet =
                Descriptor { length: 64, marked: true, arrived_at: now, completed_at: now };
            strategy.interrupt_raised(now);
            strategy.dma_completed(now, &packet, 1);
            strategy.interrupt_raised(now);
            assert_eq!(strategy.deadline(), None, "{setting}");
            packet.marked = false;
            assert_eq!(strategy.dma_completed(now, &packet, 0), None, "{setting}");
            assert!(strategy.deadline().is_some_and(|deadline| deadline > now), "{setting}");
            let interrupt = strategy.timer_expired(strategy.deadline().unwrap());
            assert_eq!(interrupt, Some(Reason::Timer), "{setting}");
        }
    }
}

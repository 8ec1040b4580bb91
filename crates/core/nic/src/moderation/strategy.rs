//! One strategy out of one setting.

use super::{
    Adaptive, Custom, Delay, Disabled, Driver, Frames, Interrupt, Itr, Marked, Marks, Moderation,
    Moderator, Periodic, Phase, Profile, Quiet, Stream, Throttle, TimerKind, Unseen,
};
use crate::descriptor::Descriptor;
use crate::time::{Duration, Instant};

/// Any strategy that a [`Moderation`] setting can name, as one type: no allocation, no dynamic
/// dispatch.
///
/// Every combination is a variant of its own, so that a call costs one jump and the whole stack
/// behind it is compiled as one.
#[derive(Clone, Debug)]
#[repr(u8)] // A number of its own to jump by, instead of one hidden among the values of a field.
#[expect(missing_docs, reason = "the types say it")]
pub enum Strategy {
    Disabled(Frames<Disabled>),
    Delay(Frames<Delay>),
    Throttle(Frames<Throttle>),
    Periodic(Frames<Periodic>),
    Quiet(Frames<Quiet>),
    Itr(Frames<Itr>),
    Adaptive(Frames<Adaptive>),
    Driver(Frames<Driver>),
    Custom(Frames<Custom>),
    MarkedDisabled(Marked<Frames<Disabled>>),
    MarkedDelay(Marked<Frames<Delay>>),
    MarkedThrottle(Marked<Frames<Throttle>>),
    MarkedPeriodic(Marked<Frames<Periodic>>),
    MarkedQuiet(Marked<Frames<Quiet>>),
    MarkedItr(Marked<Frames<Itr>>),
    MarkedAdaptive(Marked<Frames<Adaptive>>),
    MarkedDriver(Marked<Frames<Driver>>),
    MarkedCustom(Marked<Frames<Custom>>),
    StreamDisabled(Stream<Frames<Disabled>>),
    StreamDelay(Stream<Frames<Delay>>),
    StreamThrottle(Stream<Frames<Throttle>>),
    StreamPeriodic(Stream<Frames<Periodic>>),
    StreamQuiet(Stream<Frames<Quiet>>),
    StreamItr(Stream<Frames<Itr>>),
    StreamAdaptive(Stream<Frames<Adaptive>>),
    StreamDriver(Stream<Frames<Driver>>),
    StreamCustom(Stream<Frames<Custom>>),
}

/// Asks whichever moderator a strategy holds.
macro_rules! ask {
    ($strategy:expr, $held:ident => $answer:expr) => {
        match $strategy {
            Strategy::Disabled($held) => $answer,
            Strategy::Delay($held) => $answer,
            Strategy::Throttle($held) => $answer,
            Strategy::Periodic($held) => $answer,
            Strategy::Quiet($held) => $answer,
            Strategy::Itr($held) => $answer,
            Strategy::Adaptive($held) => $answer,
            Strategy::Driver($held) => $answer,
            Strategy::Custom($held) => $answer,
            Strategy::MarkedDisabled($held) => $answer,
            Strategy::MarkedDelay($held) => $answer,
            Strategy::MarkedThrottle($held) => $answer,
            Strategy::MarkedPeriodic($held) => $answer,
            Strategy::MarkedQuiet($held) => $answer,
            Strategy::MarkedItr($held) => $answer,
            Strategy::MarkedAdaptive($held) => $answer,
            Strategy::MarkedDriver($held) => $answer,
            Strategy::MarkedCustom($held) => $answer,
            Strategy::StreamDisabled($held) => $answer,
            Strategy::StreamDelay($held) => $answer,
            Strategy::StreamThrottle($held) => $answer,
            Strategy::StreamPeriodic($held) => $answer,
            Strategy::StreamQuiet($held) => $answer,
            Strategy::StreamItr($held) => $answer,
            Strategy::StreamAdaptive($held) => $answer,
            Strategy::StreamDriver($held) => $answer,
            Strategy::StreamCustom($held) => $answer,
        }
    };
}

impl Strategy {
    /// Builds what `moderation` asks for. A periodic tick starts to run at `now`, in `phase`.
    #[must_use]
    pub fn new(moderation: Moderation, phase: Phase, now: Instant) -> Self {
        let usecs = Duration::from_micros(moderation.rx_usecs.into());
        let gap = Duration::from_micros(moderation.gap_usecs.into());
        /// The variants of one timer, in the order of the marks.
        macro_rules! over {
            ($timer:expr, $plain:ident $marked:ident $stream:ident) => {{
                let timer = Frames::new($timer, moderation.rx_frames);
                match moderation.marks {
                    Marks::Ignored | Marks::Lane => Self::$plain(timer),
                    Marks::Immediate => Self::$marked(Marked::new(timer, gap)),
                    Marks::Deferred => Self::$stream(Stream::new(timer, gap)),
                }
            }};
        }
        match moderation.timer {
            TimerKind::Disabled => over!(Disabled, Disabled MarkedDisabled StreamDisabled),
            TimerKind::Delay => over!(Delay::new(usecs), Delay MarkedDelay StreamDelay),
            TimerKind::Throttle => {
                over!(Throttle::new(usecs), Throttle MarkedThrottle StreamThrottle)
            }
            TimerKind::Periodic => {
                let timer = Periodic::new(usecs, now + phase.of(usecs));
                over!(timer, Periodic MarkedPeriodic StreamPeriodic)
            }
            TimerKind::Quiet => {
                let bound = Duration::from_micros(moderation.rx_abs_usecs.into());
                over!(Quiet::new(usecs, bound), Quiet MarkedQuiet StreamQuiet)
            }
            TimerKind::Itr(mode) => over!(Itr::new(mode), Itr MarkedItr StreamItr),
            TimerKind::Adaptive => over!(Adaptive::new(), Adaptive MarkedAdaptive StreamAdaptive),
            TimerKind::Driver => over!(Driver, Driver MarkedDriver StreamDriver),
            TimerKind::Custom(factory) => {
                let timer = Custom::new(factory, &moderation, now);
                over!(timer, Custom MarkedCustom StreamCustom)
            }
        }
    }
}

/// What runs for every packet is always inlined: a vector asks twice in a row, and then one jump
/// serves both.
impl Moderator for Strategy {
    #[inline]
    fn packet_arrived(&mut self, now: Instant, descriptor: &Descriptor) {
        ask!(self, held => held.packet_arrived(now, descriptor));
    }

    #[inline(always)]
    fn dma_completed(&mut self, now: Instant, descriptor: &Descriptor, pending: u32) -> Interrupt {
        ask!(self, held => held.dma_completed(now, descriptor, pending))
    }

    #[inline(always)]
    fn dma_completed_and_raised(
        &mut self,
        now: Instant,
        descriptor: &Descriptor,
        pending: u32,
    ) -> Interrupt {
        ask!(self, held => held.dma_completed_and_raised(now, descriptor, pending))
    }

    #[inline]
    fn transmit_completed(&mut self, now: Instant) -> Interrupt {
        ask!(self, held => held.transmit_completed(now))
    }

    #[inline]
    fn timer_expired(&mut self, now: Instant) -> Interrupt {
        ask!(self, held => held.timer_expired(now))
    }

    #[inline(always)]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt {
        ask!(self, held => held.host_rearmed(now, unseen))
    }

    #[inline]
    fn interrupt_raised(&mut self, now: Instant) {
        ask!(self, held => held.interrupt_raised(now));
    }

    #[inline]
    fn deadline(&self) -> Option<Instant> {
        ask!(self, held => held.deadline())
    }

    fn chosen(&self) -> Option<Profile> {
        ask!(self, held => held.chosen())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moderation::Reason;

    const SETTINGS: [&str; 12] = [
        "delay:75+frames:2",
        "throttle:75+frames:2",
        "periodic:75+frames:2",
        "quiet:20/75+frames:2",
        "itr:1+frames:2",
        "adaptive+frames:2",
        "marked:75+frames:2",
        "marked+throttle:75",
        "stream:75+frames:2",
        "stream+periodic:75",
        "stream+itr:3",
        "stream+adaptive",
    ];

    /// Also without a vector, which would replace the moderator's memory at the next re-arm.
    #[test]
    fn every_strategy_forgets_what_was_signalled() {
        for setting in SETTINGS {
            let mut strategy =
                Strategy::new(setting.parse().unwrap(), Phase::default(), Instant::ZERO);
            let now = Instant::from_micros(10);
            let mut packet =
                Descriptor { length: 64, marked: true, arrived_at: now, completed_at: now };
            strategy.interrupt_raised(now);
            let _ = strategy.dma_completed(now, &packet, 1);
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

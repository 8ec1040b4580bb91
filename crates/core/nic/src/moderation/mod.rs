//! Moderation: deciding when to interrupt.
//!
//! A [`Moderator`] is called for each event of one queue and answers, each time, whether to
//! interrupt now. Between two interrupts it may ask to be woken at a
//! [`deadline`](Moderator::deadline). It knows neither rings nor masks: a
//! [`Vector`](crate::vector::Vector) keeps the host's side of the contract for it.
//!
//! Strategies come in two kinds. A *timer* says how long an ordinary packet may wait:
//!
//! | timer        | an ordinary packet waits until                                         |
//! |--------------|------------------------------------------------------------------------|
//! | [`Disabled`] | its own DMA has completed: one interrupt per packet                    |
//! | [`Delay`]    | `rx-usecs` after the first packet the host does not know of (myri10ge) |
//! | [`Quiet`]    | `rx-usecs` without a packet, or a bound after the first (e1000 RDTR)   |
//! | [`Throttle`] | `rx-usecs` after the last interrupt, if that was later (Intel ITR)     |
//! | [`Itr`]      | the same; the driver picks the gap by what each poll took (e1000e)     |
//! | [`Periodic`] | the next tick of a clock that runs every `rx-usecs` (bge)              |
//! | [`Adaptive`] | a delay or a frame count that Linux's DIM picks from the traffic       |
//! | [`Driver`]   | the device decides, by registers that its driver writes                |
//! | [`Custom`]   | a moderator from outside of this crate says                            |
//!
//! The others wrap a timer: [`Frames`] also interrupts at the `rx-frames`-th packet, [`Marked`]
//! also interrupts for marked packets (Algorithm 1 of the Open-MX paper), [`Stream`] defers that
//! while more DMAs are pending (Algorithm 2). Both may keep a least gap between an interrupt and
//! the next one for a mark. [`Strategy`] is what one [`Moderation`] setting builds out of them.

/// Methods of a [`Moderator`] that leave all to the moderator in a field: the field, then these
/// methods.
///
/// ```
/// use nic::moderation::{Delay, Interrupt, Moderator, Reason, Unseen};
/// use nic::time::Instant;
///
/// /// Interrupts at each transmission, and otherwise when the delay does.
/// struct Prompt {
///     delay: Delay,
/// }
///
/// impl Moderator for Prompt {
///     nic::forward_moderator!(delay: dma_completed timer_expired host_rearmed interrupt_raised);
///     nic::forward_moderator!(delay: deadline);
///
///     fn transmit_completed(&mut self, _: Instant) -> Interrupt {
///         Some(Reason::Frames)
///     }
/// }
/// ```
#[macro_export]
macro_rules! forward_moderator {
    ($field:ident: $($method:ident)+) => {
        $($crate::forward_moderator!(@$method $field);)+
    };
    (@packet_arrived $field:ident) => {
        $crate::forward_moderator!(
            @ $field packet_arrived(descriptor: &$crate::descriptor::Descriptor)
        );
    };
    (@dma_completed $field:ident) => {
        $crate::forward_moderator!(@ $field dma_completed(
            descriptor: &$crate::descriptor::Descriptor, pending: u32
        ) -> $crate::moderation::Interrupt);
    };
    (@host_rearmed $field:ident) => {
        $crate::forward_moderator!(@ $field host_rearmed(
            unseen: &$crate::moderation::Unseen
        ) -> $crate::moderation::Interrupt);
    };
    (@interrupt_raised $field:ident) => {
        $crate::forward_moderator!(@ $field interrupt_raised());
    };
    (@deadline $field:ident) => {
        #[inline]
        fn deadline(&self) -> Option<$crate::time::Instant> {
            self.$field.deadline()
        }
    };
    (@chosen $field:ident) => {
        fn chosen(&self) -> Option<$crate::moderation::Profile> {
            self.$field.chosen()
        }
    };
    // `transmit_completed` and `timer_expired`.
    (@$method:ident $field:ident) => {
        $crate::forward_moderator!(@ $field $method() -> $crate::moderation::Interrupt);
    };
    (@ $field:ident $method:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {
        #[inline]
        fn $method(&mut self, now: $crate::time::Instant, $($argument: $type),*) $(-> $result)? {
            self.$field.$method(now, $($argument),*)
        }
    };
}

mod adaptive;
mod algorithm;
mod coalesce;
mod custom;
mod delay;
mod dim;
mod disabled;
mod driver;
mod frames;
mod gap;
mod itr;
mod marked;
mod periodic;
mod quiet;
mod setting;
mod strategy;
mod stream;
#[cfg(test)]
mod tests;
mod throttle;

pub use adaptive::Adaptive;
pub use algorithm::AlgorithmLine;
pub use coalesce::Coalesce;
pub use custom::{BoxedModerator, Custom, Factory, ModeratorFactory};
pub use delay::Delay;
pub use dim::Profile;
pub use disabled::Disabled;
pub use driver::Driver;
pub use frames::Frames;
pub use itr::{Itr, ItrMode};
pub use marked::Marked;
pub use periodic::{Periodic, Phase};
pub use quiet::Quiet;
pub use setting::{MAX_RX_FRAMES, MAX_RX_USECS, Marks, Moderation, SettingError, TimerKind};
pub use strategy::Strategy;
pub use stream::Stream;
pub use throttle::Throttle;

use crate::descriptor::Descriptor;
use crate::time::Instant;
use core::fmt;

/// Why an interrupt was raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// The DMA of a marked packet completed.
    Mark,
    /// The timer of the strategy ran out, or had nothing left to wait for.
    Timer,
    /// As many frames as allowed had gathered; one is enough where moderation is disabled.
    Frames,
    /// The last pending DMA of a stream completed, and a mark had been deferred to this moment.
    StreamEnd,
    /// The host re-armed the interrupt although packets that are due had arrived since its last
    /// poll.
    Rearm,
}

impl Reason {
    /// Every reason, in the order in which counters list them.
    pub const ALL: [Self; 5] =
        [Self::Mark, Self::Timer, Self::Frames, Self::StreamEnd, Self::Rearm];

    /// The word that counters, captures and traces use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mark => "mark",
            Self::Timer => "timer",
            Self::Frames => "frames",
            Self::StreamEnd => "stream-end",
            Self::Rearm => "rearm",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A moderator's answer: raise an interrupt now for this reason, or not.
pub type Interrupt = Option<Reason>;

/// What lies in host memory and was not signalled yet: what an interrupt would be for.
///
/// [`of`](Self::of) makes it from descriptors; a [`Queue`](crate::queue::Queue) does so by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unseen {
    /// Packets whose DMA has completed.
    pub packets: u32,
    /// How many of them are marked.
    pub marked: u32,
    /// When the DMA of the oldest of them, or the oldest transmission, completed.
    pub oldest: Option<Instant>,
    /// When the DMA of the newest of them completed; none of transmissions.
    pub newest: Option<Instant>,
    /// Packets whose DMA is still pending.
    pub dma_pending: u32,
    /// What the polls that ended here have taken; none if a setting changed and no poll ended.
    pub taken: Option<Taken>,
}

impl Unseen {
    /// These packets, oldest first, of which each DMA has completed; `dma_pending` more are under
    /// way.
    #[must_use]
    pub fn of<'a>(packets: impl IntoIterator<Item = &'a Descriptor>, dma_pending: u32) -> Self {
        let mut unseen = Self { dma_pending, ..Self::default() };
        for packet in packets {
            unseen.packets += 1;
            unseen.marked += u32::from(packet.marked);
            unseen.oldest.get_or_insert(packet.completed_at);
            unseen.newest = Some(packet.completed_at);
        }
        unseen
    }
}

/// What the host has taken since the last interrupt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// How many packets.
    pub packets: u32,
    /// Their bytes, Ethernet headers included and FCS not.
    pub bytes: u32,
}

impl Taken {
    /// Adds a packet of `length` bytes; both numbers stop at their largest.
    pub fn add(&mut self, length: u32) {
        self.packets = self.packets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(length);
    }
}

/// One way to moderate the interrupts of one queue.
///
/// # Contract
/// `now` never goes back. While the interrupt is masked, only
/// [`packet_arrived`](Self::packet_arrived) is called: the host is polling, and what its last poll
/// leaves behind is handed over at once by [`host_rearmed`](Self::host_rearmed), which replaces
/// what the moderator remembered of pending packets. After every interrupt, for whatever reason,
/// [`interrupt_raised`](Self::interrupt_raised) is called: at that moment everything that has
/// completed has been signalled to the host.
pub trait Moderator {
    /// A packet arrived, its descriptor is filled in (mark included), and its DMA has been
    /// submitted.
    fn packet_arrived(&mut self, now: Instant, descriptor: &Descriptor) {
        let _ = (now, descriptor);
    }

    /// The DMA of a packet completed; `dma_pending` more are under way in this queue.
    #[must_use = "the host is to be interrupted if there is a reason"]
    fn dma_completed(
        &mut self,
        now: Instant,
        descriptor: &Descriptor,
        dma_pending: u32,
    ) -> Interrupt;

    /// [`dma_completed`](Self::dma_completed), and [`interrupt_raised`](Self::interrupt_raised) if
    /// the answer is an interrupt: both in one call, since it is made for every packet.
    #[inline]
    #[must_use = "the host is to be interrupted if there is a reason"]
    fn dma_completed_and_raised(
        &mut self,
        now: Instant,
        descriptor: &Descriptor,
        dma_pending: u32,
    ) -> Interrupt {
        let interrupt = self.dma_completed(now, descriptor, dma_pending);
        if interrupt.is_some() {
            self.interrupt_raised(now);
        }
        interrupt
    }

    /// A transmission of the host completed, on a NIC whose transmit completions share this
    /// interrupt.
    #[must_use = "the host is to be interrupted if there is a reason"]
    fn transmit_completed(&mut self, now: Instant) -> Interrupt {
        let _ = now;
        None
    }

    /// `now` has reached the [`deadline`](Self::deadline), or passed it.
    #[must_use = "the host is to be interrupted if there is a reason"]
    fn timer_expired(&mut self, now: Instant) -> Interrupt {
        let _ = now;
        None
    }

    /// The host ended its poll and unmasked the interrupt; `unseen` is what it left behind.
    ///
    /// A setting that changes while packets are pending comes through here, too: a new moderator
    /// gets the last interrupt, if there was one, and then what is pending.
    #[must_use = "the host is to be interrupted if there is a reason"]
    fn host_rearmed(&mut self, now: Instant, unseen: &Unseen) -> Interrupt;

    /// The interrupt was raised, at `now`; for a new moderator, before it was made.
    fn interrupt_raised(&mut self, now: Instant) {
        let _ = now;
    }

    /// When to call [`timer_expired`](Self::timer_expired), if at all.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// The numbers that a strategy which follows the traffic has chosen last; none of others.
    fn chosen(&self) -> Option<Profile> {
        None
    }
}

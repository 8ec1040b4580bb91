//! A strategy from outside of this crate, as a part of any setting.

use alloc::boxed::Box;
use core::fmt;
use core::hash::{Hash, Hasher};

use super::{Moderation, Moderator};
use crate::time::Instant;

/// Makes the moderators of a strategy of your own.
///
/// [`Moderation::custom`] makes a setting of it, which goes wherever settings go: to a queue, a
/// port, a device, a lab or an experiment. Marks, frames and a gap combine with it as with every
/// timer.
///
/// ```
/// use nic::descriptor::Descriptor;
/// use nic::moderation::{
///     BoxedModerator, Interrupt, Moderation, Moderator, ModeratorFactory, Reason, Unseen,
/// };
/// use nic::queue::Queue;
/// use nic::time::Instant;
///
/// /// Interrupts at every other packet.
/// #[derive(Clone, Debug, Default)]
/// struct EveryOther(bool);
///
/// impl Moderator for EveryOther {
///     fn dma_completed(&mut self, _: Instant, _: &Descriptor, _: u32) -> Interrupt {
///         self.0 = !self.0;
///         (!self.0).then_some(Reason::Frames)
///     }
///
///     fn host_rearmed(&mut self, _: Instant, unseen: &Unseen) -> Interrupt {
///         self.0 = false;
///         (unseen.packets > 0).then_some(Reason::Rearm)
///     }
/// }
///
/// #[derive(Debug)]
/// struct EveryOtherFactory;
///
/// impl ModeratorFactory for EveryOtherFactory {
///     fn name(&self) -> &'static str {
///         "every-other"
///     }
///
///     fn build(&self, _: &Moderation, _: Instant) -> Box<dyn BoxedModerator> {
///         Box::new(EveryOther::default())
///     }
/// }
///
/// let now = Instant::ZERO;
/// let mut queue = Queue::new(0, 8, Moderation::custom(&EveryOtherFactory), now);
/// for frame in ["a", "b"] {
///     assert!(!queue.take_interrupt());
///     let packet = Descriptor { length: 64, marked: false, arrived_at: now, completed_at: now };
///     queue.arrive(now, packet, frame).expect("room in the ring");
///     queue.advance(now, &mut ());
/// }
/// assert!(queue.take_interrupt());
/// assert_eq!(queue.moderation().to_string(), "every-other");
/// ```
pub trait ModeratorFactory: fmt::Debug + Sync {
    /// The word for the strategy in settings that are printed, tables and results. It cannot be
    /// parsed.
    fn name(&self) -> &'static str;

    /// The moderator of one queue, which is under the setting `moderation` from `now` on.
    fn build(&self, moderation: &Moderation, now: Instant) -> Box<dyn BoxedModerator>;
}

/// A moderator in a box, as a [`ModeratorFactory`] makes it. Every moderator that can be cloned and
/// sent to another thread is one.
pub trait BoxedModerator: Moderator + fmt::Debug + Send {
    /// Another one in the same state.
    fn clone_box(&self) -> Box<dyn BoxedModerator>;
}

impl<M: Moderator + Clone + fmt::Debug + Send + 'static> BoxedModerator for M {
    fn clone_box(&self) -> Box<dyn BoxedModerator> {
        Box::new(self.clone())
    }
}

/// A [`ModeratorFactory`] in a setting. Two are equal if their names are.
#[derive(Clone, Copy, Debug)]
pub struct Factory(pub(super) &'static dyn ModeratorFactory);

impl PartialEq for Factory {
    fn eq(&self, other: &Self) -> bool {
        self.0.name() == other.0.name()
    }
}

impl Eq for Factory {}

impl Hash for Factory {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name().hash(state);
    }
}

/// The moderator that a [`ModeratorFactory`] has made, as a timer.
#[derive(Debug)]
pub struct Custom {
    timer: Box<dyn BoxedModerator>,
}

impl Custom {
    pub(super) fn new(factory: Factory, moderation: &Moderation, now: Instant) -> Self {
        Self { timer: factory.0.build(moderation, now) }
    }
}

impl Clone for Custom {
    fn clone(&self) -> Self {
        Self { timer: self.timer.clone_box() }
    }
}

impl Moderator for Custom {
    forward_moderator!(timer: packet_arrived dma_completed transmit_completed timer_expired);
    forward_moderator!(timer: host_rearmed interrupt_raised deadline chosen);
}

//! A PCI function of either kind, a card or a virtual function, as the device deals with it.

use base::time::{Duration, Instant};
use hostside::Route;
use vhost::memory::{Memory, MemoryError};

use super::bus::OnBus;
use super::card::Card;
use super::message::Command;
use super::outcome::{Raised, Sent};
use super::vf::VirtualFunction;

/// One function.
#[derive(Debug)]
pub(crate) enum Function {
    Card(Box<Card>),
    Virtual(Box<VirtualFunction>),
}

impl Function {
    /// Does what the guest's bus asks for, and puts what is read into `answer`.
    ///
    /// # Errors
    /// If an address that the driver gave is none of the guest's.
    pub(crate) fn obey(
        &mut self,
        now: Instant,
        command: Command<'_>,
        answer: &mut Vec<u8>,
        memory: &Memory,
    ) -> Result<(), MemoryError> {
        match self {
            Self::Card(card) => card.obey(now, command, answer),
            Self::Virtual(function) => function.obey(now, command, answer),
        }
        self.attend(memory)
    }

    /// Answers messages of the driver, where it sends any.
    ///
    /// # Errors
    /// As for [`obey`](Self::obey).
    pub(crate) fn attend(&mut self, memory: &Memory) -> Result<(), MemoryError> {
        match self {
            Self::Card(_) => Ok(()),
            Self::Virtual(function) => function.attend(memory),
        }
    }

    /// Plugs the cable in, or pulls it out.
    pub(crate) fn set_link(&mut self, link: bool) {
        match self {
            Self::Card(card) => card.set_link(link),
            Self::Virtual(function) => function.set_link(link),
        }
    }

    /// The least time between two interrupts for frames of a queue.
    pub(crate) fn interval(&self, queue: usize) -> Duration {
        match self {
            Self::Card(card) => card.interval(),
            Self::Virtual(function) => function.interval(queue),
        }
    }

    /// Frames that the driver has buffers for in a queue, if each takes one.
    pub(crate) fn room(&self, queue: usize) -> usize {
        match self {
            Self::Card(card) => card.room(),
            Self::Virtual(function) => function.room(queue),
        }
    }

    /// Whether the cable is in, and what comes from there is received.
    pub(crate) fn listens(&self) -> bool {
        match self {
            Self::Card(card) => card.listens(),
            Self::Virtual(function) => function.listens(),
        }
    }

    /// Where a frame off the wire goes; what is refused is counted.
    pub(crate) fn route(&mut self, frame: &[u8]) -> Route {
        match self {
            Self::Card(card) => {
                if card.accepts(frame) {
                    Route::Port
                } else {
                    Route::Nowhere
                }
            }
            Self::Virtual(function) => function.route(frame),
        }
    }

    /// A frame that was let in is in memory, for a queue: it goes into the driver's buffers, unless
    /// there are too few; whether it does. It is a cause of an interrupt if `is_cause`.
    ///
    /// # Errors
    /// As for [`obey`](Self::obey).
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        queue: usize,
        frame: &[u8],
        memory: &Memory,
        is_cause: bool,
    ) -> Result<bool, MemoryError> {
        match self {
            Self::Card(card) => card.receive(now, frame, memory, is_cause),
            Self::Virtual(function) => function.receive(queue, frame, memory, is_cause),
        }
    }

    /// A frame was let in, and will be in memory later: it is a cause of an interrupt, if there is
    /// a buffer.
    pub(crate) fn notice(&mut self, now: Instant, queue: usize, frame: &[u8]) {
        match self {
            Self::Card(card) => card.notice(now),
            Self::Virtual(function) => function.notice(queue, frame),
        }
    }

    /// Shows the driver a frame that is not the wire's, for nothing; whether there was room.
    ///
    /// # Errors
    /// As for [`obey`](Self::obey).
    pub(crate) fn show(&mut self, frame: &[u8], memory: &Memory) -> Result<bool, MemoryError> {
        match self {
            Self::Card(card) => card.show(frame, memory),
            Self::Virtual(function) => function.show(frame, memory),
        }
    }

    /// Frames found no buffer.
    pub(crate) fn miss(&mut self, frames: u32) {
        match self {
            Self::Card(card) => card.miss(frames),
            Self::Virtual(function) => function.miss(frames),
        }
    }

    /// Takes the next frame that the driver sends, in place of what is in `frame`.
    ///
    /// # Errors
    /// As for [`obey`](Self::obey).
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        frame: &mut Vec<u8>,
        memory: &Memory,
    ) -> Result<Sent, MemoryError> {
        match self {
            Self::Card(card) => card.transmit(now, frame, memory),
            Self::Virtual(function) => function.transmit(frame, memory),
        }
    }

    /// Packets of the driver that were longer than any port takes.
    pub(crate) fn too_long(&self) -> u64 {
        match self {
            Self::Card(card) => card.too_long(),
            Self::Virtual(function) => function.too_long(),
        }
    }

    /// Queue pairs that the driver uses.
    pub(crate) fn pairs_used(&self) -> u16 {
        match self {
            Self::Card(_) => 1,
            Self::Virtual(function) => function.pairs_used(),
        }
    }

    /// Interrupts for the frames of a queue at once, whatever the registers say of delays.
    pub(crate) fn interrupt_for_frames(&mut self, now: Instant, queue: usize) {
        match self {
            Self::Card(card) => card.interrupt_for_frames(now),
            Self::Virtual(function) => function.interrupt_for_frames(queue),
        }
    }

    /// Lets timers run out.
    pub(crate) fn advance(&mut self, now: Instant) {
        match self {
            Self::Card(card) => card.advance(now),
            Self::Virtual(function) => function.advance(now),
        }
    }

    /// When [`advance`](Self::advance) has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Card(card) => card.deadline(),
            Self::Virtual(function) => function.deadline(),
        }
    }

    /// Interrupts since the last call, in their order.
    pub(crate) fn take_raised(&mut self) -> Vec<Raised> {
        match self {
            Self::Card(card) => card.take_raised(),
            Self::Virtual(function) => function.take_raised(),
        }
    }

    /// The queues, a bit for each, whose interrupts the driver has unmasked since the last call.
    pub(crate) fn take_rearmed(&mut self) -> u32 {
        match self {
            Self::Card(card) => card.take_rearmed().into(),
            Self::Virtual(function) => function.take_rearmed(),
        }
    }
}

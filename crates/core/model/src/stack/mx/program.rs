//! Programs at endpoints, and the messages that they send.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::any::Any;

use base::time::{Duration, Instant};
use mx::buffers::{Sink, Source};
use mx::config::Config;

/// How many bytes of a message exist: programs look at no others.
pub const HEAD: usize = 32;

/// A message, or the place for one, of which only the first [`HEAD`] bytes are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizedMessage {
    /// Bytes of it.
    pub length: u64,
    /// The first of them.
    pub head: [u8; HEAD],
}

impl SizedMessage {
    /// One of zeros.
    pub const fn of(length: u64) -> Self {
        Self { length, head: [0; HEAD] }
    }
}

impl Source for SizedMessage {
    fn length(&self) -> u64 {
        self.length
    }

    fn read(&self, offset: u64, into: &mut [u8]) {
        into.fill(0);
        let head = self.head.get(offset as usize..).unwrap_or_default();
        let count = head.len().min(into.len());
        into[..count].copy_from_slice(&head[..count]);
    }
}

impl Sink for SizedMessage {
    fn capacity(&self) -> u64 {
        self.length
    }

    fn write(&mut self, offset: u64, from: &[u8]) {
        let head = self.head.get_mut(offset as usize..).unwrap_or_default();
        let count = head.len().min(from.len());
        head[..count].copy_from_slice(&from[..count]);
    }
}

/// What a program does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It sends a message to the peer of this number.
    Send {
        /// The number, in the order of [`EndpointSpec::peers`].
        peer: usize,
        /// The match information that it goes with.
        match_info: u64,
        /// How long it is, and how it begins.
        message: SizedMessage,
    },
    /// It posts a receive, which takes no time. Endpoints without [`EndpointSpec::receives`] get
    /// nothing else.
    Receive {
        /// The number of the peer that the message comes from.
        peer: usize,
        /// The match information that it comes with.
        match_info: u64,
        /// Bytes of the longest message.
        length: u64,
    },
    /// It computes for so long.
    Compute(Duration),
    /// It waits for a message, for one of its own to be out, or for [`MxProgram::until`].
    Wait,
}

/// A program at an endpoint, as a state machine without I/O.
pub trait MxProgram: Any {
    /// What it does next. Each answer but [`Next::Wait`] is carried out before the next call.
    fn next(&mut self, now: Instant) -> Next;

    /// The message was handed over, the `number`th from 0; so many of this program are on their
    /// way.
    fn sent(&mut self, now: Instant, number: u64, outstanding: usize);

    /// The `number`th message of its own is out, and its memory is free again.
    fn drained(&mut self, now: Instant, number: u64, outstanding: usize);

    /// A message has come from the peer of this number, with this match information.
    fn received(&mut self, now: Instant, peer: usize, match_info: u64, message: SizedMessage);

    /// It has computed.
    fn computed(&mut self);

    /// Whether it is of interest when messages of its own are out.
    fn wants_ends(&self) -> bool {
        true
    }

    /// When it goes on if nothing comes before.
    fn until(&self) -> Option<Instant>;
}

/// An endpoint, and the program that has it.
pub struct EndpointSpec {
    /// The number of its host.
    pub host: usize,
    /// The core that the program is bound to.
    pub core: usize,
    /// Its number on the host.
    pub endpoint: u8,
    /// How the engine is set.
    pub config: Config,
    /// Those it talks to, as indices of the list of endpoints.
    pub peers: Vec<usize>,
    /// Receives that are always posted, and bytes of the longest message.
    pub receives: (usize, u64),
    /// What it does.
    pub program: Box<dyn MxProgram>,
}

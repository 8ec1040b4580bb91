//! One port of the NIC: from the wire to its queues.
//!
//! ```text
//! wire ─▶ classify (marker) ─▶ queue choice (RSS) ─▶ descriptor ─▶ DMA ─▶ moderation ─▶ interrupt
//!         └─────────────── receive ────────────────────────────┘  └────── advance ───────────┘
//! ```
//!
//! The owner calls [`Port::receive`] for each frame off the wire, [`Port::advance`] when
//! [`Port::deadline`] has come (and after a batch of frames), and lets the host poll every queue
//! whose interrupt was raised.

use alloc::vec::Vec;

use crate::counters::Counters;
use crate::descriptor::Descriptor;
use crate::headers::{self, Headers};
use crate::marker::Rules;
use crate::moderation::{Moderation, Phase};
use crate::observer::Observer;
use crate::prng::Prng;
use crate::queue::{Dma, Queue};
use crate::rss::{DEFAULT_KEY, Indirection, Rss};
use crate::time::Instant;

/// The shortest frame that has a whole Ethernet header.
pub const MIN_FRAME: usize = 14;

/// The longest frame that a port takes.
pub const MAX_FRAME: usize = 65_535;

/// How a port is built; what can change later has a setter on [`Port`].
#[derive(Clone, Debug)]
pub struct PortSettings {
    /// Receive queues, at least 1.
    pub queues: u16,
    /// Packets that one queue's ring holds (`ethtool -g`: rx).
    pub ring: usize,
    /// The moderation that every queue starts with.
    pub moderation: Moderation,
    /// Which packets are marked.
    pub rules: Rules,
    /// How long DMAs take.
    pub dma: Dma,
    /// Transmit completions interrupt, too, on the vector of queue 0: a NIC with one vector for
    /// both, as e1000.
    pub transmit_interrupts: bool,
    /// Where the phases of free-running ticks come from, one for each queue. Without it, their
    /// first tick comes a whole period after the setting.
    pub tick_seed: Option<u64>,
}

impl Default for PortSettings {
    fn default() -> Self {
        Self {
            queues: 1,
            ring: 1_024,
            moderation: Moderation::DISABLED,
            rules: Rules::default(),
            dma: Dma::default(),
            transmit_interrupts: false,
            tick_seed: None,
        }
    }
}

/// Why a frame was dropped. The frame comes back, so that a pool can use its memory again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drop<F> {
    /// Shorter than [`MIN_FRAME`] or longer than [`MAX_FRAME`].
    BadLength(F),
    /// The host does not keep up.
    RingFull(F),
    /// The host's driver has not asked for it.
    Filtered(F),
}

impl<F> Drop<F> {
    /// The frame.
    pub fn into_frame(self) -> F {
        match self {
            Self::BadLength(frame) | Self::RingFull(frame) | Self::Filtered(frame) => frame,
        }
    }
}

/// A port whose frames are held by `F`.
#[derive(Clone, Debug)]
pub struct Port<F> {
    queues: Vec<Queue<F>>,
    rss: Rss,
    rules: Rules,
    dma: Dma,
    dma_free_at: Instant,
    transmit_interrupts: bool,
    bad_length: u64,
}

impl<F: AsRef<[u8]>> Port<F> {
    /// An idle port.
    #[must_use]
    pub fn new(settings: PortSettings, now: Instant) -> Self {
        let queues = settings.queues.max(1);
        let mut random = settings.tick_seed.map(Prng::new);
        let queue = |number| {
            let phase = random.as_mut().map(|random| Phase((random.next_u64() >> 32) as u32));
            let phase = phase.unwrap_or_default();
            Queue::in_phase(number, settings.ring, settings.moderation, phase, now)
        };
        Self {
            queues: (0..queues).map(queue).collect(),
            rss: Rss::new(DEFAULT_KEY, Indirection::equal(queues)),
            rules: settings.rules,
            dma: settings.dma,
            dma_free_at: now,
            transmit_interrupts: settings.transmit_interrupts,
            bad_length: 0,
        }
    }

    /// A frame came off the wire: classifies it, fills in its descriptor, chooses its queue,
    /// submits its DMA.
    ///
    /// # Errors
    /// Gives the frame back if it is no Ethernet frame or the ring is full. Both are counted.
    pub fn receive(&mut self, now: Instant, frame: F) -> Result<(), Drop<F>> {
        self.receive_on(now, frame, None)
    }

    /// The same, for a device that chooses the queue itself, where it names one that there is.
    ///
    /// # Errors
    /// As for [`receive`](Self::receive).
    pub fn receive_on(
        &mut self,
        now: Instant,
        frame: F,
        queue: Option<u16>,
    ) -> Result<(), Drop<F>> {
        let bytes = frame.as_ref();
        if !(MIN_FRAME..=MAX_FRAME).contains(&bytes.len()) {
            self.bad_length += 1;
            return Err(Drop::BadLength(frame));
        }
        let length = bytes.len() as u32;
        let headers = headers::parse(bytes);
        let marked = headers.as_ref().is_ok_and(|headers| self.rules.classify(headers).mark);
        let named = queue.map(usize::from).filter(|queue| *queue < self.queues.len());
        let chosen = || headers.as_ref().map_or(0, |headers| self.choose_queue(headers));
        let number = named.unwrap_or_else(chosen);
        let busy_until = self.dma_free_at.max(now) + self.dma.transfer(length);
        let completed_at = busy_until + self.dma.latency;
        let descriptor = Descriptor { length, marked, arrived_at: now, completed_at };
        let queue = &mut self.queues[number];
        queue.arrive(now, descriptor, frame).map_err(Drop::RingFull)?;
        queue.counters.malformed += u64::from(headers.is_err());
        self.dma_free_at = busy_until;
        Ok(())
    }

    /// Completes the DMAs that are due by `now` and lets timers act.
    pub fn advance(&mut self, now: Instant, observer: &mut impl Observer) {
        for queue in &mut self.queues {
            queue.advance(now, observer);
        }
    }

    /// When [`advance`](Self::advance) has something to do next.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.queues.iter().filter_map(Queue::deadline).min()
    }

    /// The host transmitted a frame, and its memory is free again.
    pub fn transmitted(&mut self, now: Instant, observer: &mut impl Observer) {
        if self.transmit_interrupts {
            self.queues[0].transmit_completed(now, observer);
        }
    }

    /// The queues, for the host to poll and re-arm.
    pub fn queues_mut(&mut self) -> &mut [Queue<F>] {
        &mut self.queues
    }

    /// The queues.
    #[must_use]
    pub fn queues(&self) -> &[Queue<F>] {
        &self.queues
    }

    /// Spreads the frames to come over the first `queues` queues, at least 1 and at most all.
    pub fn spread_over(&mut self, queues: u16) {
        let queues = queues.clamp(1, self.queues.len() as u16);
        self.rss.set_indirection(Indirection::equal(queues));
    }

    /// The marking rules in force.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Changes the marking rules for the frames to come.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    /// What the port has counted: its queues, and the frames that reached none.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let queues = self.queues.iter().map(|queue| *queue.counters());
        let sum = queues.fold(Counters::default(), |sum, queue| sum + queue);
        Counters { bad_length: self.bad_length, ..sum }
    }

    fn choose_queue(&self, headers: &Headers) -> usize {
        if self.queues.len() == 1 { 0 } else { usize::from(self.rss.queue_of(headers)) }
    }
}

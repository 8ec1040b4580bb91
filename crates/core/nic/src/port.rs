//! One port of the NIC: from the wire to its queues.
//!
//! ```text
//! wire ─▶ classify (marker) ─▶ queue (lane, RSS) ─▶ descriptor ─▶ DMA ─▶ moderation ─▶ interrupt
//!         └─────────────── receive ────────────────────────────┘  └────── advance ───────────┘
//! ```
//!
//! The owner calls [`Port::receive`] for each frame off the wire, [`Port::advance`] when
//! [`Port::deadline`] has come (and after a batch of frames), and lets the host poll every queue
//! whose interrupt was raised.

use alloc::vec::Vec;

use crate::counters::Counters;
use crate::descriptor::Descriptor;
use crate::headers::{self, Headers, Malformed};
use crate::lanes::{LaneError, Lanes, Steering};
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
pub enum RejectedFrame<F> {
    /// Shorter than [`MIN_FRAME`] or longer than [`MAX_FRAME`].
    BadLength(F),
    /// The host does not keep up.
    RingFull(F),
    /// The host's driver has not asked for it.
    Filtered(F),
}

impl<F> RejectedFrame<F> {
    /// The frame that was rejected.
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
    steering: Steering,
    /// The host uses the first so many queues.
    used: u16,
    rules: Rules,
    dma: Dma,
    dma_free_at: Instant,
    transmit_interrupts: bool,
    bad_length: u64,
}

impl<F: AsRef<[u8]>> Port<F> {
    /// A frame came off the wire: classifies it, fills in its descriptor, chooses its queue,
    /// submits its DMA.
    ///
    /// # Errors
    /// Gives the frame back if it is no Ethernet frame or the ring is full. Both are counted.
    pub fn receive(&mut self, now: Instant, frame: F) -> Result<(), RejectedFrame<F>> {
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
    ) -> Result<(), RejectedFrame<F>> {
        let bytes = frame.as_ref().len();
        self.receive_sized(now, frame, bytes, |frame| headers::parse(frame.as_ref()), queue)
    }
}

impl<F> Port<F> {
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
            steering: Steering::NONE,
            used: queues,
            rules: settings.rules,
            dma: settings.dma,
            dma_free_at: now,
            transmit_interrupts: settings.transmit_interrupts,
            bad_length: 0,
        }
    }

    /// The same as [`receive_on`](Self::receive_on) for an owner whose `F` does not hold all bytes
    /// of the frame: it says how many there are, and parses their headers.
    ///
    /// # Errors
    /// As for [`receive`](Self::receive).
    #[inline(always)]
    pub fn receive_sized(
        &mut self,
        now: Instant,
        frame: F,
        bytes: usize,
        parse: impl FnOnce(&F) -> Result<Headers, Malformed>,
        queue: Option<u16>,
    ) -> Result<(), RejectedFrame<F>> {
        if !(MIN_FRAME..=MAX_FRAME).contains(&bytes) {
            self.bad_length += 1;
            return Err(RejectedFrame::BadLength(frame));
        }
        let length = bytes as u32;
        let headers = parse(&frame);
        let marked = headers.as_ref().is_ok_and(|headers| self.rules.classify(headers).mark);
        let named = queue.map(usize::from).filter(|queue| *queue < self.queues.len());
        let chosen = || match headers.as_ref() {
            Ok(headers) => self.choose_queue(headers),
            Err(_) => (self.rss.unhashed().into(), None),
        };
        let (number, rule) = named.map_or_else(chosen, |queue| (queue, None));
        let busy_until = self.dma_free_at.max(now) + self.dma.transfer(length);
        let completed_at = busy_until + self.dma.latency;
        let descriptor = Descriptor { length, marked, arrived_at: now, completed_at };
        let queue = &mut self.queues[number];
        queue.arrive(now, descriptor, frame).map_err(RejectedFrame::RingFull)?;
        queue.counters.malformed += u64::from(headers.is_err());
        self.dma_free_at = busy_until;
        if let Some(rule) = rule {
            self.steering.count(rule);
        }
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

    /// The queues, by number.
    #[must_use]
    pub fn queues(&self) -> &[Queue<F>] {
        &self.queues
    }

    /// Spreads the frames to come over the first `queues` queues, at least 1 and at most all.
    ///
    /// Queues of lanes are left out, unless nothing would be left.
    pub fn spread_over(&mut self, queues: u16) {
        let count = self.queues.len() as u16;
        self.used = queues.clamp(1, count);
        self.steering.resolve(count, self.used);
        let left = (0..self.used).filter(|queue| !self.is_lane(*queue));
        let left: Vec<u16> = left.collect();
        let table =
            if left.is_empty() { Indirection::equal(self.used) } else { Indirection::over(&left) };
        self.rss.set_indirection(table);
    }

    /// How frames are spread.
    #[must_use]
    pub fn rss(&self) -> &Rss {
        &self.rss
    }

    /// Spreads the frames to come over the first `queues` queues as `rss` says, whose table and
    /// queue of what has no hash have to be among them.
    pub fn set_rss(&mut self, queues: u16, rss: Rss) {
        let count = self.queues.len() as u16;
        self.used = queues.clamp(1, count);
        self.steering.resolve(count, self.used);
        self.rss = rss;
    }

    /// Lets rules choose the queues of frames to come; those that no rule decides about go by
    /// their hash. Counters of lanes begin anew.
    ///
    /// # Errors
    /// If the port lacks a queue, or the lanes leave none for the rest; nothing is changed.
    pub fn set_lanes(&mut self, lanes: Lanes) -> Result<(), LaneError> {
        let count = self.queues.len() as u16;
        lanes.check(count)?;
        self.steering = Steering::new(lanes, count, self.used);
        self.spread_over(self.used);
        Ok(())
    }

    /// The lanes in force.
    #[must_use]
    pub fn lanes(&self) -> &Lanes {
        self.steering.lanes()
    }

    /// The packets that each rule of the lanes has decided about, in their order.
    #[must_use]
    pub fn lane_packets(&self) -> &[u64] {
        self.steering.packets()
    }

    /// Whether a queue is for lanes alone.
    #[must_use]
    pub fn is_lane(&self, queue: u16) -> bool {
        self.steering.takes(queue, self.queues.len() as u16)
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

    /// The queue, and the rule that decided about it, if one did.
    fn choose_queue(&self, headers: &Headers) -> (usize, Option<usize>) {
        if self.queues.len() == 1 && self.steering.lanes().is_empty() {
            return (0, None);
        }
        let decision = self.steering.decide(headers);
        let queue = decision.and_then(|(_, queue)| queue);
        let queue = queue.unwrap_or_else(|| self.rss.queue_of(headers));
        (usize::from(queue), decision.map(|(rule, _)| rule))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::{ethernet, tcp4};
    use alloc::string::ToString;

    fn port(queues: u16, lanes: &str) -> Port<Vec<u8>> {
        let settings = PortSettings { queues, ..PortSettings::default() };
        let mut port = Port::new(settings, Instant::ZERO);
        port.set_lanes(lanes.parse().unwrap()).unwrap();
        port
    }

    /// How many packets each queue gets of connections to two ports, of ARP, and of a frame whose
    /// headers end early.
    fn packets(port: &mut Port<Vec<u8>>) -> Vec<u64> {
        for client in 1..=40 {
            for server in [80, 5001] {
                port.receive(Instant::ZERO, tcp4(client, server, 0, b"")).unwrap();
            }
        }
        port.receive(Instant::ZERO, ethernet(0x0806, &[0; 46])).unwrap();
        port.receive(Instant::ZERO, ethernet(0x0800, &[0x45])).unwrap();
        port.queues().iter().map(|queue| queue.counters().packets).collect()
    }

    #[test]
    fn a_lane_has_what_its_rule_matches_and_nothing_else() {
        for (lanes, lane) in [("tcp-port=80", 2), ("tcp-port=80:1", 1), ("tcp-port=80:0", 0)] {
            let mut port = port(3, lanes);
            let packets = packets(&mut port);
            assert_eq!(packets[lane], 40, "{lanes}: {packets:?}");
            assert!(packets.iter().all(|packets| *packets > 0), "{lanes}: {packets:?}");
            assert_eq!(port.lane_packets(), [40]);
            assert_eq!(
                [0, 1, 2].map(|queue| port.is_lane(queue)),
                [0, 1, 2].map(|q| q == lane as u16)
            );
        }
    }

    #[test]
    fn a_shared_lane_has_others_too_and_exceptions_are_counted() {
        let mut port = port(2, "unmark tcp-port=1-10, tcp-port=80:1+rss");
        let packets = packets(&mut port);
        assert!(packets[1] > 30 && packets[0] > 0, "{packets:?}");
        assert_eq!(port.lane_packets(), [20, 30]);
        assert!(!port.is_lane(1));
    }

    #[test]
    fn queues_that_the_host_does_not_use_get_nothing() {
        let mut port = port(3, "tcp-port=80:2");
        port.spread_over(2);
        assert_eq!(packets(&mut port)[2], 0);
        port.spread_over(3);
        assert_eq!(packets(&mut port)[2], 40);
        port.set_lanes(Lanes::NONE).unwrap();
        assert!(!port.is_lane(2) && port.lane_packets().is_empty());
    }

    #[test]
    fn impossible_lanes_change_nothing() {
        let mut port = port(2, "tcp-port=80:1");
        for (lanes, words) in
            [("mx:2", "there are 2 queues"), ("mx:0, dscp=1:1", "take all queues")]
        {
            let error = port.set_lanes(lanes.parse().unwrap()).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(port.lanes().to_string(), "tcp-port=80:1");
    }
}

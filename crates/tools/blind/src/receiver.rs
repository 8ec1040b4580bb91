//! The receiving of one host: our NIC, its driver's polls, and a core that may be asleep or busy.

use base::time::Instant;
use infer::Length;
use nic::port::{Port, PortSettings};

use crate::case::{Deferral, Hold};
use crate::decoy::Decoy;
use crate::random::Random;

/// A packet without contents; bulk has no number, and is short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbePacket(pub(crate) Option<usize>, Length);

/// What is in the longest: nothing, of an EtherType for experiments.
static FRAME: [u8; 1_514] = {
    let mut frame = [0; 1_514];
    (frame[12], frame[13]) = (0x88, 0xb5);
    frame
};

impl AsRef<[u8]> for ProbePacket {
    fn as_ref(&self) -> &[u8] {
        &FRAME[..if self.1 == Length::Full { FRAME.len() } else { 64 }]
    }
}

/// What the driver and its core cost, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// From interrupt to poll.
    pub(crate) interrupt: f64,
    /// What that varies by.
    pub(crate) jitter: f64,
    /// For each packet.
    pub(crate) packet: f64,
}

/// One host's receiving.
pub(crate) struct Receiver {
    port: Port<ProbePacket>,
    costs: Costs,
    decoy: Option<Decoy>,
    bulk_gap: f64,
    next_bulk: f64,
    poll_at: Option<f64>,
    deferral: Option<Deferral>,
    /// Polls that may find nothing before interrupts are back; as many as there are after one that
    /// has found something.
    polls_left: u32,
    idle_since: f64,
    random: Random,
}

/// Packets that one poll takes at most (NAPI's weight).
const BUDGET: usize = 64;

impl Receiver {
    pub(crate) fn new(
        (hold, rules): (Hold, &str),
        costs: Costs,
        decoy: Option<Decoy>,
        bulk: f64,
        mut random: Random,
    ) -> Self {
        let bulk_gap = if bulk > 0.0 { 1e9 / bulk } else { f64::INFINITY };
        // A tick has run since long before the first probe.
        let started = Instant::from_nanos(random.between(0.0, 1e6) as u64);
        let settings = PortSettings {
            moderation: hold.setting,
            rules: rules.parse().expect("rules are well formed"),
            ..PortSettings::default()
        };
        Self {
            port: Port::new(settings, started),
            costs,
            decoy,
            bulk_gap,
            next_bulk: if bulk > 0.0 { 1e6 + random.exponential(bulk_gap) } else { f64::INFINITY },
            poll_at: None,
            deferral: hold.deferral,
            polls_left: 0,
            idle_since: 0.0,
            random,
        }
    }

    /// Lets packets arrive, in order, and runs until `until`: which were polled, and when.
    pub(crate) fn run(
        &mut self,
        arrivals: &[(f64, usize)],
        length: Length,
        until: f64,
    ) -> Vec<(f64, usize)> {
        let mut polled = Vec::new();
        let mut arrivals = arrivals.iter().peekable();
        loop {
            let arrival = arrivals.peek().map_or(f64::INFINITY, |(at, _)| *at);
            let timer = self.port.deadline().map_or(f64::INFINITY, |at| at.as_nanos() as f64);
            let poll = self.poll_at.unwrap_or(f64::INFINITY);
            let now = arrival.min(self.next_bulk).min(timer).min(poll);
            if now > until {
                return polled;
            }
            let moment = Instant::from_nanos(now as u64);
            if now >= arrival {
                let (_, number) = arrivals.next().expect("it was peeked at");
                // A full ring loses it, as on hardware.
                let _ = self.port.receive(moment, ProbePacket(Some(*number), length));
            } else if now >= self.next_bulk {
                let _ = self.port.receive(moment, ProbePacket(None, Length::Short));
                self.next_bulk = now + self.random.exponential(self.bulk_gap);
            }
            self.port.advance(moment, &mut ());
            if self.poll_at.is_some_and(|at| at <= now) {
                self.poll(now, moment, &mut polled);
            }
            if self.port.queues_mut()[0].take_interrupt() && self.poll_at.is_none() {
                self.poll_at = Some(now + self.interrupted(now));
            }
        }
    }

    fn poll(&mut self, now: f64, moment: Instant, polled: &mut Vec<(f64, usize)>) {
        let (mut at, packet) = (now, self.costs.packet);
        let queue = &mut self.port.queues_mut()[0];
        let count = queue.poll(moment, BUDGET, &mut (), |_, ProbePacket(number, _)| {
            at += packet;
            polled.extend(number.map(|number| (at, number)));
        });
        if count > 0 {
            self.poll_at = Some(at);
            self.polls_left = self.deferral.map_or(0, |deferral| deferral.polls);
            return;
        }
        self.idle_since = now;
        self.poll_at = self.deferral.filter(|_| self.polls_left > 0).map(|deferral| {
            self.polls_left -= 1;
            now + f64::from(deferral.usecs) * 1e3 + self.random.exponential(self.costs.jitter)
        });
        if self.poll_at.is_none() {
            queue.rearm(moment, &mut ());
        }
    }

    /// How long after the interrupt the poll begins.
    fn interrupted(&mut self, now: f64) -> f64 {
        let usual = self.costs.interrupt + self.random.exponential(self.costs.jitter);
        let more = match self.decoy {
            Some(Decoy::Waking { after, takes }) if now - self.idle_since > after * 1e3 => takes,
            Some(Decoy::BusyCore { share, longest }) if self.random.is(share) => {
                self.random.between(0.0, longest)
            }
            _ => 0.0,
        };
        usual + more * 1e3
    }
}

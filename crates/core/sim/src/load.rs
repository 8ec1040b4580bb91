//! Streams of messages of one size, and how fast they are.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use base::time::{Duration, Instant};
use bytes::Bytes;
use mx::config::Config;
use mx::ids::PeerId;
use mx::matching::Match;
use mx::status::Event;

use crate::network::Wires;
use crate::world::{Occurrence, SimEndpoint, World, address};

/// A stream in each of some pairs.
#[derive(Clone, Debug)]
pub struct Load {
    /// Settings of all endpoints.
    pub config: Config,
    /// Rates and faults of the network.
    pub wires: Wires,
    /// Sender and receiver of each stream of messages, as numbers of hosts.
    pub pairs: Vec<(usize, usize)>,
    /// Bytes of each message.
    pub size: usize,
    /// Messages that a sender has begun and that have not ended.
    pub depth: usize,
    /// A message is sent so often, instead of when another one has ended.
    pub every: Option<Duration>,
    /// Before that nothing is measured.
    pub warm_up: Duration,
    /// For so long it is measured.
    pub span: Duration,
    /// Decides on everything random.
    pub seed: u64,
}

/// How a load went.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Bytes that were received in the time that was measured.
    pub bytes: u64,
    /// Messages of each pair, in that time.
    pub messages: Vec<u64>,
    /// From the send to the end of the receive, in order of length.
    pub latencies: Vec<Duration>,
    /// Frames that all endpoints sent, and those that were marked.
    pub frames: u64,
    /// Marked ones among the frames.
    pub marked: u64,
    /// Frames that were sent again, and blocks that were asked for again.
    pub again: u64,
    /// Batches that left a host waiting for a frame, with no mark on it or behind it.
    pub unmarked: u64,
    /// Frames that found no room in the switch.
    pub overflowed: u64,
    /// The same for the same events.
    pub hash: u64,
    span: Duration,
}

impl Outcome {
    /// Bytes received, in megabits a second.
    pub const fn mbit(&self) -> u64 {
        self.bytes * 8_000 / self.span.as_nanos()
    }

    /// The latency that so many of a thousand messages do not exceed.
    pub fn permille(&self, of: usize) -> Duration {
        let at = (self.latencies.len() * of / 1000).min(self.latencies.len().saturating_sub(1));
        self.latencies.get(at).copied().unwrap_or_default()
    }
}

struct Running<'a> {
    load: &'a Load,
    world: World,
    message: Bytes,
    names: BTreeMap<(usize, usize), PeerId>,
    begun: Vec<Vec<Instant>>,
    outcome: Outcome,
    from: Instant,
}

/// Runs a load.
///
/// # Panics
/// If a request fails.
pub fn run(load: &Load) -> Outcome {
    let hosts = load.pairs.iter().map(|(a, b)| *a.max(b)).max().unwrap_or(0) + 1;
    let mut world = World::new(load.wires, hosts, load.seed);
    for host in 0..hosts {
        world.start(host, load.config, load.seed << 8 | host as u64);
    }
    let outcome =
        Outcome { messages: vec![0; load.pairs.len()], span: load.span, ..Outcome::default() };
    let message = (0..load.size).map(|at| (at * 7 + at / 251) as u8).collect::<Vec<_>>().into();
    let begun = vec![Vec::new(); load.pairs.len()];
    let from = Instant::ZERO;
    let mut running =
        Running { load, world, message, names: BTreeMap::new(), begun, outcome, from };
    running.connect();
    running.go();
    running.finish(hosts)
}

impl Running<'_> {
    fn connect(&mut self) {
        let timeout = Duration::from_millis(1_000);
        for &(from, to) in &self.load.pairs {
            let id = self.world.with(from, |end, now| end.connect(now, address(to), 0, timeout));
            self.names.insert((from, to), id.expect("an open endpoint connects"));
        }
        let until = self.world.now() + Duration::from_millis(1_000);
        while let Some(occurrence) = self.world.next(until) {
            assert!(matches!(occurrence, Occurrence::Event(_, Event::Connected(_, Ok(())))));
        }
    }

    fn go(&mut self) {
        self.from = self.world.now() + self.load.warm_up;
        for pair in 0..self.load.pairs.len() {
            for _ in 0..2 * self.load.depth {
                self.receive(pair, vec![0; self.load.size]);
            }
            for _ in 0..self.load.depth {
                self.send(pair);
            }
            if let Some(every) = self.load.every {
                self.world.alarm(self.world.now() + every, pair as u64);
            }
        }
        let until = self.from + self.load.span;
        while let Some(occurrence) = self.world.next(until) {
            match occurrence {
                Occurrence::Event(_, Event::Sent(_, status)) => {
                    assert_eq!(status.result, Ok(()));
                    if self.load.every.is_none() {
                        self.send(status.context as usize);
                    }
                }
                Occurrence::Event(_, Event::Received(_, status, data)) => {
                    assert_eq!((status.result, &data[..]), (Ok(()), &self.message[..]));
                    self.received(status.context as usize, status.match_info, data);
                }
                Occurrence::Event(_, event) => panic!("{event:?}"),
                Occurrence::Alarm(pair) => {
                    self.send(pair as usize);
                    let every = self.load.every.expect("the alarm is for this");
                    self.world.alarm(self.world.now() + every, pair);
                }
            }
        }
    }

    fn send(&mut self, pair: usize) {
        let (from, to) = self.load.pairs[pair];
        let peer = self.names[&(from, to)];
        let number = self.begun[pair].len() as u64;
        self.begun[pair].push(self.world.now());
        let (message, match_info) = (self.message.clone(), (pair as u64) << 40 | number);
        let isend =
            |end: &mut SimEndpoint, now| end.isend(now, peer, match_info, message, pair as u64);
        self.world.with(from, isend).expect("the peer is there");
    }

    fn receive(&mut self, pair: usize, place: Vec<u8>) {
        let to = self.load.pairs[pair].1;
        let wanted = Match { info: (pair as u64) << 40, mask: u64::MAX << 40 };
        let irecv = |end: &mut SimEndpoint, now| end.irecv(now, None, wanted, place, pair as u64);
        self.world.with(to, irecv).expect("any peer will do");
    }

    fn received(&mut self, pair: usize, match_info: u64, data: Vec<u8>) {
        let now = self.world.now();
        let begun = self.begun[pair][(match_info & 0xff_ffff_ffff) as usize];
        if now >= self.from {
            self.outcome.bytes += data.len() as u64;
            self.outcome.messages[pair] += 1;
            self.outcome.latencies.push(now.since(begun));
        }
        self.receive(pair, data);
    }

    fn finish(mut self, hosts: usize) -> Outcome {
        self.outcome.latencies.sort_unstable();
        for host in 0..hosts {
            let counters = *self.world.end(host).expect("it has begun").counters();
            self.outcome.frames += counters.sent.iter().sum::<u64>();
            self.outcome.marked += counters.marked;
            self.outcome.again += counters.resent + counters.asked_again;
        }
        self.outcome.overflowed = self.world.overflowed();
        self.outcome.unmarked = self.world.counts().unmarked;
        self.outcome.hash = self.world.hash();
        self.outcome
    }
}

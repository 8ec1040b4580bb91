//! Two endpoints on a perfect wire.

pub(crate) mod fuzz;
pub(crate) mod guest;
#[allow(dead_code, reason = "others use the rest")]
#[path = "../../../../../hosts/vhost/tests/support/input.rs"]
pub(crate) mod input;
pub(crate) mod lies;

use std::collections::VecDeque;

use base::time::{Duration, Instant};
use bytes::Bytes;
use mx::address::{Address, NicId};
use mx::buffers::Source;
use mx::config::Config;
use mx::endpoint::Endpoint;
use mx::ids::PeerId;
use mx::outgoing::BulkState;
use mx::status::Event;
use mx::wire::{self, Body, FrameType, Header};

pub(crate) type Engine = Endpoint<Bytes, Vec<u8>>;

pub(crate) type Tap = Box<dyn FnMut(usize, &mut Vec<u8>) -> bool>;

pub(crate) struct EnginePair<S = Bytes> {
    pub(crate) now: Instant,
    pub(crate) ends: [Endpoint<S, Vec<u8>>; 2],
    wires: [VecDeque<(Instant, Vec<u8>)>; 2],
    pub(crate) events: [Vec<Event<Vec<u8>>>; 2],
    pub(crate) asleep: [bool; 2],
    /// Bytes that were not written, but referred to.
    pub(crate) referred: usize,
    /// Sees every frame, may change it, and says whether it arrives.
    pub(crate) tap: Tap,
}

pub(crate) fn address(number: u8) -> Address {
    Address { nic: NicId([2, 0, 0, 0, 0, number]), endpoint: number }
}

impl EnginePair {
    pub(crate) fn new(config: Config) -> Self {
        Self::of_any(config)
    }

    /// Two that are connected, and how each calls the other.
    pub(crate) fn connected(config: Config) -> (Self, [PeerId; 2]) {
        let mut pair = Self::new(config);
        let ids = pair.connect();
        (pair, ids)
    }
}

impl<S: Source> EnginePair<S> {
    pub(crate) fn of_any(config: Config) -> Self {
        let end = |number| Endpoint::new(config, address(number), 77 + u64::from(number)).unwrap();
        Self {
            now: Instant::from_micros(1),
            ends: [end(0), end(1)],
            wires: Default::default(),
            events: Default::default(),
            asleep: [false; 2],
            referred: 0,
            tap: Box::new(|_, _| true),
        }
    }

    /// Connects them: how each calls the other.
    pub(crate) fn connect(&mut self) -> [PeerId; 2] {
        let key = self.ends[1].config().key;
        let a = self.ends[0].connect(self.now, address(1), key, secs(1)).unwrap();
        self.run(secs(0));
        assert!(matches!(self.events[0][..], [Event::Connected(id, Ok(()))] if id == a));
        self.events[0].clear();
        [a, self.ends[1].peers().next().unwrap()]
    }

    /// Goes on until nothing happens, or for so long.
    pub(crate) fn run(&mut self, at_least: Duration) {
        let until = self.now + at_least;
        for _ in 0..10_000_000 {
            self.drain();
            let awake = |end: &usize| !self.asleep[*end];
            let front = |end: usize| self.wires[end].front().map(|(at, _)| *at);
            let arrivals = (0..2).filter(awake).filter_map(front);
            let timers = (0..2).filter(awake).filter_map(|end| self.ends[end].deadline());
            let quiet = arrivals.clone().next().is_none();
            let Some(next) = arrivals.chain(timers).min() else { break };
            if quiet && next > until {
                break;
            }
            self.now = self.now.max(next);
            for to in (0..2).filter(|to| !self.asleep[*to]) {
                while self.wires[to].front().is_some_and(|(at, _)| *at <= self.now) {
                    let (_, frame) = self.wires[to].pop_front().unwrap();
                    self.ends[to].handle_frame(self.now, address(1 - to as u8).nic, &frame);
                }
                self.ends[to].handle_timeout(self.now);
                let deadline = self.ends[to].deadline();
                let is_read = deadline == Some(Instant::ZERO);
                assert!(is_read || deadline.is_none_or(|at| at > self.now), "{deadline:?} is over");
            }
        }
        self.now = self.now.max(until);
    }

    /// Puts a frame on the wire, unless it gets lost.
    fn carry(&mut self, from: usize, mut frame: Vec<u8>) {
        if !(self.tap)(from, &mut frame) {
            return;
        }
        self.wires[1 - from].push_back((self.now + Duration::from_micros(1), frame));
    }

    fn drain(&mut self) {
        let mut out = vec![0; wire::BULK_FRAME];
        let asleep = self.asleep;
        for from in (0..2).filter(|from| !asleep[*from]) {
            loop {
                let is_quiet = self.ends[from].is_quiet(self.now);
                let Some(outgoing) = self.ends[from].transmit(self.now, &mut out) else { break };
                assert!(!is_quiet, "a frame of one who had nothing to send");
                let data = self.ends[from].data();
                self.referred += data.len();
                let frame = [&out[..outgoing.length - data.len()], data].concat();
                assert_eq!((outgoing.frame_type, outgoing.payload), kind_and_payload(&frame));
                frames(frame).into_iter().for_each(|frame| self.carry(from, frame));
            }
            while let Some(event) = self.ends[from].poll_event() {
                self.events[from].push(event);
            }
            // What fuzzers refer to is there or not.
            while let Some(read) = self.ends[from].next_read() {
                let is_there = read.reference.record[0].is_multiple_of(2);
                self.ends[from].handle_read(self.now, is_there);
            }
        }
    }

    pub(crate) fn set_bulk_path(&mut self, path: impl Into<BulkState>) {
        let path = path.into();
        for number in 0..2 {
            self.ends[number].set_bulk_path(self.now, address(1 - number as u8), path);
        }
    }

    pub(crate) fn take(&mut self, end: usize) -> Vec<Event<Vec<u8>>> {
        std::mem::take(&mut self.events[end])
    }
}

/// The frames that an end sends now.
pub(crate) fn batch(end: &mut Engine, now: Instant) -> Vec<Vec<u8>> {
    let mut out = [0; 9216];
    std::iter::from_fn(|| end.transmit(now, &mut out).map(|sent| out[..sent.length].to_vec()))
        .collect()
}

/// The messages that the second end has received in full.
pub(crate) fn received(pair: &mut EnginePair) -> Vec<Vec<u8>> {
    let received = |event| match event {
        Event::Received(_, status, data) if status.result == Ok(()) => Some(data),
        _ => None,
    };
    let all: Vec<_> = pair.take(1).into_iter().filter_map(received).collect();
    assert!(all.iter().all(|data| data[..] == pattern(data.len())[..]));
    all
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_millis(seconds * 1_000)
}

pub(crate) fn pattern(length: usize) -> Bytes {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect::<Vec<_>>().into()
}

/// What a frame is for, and how many bytes of messages are in it.
fn kind_and_payload(frame: &[u8]) -> (Option<FrameType>, usize) {
    if let Some((head, data)) = frame.split_first_chunk()
        && wire::Run::new(head, data.len()).is_some()
    {
        return (Some(FrameType::Reply), data.len());
    }
    let (_, body) = wire::parse(frame).expect("a frame of an endpoint is well-formed");
    let is_ack = matches!(body, Body::Ack(_));
    (Some(body.frame_type()), if is_ack { 0 } else { body.data().len() })
}

pub(crate) fn frame_type(frame: &[u8]) -> FrameType {
    wire::parse(frame).expect("a frame of an endpoint is well-formed").1.frame_type()
}

/// Changes what a frame says; its checksum is right afterwards.
pub(crate) fn rewrite(frame: &mut Vec<u8>, change: impl FnOnce(Header, Body<'_>) -> Body<'_>) {
    let old = frame.clone();
    let (header, body) = wire::parse(&old).expect("a frame of an endpoint is well-formed");
    frame.resize(9216, 0);
    let length = wire::write(&header, &change(header, body), frame);
    frame.truncate(length);
}

pub(crate) fn frames(bytes: Vec<u8>) -> Vec<Vec<u8>> {
    let run = bytes
        .split_first_chunk()
        .and_then(|(head, data)| wire::Run::new(head, data.len()).map(|run| (run, data)));
    let Some((mut run, mut data)) = run else { return vec![bytes] };
    let mut frames = Vec::new();
    while !data.is_empty() {
        let (here, rest) = data.split_at(run.next());
        frames.push([&run.head(), here].concat());
        run.advance(run.next());
        data = rest;
    }
    frames
}

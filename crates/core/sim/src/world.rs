//! Hosts with an endpoint each, and the network between them.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use base::calendar::Calendar;
use base::prng::Prng;
use base::time::{Duration, Instant};
use bytes::Bytes;
use mx::address::{Address, NicId};
use mx::config::Config;
use mx::ids::PeerId;
use mx::status::Event;

use crate::marks;
use crate::network::{ETHERNET, Network, Wires};

/// The endpoints of this world.
pub type SimEndpoint = mx::endpoint::Endpoint<Bytes, Vec<u8>>;

/// Something that an application hears of.
#[derive(Debug)]
pub enum Occurrence {
    /// An endpoint has an event for its host.
    Event(usize, Event<Vec<u8>>),
    /// The time of an alarm has come; its number.
    Alarm(u64),
}

#[derive(Debug)]
enum Planned {
    /// A frame may have reached the switch from this host.
    Up(usize),
    /// A late frame leaves the switch.
    Late(usize, Bytes),
    /// A frame may have reached this host.
    Down(usize),
    /// The timer of this host.
    Timer(usize),
    /// The port of this host has room again.
    Room(usize),
    Alarm(u64),
}

#[derive(Debug, Default)]
struct Host {
    end: Option<SimEndpoint>,
    timer: Option<Instant>,
    waits_for_room: bool,
    up_at: Option<Instant>,
    down_at: Option<Instant>,
    asleep: bool,
    /// What came while it slept.
    inbox: Vec<Bytes>,
    /// Interfaces that were sent a frame which their host waits for, and no mark since; with the
    /// peer that waits, which is another one after a restart.
    unmarked: BTreeMap<NicId, PeerId>,
}

/// What a world has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Frames that left a host.
    pub sent: u64,
    /// Bytes of them, from the EtherType on.
    pub sent_bytes: u64,
    /// Frames that arrived.
    pub arrived: u64,
    /// Calls of `handle_timeout`.
    pub expired: u64,
    /// Batches that left a host waiting for a frame, with no mark on it or behind it. Counted where
    /// everything is marked that the paper marks, and none too early.
    pub unmarked: u64,
}

/// Hosts and a network.
#[derive(Debug)]
pub struct World {
    now: Instant,
    queue: Calendar<Planned>,
    hosts: Vec<Host>,
    network: Network,
    events: VecDeque<(usize, Event<Vec<u8>>)>,
    counts: Counts,
    hash: u64,
    buffer: Vec<u8>,
}

/// How far ahead of the wire an endpoint writes frames: a NIC's ring.
const RING: Duration = Duration::from_micros(2);
/// The longest frame.
const MAX_LENGTH: usize = ETHERNET + mx::config::MAX_MTU as usize;

/// The address of the endpoint of a host.
pub const fn address(host: usize) -> Address {
    let [high, low] = (host as u16).to_be_bytes();
    Address { nic: NicId([2, 0, 0, 0, high, low]), endpoint: 3 }
}

impl World {
    /// A world without endpoints.
    pub fn new(wires: Wires, hosts: usize, seed: u64) -> Self {
        let mut random = Prng::new(seed);
        Self {
            now: Instant::from_micros(1),
            queue: Calendar::default(),
            hosts: (0..hosts).map(|_| Host::default()).collect(),
            network: Network::new(wires, hosts, &mut random),
            events: VecDeque::new(),
            counts: Counts::default(),
            hash: 0xcbf2_9ce4_8422_2325,
            buffer: alloc::vec![0; MAX_LENGTH],
        }
    }

    /// The present moment of virtual time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// What has been counted.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// A number that two runs share if the same happened in both.
    pub const fn hash(&self) -> u64 {
        self.hash
    }

    /// Frames that the switch had no room for.
    pub fn overflowed(&self) -> u64 {
        self.network.down.iter().map(|link| link.counters().overflowed).sum()
    }

    /// Begins a life of a host's endpoint; the one before it, if any, is gone without a word.
    ///
    /// # Panics
    /// If the settings are out of range.
    pub fn start(&mut self, host: usize, config: Config, seed: u64) {
        let end =
            SimEndpoint::new(config, address(host), seed).expect("settings within their ranges");
        self.start_with(host, end);
    }

    /// Begins a life with an endpoint that was prepared.
    pub(crate) fn start_with(&mut self, host: usize, end: SimEndpoint) {
        self.network.checksums = end.config().crc;
        self.events.retain(|(of, _)| *of != host);
        self.hosts[host].end = Some(end);
        self.hosts[host].inbox.clear();
        self.hosts[host].unmarked.clear();
    }

    /// A host's endpoint is gone without a word.
    pub fn stop(&mut self, host: usize) {
        self.events.retain(|(of, _)| *of != host);
        self.hosts[host].end = None;
        self.hosts[host].inbox.clear();
    }

    /// Whether nothing will happen, and there is no event.
    pub(crate) fn is_quiet(&self) -> bool {
        self.events.is_empty() && self.queue.next_at().is_none()
    }

    /// The endpoint of a host.
    pub fn end(&self, host: usize) -> Option<&SimEndpoint> {
        self.hosts[host].end.as_ref()
    }

    /// Does something with the endpoint of a host.
    ///
    /// # Panics
    /// If the host has none.
    pub fn with<T>(&mut self, host: usize, act: impl FnOnce(&mut SimEndpoint, Instant) -> T) -> T {
        let end = self.hosts[host].end.as_mut().expect("the host has an endpoint");
        let result = act(end, self.now);
        self.pump(host);
        result
    }

    /// The host does nothing from now on, or goes on.
    pub fn sleep(&mut self, host: usize, asleep: bool) {
        self.hosts[host].asleep = asleep;
        if !asleep {
            for frame in core::mem::take(&mut self.hosts[host].inbox) {
                self.arrive(host, &frame);
            }
            self.pump(host);
        }
    }

    /// Cuts the way between two hosts, or mends it.
    pub fn cut(&mut self, one: usize, other: usize, is_cut: bool) {
        self.network.cut(one, other, is_cut);
    }

    /// From now on nothing is lost, late, doubled or damaged, and no way is cut.
    pub(crate) fn heal(&mut self) {
        self.network.heal(self.now);
        for host in 0..self.hosts.len() {
            (self.hosts[host].up_at, self.hosts[host].down_at) = (None, None);
            self.watch(host);
        }
    }

    /// [`Occurrence::Alarm`] has this number at that time.
    pub(crate) fn alarm(&mut self, at: Instant, number: u64) {
        self.queue.plan(at, Planned::Alarm(number));
    }

    /// Goes on until there is an event; None when nothing will happen any more, or nothing
    /// before `until`.
    pub fn next(&mut self, until: Instant) -> Option<Occurrence> {
        loop {
            if let Some((host, event)) = self.events.pop_front() {
                let kind = match &event {
                    Event::Sent(_, status) => status.context << 2,
                    Event::Received(_, status, _) => status.context << 2 | 1,
                    Event::Connected(_, Ok(())) => 2,
                    Event::Connected(_, Err(error)) => (*error as u64 + 1) << 2 | 2,
                    Event::Lost(_, error) => (*error as u64 + 1) << 2 | 3,
                };
                self.note([host as u64, kind, 1]);
                return Some(Occurrence::Event(host, event));
            }
            if self.queue.next_at().is_none_or(|at| at > until) {
                self.now = self.now.max(until);
                return None;
            }
            let (at, planned) = self.queue.take()?;
            self.now = self.now.max(at);
            match planned {
                Planned::Alarm(number) => return Some(Occurrence::Alarm(number)),
                Planned::Up(host) => self.reach_switch(host),
                Planned::Late(to, frame) => self.send_down(to, frame),
                Planned::Down(host) => self.reach_host(host),
                Planned::Timer(host) => self.fire(host, at),
                Planned::Room(host) => {
                    self.hosts[host].waits_for_room = false;
                    self.pump(host);
                }
            }
        }
    }

    fn reach_switch(&mut self, host: usize) {
        self.hosts[host].up_at = None;
        while let Some((_, frame)) = self.network.up[host].receive(self.now) {
            match self.network.forward(host, frame) {
                Some((to, Duration::ZERO, frame)) => self.send_down(to, frame),
                Some((to, late, frame)) => {
                    self.queue.plan(self.now + late, Planned::Late(to, frame));
                }
                None => {}
            }
        }
        self.watch(host);
    }

    fn send_down(&mut self, to: usize, frame: Bytes) {
        // Frames that find no room are counted by the link.
        let _ = self.network.down[to].send(self.now, frame);
        self.watch(to);
    }

    fn reach_host(&mut self, host: usize) {
        self.hosts[host].down_at = None;
        while let Some((_, frame)) = self.network.down[host].receive(self.now) {
            if self.hosts[host].asleep {
                self.hosts[host].inbox.push(frame);
            } else {
                self.arrive(host, &frame);
            }
        }
        self.watch(host);
        self.pump(host);
    }

    fn arrive(&mut self, host: usize, frame: &Bytes) {
        let Some(end) = self.hosts[host].end.as_mut() else { return };
        let from = NicId(*frame[6..].first_chunk().expect("frames have two addresses"));
        end.handle_frame(self.now, from, &frame[ETHERNET..]);
        self.counts.arrived += 1;
        // The mark may be taken away, which changes nothing else.
        let flags = frame[ETHERNET + 1] & !mx::wire::FLAG_MARK;
        let sample = [host as u64, frame.len() as u64, u64::from(flags)];
        self.note(sample);
    }

    fn fire(&mut self, host: usize, at: Instant) {
        if self.hosts[host].timer != Some(at) {
            return;
        }
        self.hosts[host].timer = None;
        if let Host { end: Some(end), asleep: false, .. } = &mut self.hosts[host] {
            end.handle_timeout(self.now);
            self.counts.expired += 1;
        }
        self.pump(host);
    }

    /// Takes what an endpoint wants to send, and its events, and sets its timer.
    fn pump(&mut self, host: usize) {
        let Host { end: Some(end), asleep: false, unmarked, .. } = &mut self.hosts[host] else {
            return;
        };
        let link = &mut self.network.up[host];
        while link.free_at() <= self.now + RING {
            let Some(out) = end.transmit(self.now, &mut self.buffer[ETHERNET..]) else {
                // No frame of a lost peer is waited for.
                unmarked.retain(|_, peer| end.has_peer(*peer));
                self.counts.unmarked += unmarked.len() as u64;
                unmarked.clear();
                break;
            };
            if out.marked {
                unmarked.remove(&out.to);
            } else if marks::is_waited_for(end.config(), &self.buffer[ETHERNET..][..out.length]) {
                let is_it = |id: &PeerId| end.address_of(*id).is_some_and(|it| it.nic == out.to);
                let peer = end.peers().find(is_it);
                unmarked.extend(peer.map(|peer| (out.to, peer)));
            }
            self.buffer[..6].copy_from_slice(&out.to.0);
            self.buffer[6..12].copy_from_slice(&end.address().nic.0);
            self.buffer[12..14].copy_from_slice(&mx::wire::ETHER_TYPE.to_be_bytes());
            self.counts.sent += 1;
            self.counts.sent_bytes += out.length as u64;
            // What is lost on the way is lost.
            let _ =
                link.send(self.now, Bytes::copy_from_slice(&self.buffer[..ETHERNET + out.length]));
        }
        let room_at = link.free_at();
        while let Some(event) = end.poll_event() {
            self.events.push_back((host, event));
        }
        let state = &mut self.hosts[host];
        if room_at > self.now + RING && !state.waits_for_room {
            state.waits_for_room = true;
            self.queue.plan(
                Instant::from_nanos(room_at.as_nanos() - RING.as_nanos()),
                Planned::Room(host),
            );
        }
        let deadline = state.end.as_ref().and_then(SimEndpoint::deadline);
        if let Some(at) = deadline
            && state.timer.is_none_or(|timer| timer > at)
        {
            state.timer = Some(at);
            self.queue.plan(at, Planned::Timer(host));
        }
        self.watch(host);
    }

    /// Looks at the cables of a host when the next frame arrives there.
    fn watch(&mut self, host: usize) {
        let state = &mut self.hosts[host];
        for (link, watched, planned) in [
            (&self.network.up[host], &mut state.up_at, Planned::Up(host)),
            (&self.network.down[host], &mut state.down_at, Planned::Down(host)),
        ] {
            if let Some(at) = link.next_arrival()
                && watched.is_none_or(|watched| watched > at)
            {
                *watched = Some(at);
                self.queue.plan(at, planned);
            }
        }
    }

    fn note(&mut self, values: [u64; 3]) {
        for value in values.into_iter().chain([self.now.as_nanos()]) {
            self.hash = (self.hash ^ value).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

//! What joins hosts: a cable between two, a switch with a cable to each where there are more.
//!
//! Cables are [`Link`]s: a frame occupies the wire for as long as its bits take, and may be lost,
//! doubled or overtaken. All the latency is on the way up, so that what a cable down holds is the
//! queue of the switch's port.

use alloc::vec::Vec;

use base::prng::Prng;
use base::time::{Duration, Instant};
use mx::address::NicId;
use network::link::{Dropped, Link, LinkSettings};
use network::switch::{Destination, Switch};

use crate::frame::Frame;
use crate::stack::mx::{host_of, nic_of};

/// The network of a model.
#[derive(Debug)]
pub(crate) struct Network {
    /// From each host.
    up: Vec<Link<Frame>>,
    /// To each host, where there is a switch.
    down: Vec<Link<Frame>>,
    switch: Switch,
    /// Frames for each host that were lost on a cable, or found no room in the switch.
    lost: Vec<u64>,
}

/// Frames that a cable up holds: what is sent and what travels.
const UP: usize = 1 << 16;

/// Where frames have come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A frame may have reached the switch from this host.
    Switch(usize),
    /// A frame may have reached this host.
    Host(usize),
}

impl Network {
    /// Cables with these settings, whose seeds `random` draws; a port of the switch queues `queue`
    /// frames.
    pub(crate) fn new(hosts: usize, cable: &LinkSettings, queue: usize, random: &mut Prng) -> Self {
        let mut links = |count, latency, capacity| -> Vec<_> {
            let settings = |seed| LinkSettings { latency, seed, ..cable.clone() };
            (0..count).map(|_| Link::new(settings(random.next_u64()), capacity)).collect()
        };
        let up = links(hosts, cable.latency, UP);
        let switched = if hosts > 2 { hosts } else { 0 };
        let down = links(switched, Duration::ZERO, queue);
        // Hosts have been heard of: what is sent to one goes to no others.
        let mut switch = Switch::new(hosts);
        for host in 0..hosts {
            let mut hello = [0xff; 12];
            hello[6..].copy_from_slice(&nic_of(host).0);
            switch.forward(host, &hello);
        }
        Self { up, down, switch, lost: (0..hosts).map(|_| 0).collect() }
    }

    /// A host sends a frame; where it will be seen next.
    pub(crate) fn send(&mut self, now: Instant, host: usize, frame: Frame) -> End {
        let bytes = frame.length();
        if let Err(dropped) = self.up[host].send_sized(now, frame, bytes) {
            self.count(dropped);
        }
        if self.down.is_empty() { End::Host(1 - host) } else { End::Switch(host) }
    }

    /// When the cable of a host has sent all that it was given.
    pub(crate) fn free_at(&self, host: usize) -> Instant {
        self.up[host].free_at()
    }

    /// When the next frame comes to an end.
    pub(crate) fn next_arrival(&self, end: End) -> Option<Instant> {
        self.link(end).next_arrival()
    }

    fn link(&self, end: End) -> &Link<Frame> {
        match end {
            End::Switch(host) => &self.up[host],
            End::Host(host) if self.down.is_empty() => &self.up[1 - host],
            End::Host(host) => &self.down[host],
        }
    }

    /// Takes a frame that has reached a host.
    pub(crate) fn receive(&mut self, now: Instant, host: usize) -> Option<Frame> {
        let link = if self.down.is_empty() { &mut self.up[1 - host] } else { &mut self.down[host] };
        link.receive(now).map(|(_, frame)| frame)
    }

    /// The switch forwards what has come from a host; the hosts to whose cables something was
    /// added.
    pub(crate) fn forward(&mut self, now: Instant, from: usize, touched: &mut Vec<usize>) {
        while let Some((_, frame)) = self.up[from].receive(now) {
            let mut send = |to: usize, frame: Frame| {
                let bytes = frame.length();
                let sent = self.down[to].send_sized(now, frame, bytes);
                self.lost[to] += u64::from(sent.is_err());
                touched.push(to);
            };
            match self.switch.forward(from, frame.head()) {
                Destination::Port(to) => send(to, frame),
                Destination::Others => {
                    let others = (0..self.up.len()).filter(|to| *to != from);
                    others.for_each(|to| send(to, frame.clone()));
                }
                Destination::Nowhere => {}
            }
        }
    }

    fn count(&mut self, dropped: Dropped<Frame>) {
        let frame = dropped.into_frame();
        let to = frame.head().first_chunk().and_then(|nic| host_of(NicId(*nic)));
        if let Some(lost) = to.and_then(|to| self.lost.get_mut(to)) {
            *lost += 1;
        }
    }

    /// Frames for a host that were lost on a cable, or found no room in the switch.
    pub(crate) fn lost(&self, host: usize) -> u64 {
        self.lost[host]
    }

    /// Frames that cables and the switch hold.
    pub(crate) fn in_flight(&self) -> usize {
        self.up.iter().chain(&self.down).map(Link::in_flight).sum()
    }
}

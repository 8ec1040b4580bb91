//! Hosts, their cores, and the network between them, in simulated time.
//!
//! # Theory of operation
//!
//! ```text
//! process ──send──▶ NIC ──cable──▶ NIC: DMA, moderation ──interrupt──▶ handler ──▶ softirq: poll
//!    ▲                                                                                  │
//!    └──────────────── ring or socket ◀──── handler of the protocol, packet by packet ◀─┘
//! ```
//!
//! Everything that happens is an event of one [calendar](Calendar); what happens at one moment
//! happens in the order in which it was planned, and all randomness comes from one seed, so that a
//! seed is a run. A core does one thing at a time, for as long as the [machine](Machine) says, and
//! has done it when that time has passed. What it finds to do next depends on what is there then: a
//! poll finds packets that came while it was busy, which is how hosts absorb interrupts.

mod cores;
mod host;
mod napi;

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::mem::take;

use base::calendar::Calendar;
use base::prng::Prng;
use base::time::{Duration, Instant};
use network::link::LinkSettings;
use nic::moderation::Moderation;

use crate::cpu;
use crate::device::{Cause, Device, NicSettings};
use crate::frame::Frame;
use crate::machine::{Costs, Machine};
use crate::napi::NapiInstance;
use crate::network::{End, Network};
use crate::stack::Stack;
use crate::watch::Watch;
pub use host::Host;
use host::ProcessState;

/// How far ahead of its cable a host fills its NIC, at most: the limit that byte queue limits
/// (`lib/dynamic_queue_limits.c`) settle at is a few frames of the MTU.
const QUEUED: Duration = Duration::from_micros(30);

/// What a simulation is made of, beside its stacks.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What hosts are like.
    pub machine: Machine,
    /// The NIC of each host and what things cost there; the last one is that of all that follow.
    pub hosts: Vec<(NicSettings, Costs)>,
    /// Faults of the cables; rate and latency are the machine's.
    pub faults: LinkSettings,
    /// Frames that a port of the switch queues.
    pub switch_queue: usize,
    /// Where everything random comes from.
    pub seed: u64,
}

/// What happens at a host. It is small, since a calendar of many hosts is long.
#[derive(Clone, Copy, Debug)]
enum HostEvent {
    /// A frame may have reached it.
    Arrival,
    /// A frame may have reached the switch from it.
    Forward,
    /// Its NIC has something to do.
    Nic,
    /// Its cable has sent a frame.
    Sent,
    /// A core, awake by now, takes an interrupt.
    Interrupt(u16, Cause),
    /// What ran on a core ends, if it still has this number.
    Core(u16, u32),
    /// The time of one of its programs or protocols has come.
    Timer,
    /// Its NIC has room again.
    Room,
    /// The timer of the NAPI instance of a queue.
    Napi(u16),
}

/// An event and the number of its host.
type Occurrence = (u32, HostEvent);

/// Hosts and a network.
pub struct Simulation<S: Stack, O = ()> {
    now: Instant,
    calendar: Calendar<Occurrence>,
    events: u64,
    /// The hosts, by number.
    pub hosts: Vec<Host<S, O>>,
    network: Network,
    machine: Machine,
    random: Prng,
    touched: Vec<usize>,
    /// For the bytes of a frame.
    place: Vec<u8>,
    end_at: [Vec<Option<Instant>>; 2],
}

impl<S: Stack, O: Watch> Simulation<S, O> {
    /// A world at its beginning, of hosts with these stacks, each with what observes its NIC.
    pub fn new(settings: &Settings, stacks: impl IntoIterator<Item = (S, O)>) -> Self {
        let Settings { machine, hosts, faults, switch_queue, seed } = settings;
        let mut random = Prng::new(*seed);
        let usual = (NicSettings::default(), machine.constants.costs);
        let host = |(number, (stack, observer)): (usize, (S, O))| {
            let (nic, costs) = hosts.get(number).or(hosts.last()).unwrap_or(&usual);
            let device = Device::new(machine, (nic, costs), random.next_u64(), observer);
            let bound_to = stack.processes().iter().map(|process| process.core % machine.cores);
            Host {
                homes: bound_to
                    .clone()
                    .chain(nic.napi.thread.map(|_| machine.cores - 1))
                    .collect::<BTreeSet<_>>()
                    .into_iter()
                    .collect(),
                costs: *costs,
                cores: cpu::cores(machine.cores, bound_to),
                states: stack.processes().iter().map(|_| ProcessState::default()).collect(),
                polls: (0..device.queues()).map(|_| None).collect(),
                napi: nic.napi,
                instances: alloc::vec![NapiInstance::default(); device.queues()],
                turn: (*seed as usize % 1_000 * 3 + number * 5) % machine.cores,
                stack,
                device,
                last_core: 0,
                transmitted: 0,
                cleaned_on: None,
                nic_at: None,
                timer_at: None,
                room_at: None,
                polled: 0,
            }
        };
        let hosts: Vec<_> = stacks.into_iter().enumerate().map(host).collect();
        let cable = LinkSettings {
            rate_mbit: Some(machine.link.rate_mbit),
            latency: Duration::from_nanos(machine.link.latency_ns.into()),
            ..faults.clone()
        };
        let mut world = Self {
            now: Instant::ZERO,
            calendar: Calendar::default(),
            events: 0,
            network: Network::new(hosts.len(), &cable, *switch_queue, &mut random),
            end_at: [(); 2].map(|()| (0..hosts.len()).map(|_| None).collect()),
            hosts,
            machine: machine.clone(),
            random,
            touched: Vec::new(),
            place: Vec::new(),
        };
        for host in 0..world.hosts.len() {
            world.start_threads(host);
            world.settle(host, None);
        }
        world
    }

    /// The present moment.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Events so far.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// Frames for a host that were lost on a cable, or found no room in the switch.
    pub fn lost(&self, host: usize) -> u64 {
        self.network.lost(host)
    }

    /// Frames that cables, the switch and the rings of NICs hold.
    pub fn queued(&self) -> usize {
        let rings = self.hosts.iter().map(|host| host.device.queued());
        self.network.in_flight() + rings.sum::<usize>()
    }

    /// Changes the setting of the NIC of a host, whatever is pending.
    pub fn set_moderation(&mut self, host: usize, moderation: Moderation) {
        self.hosts[host].device.set_moderation(self.now, moderation);
        self.settle(host, None);
    }

    /// Goes on up to `until`.
    pub fn run(&mut self, until: Instant) {
        while self.calendar.next_at().is_some_and(|at| at <= until) {
            let Some((at, (host, event))) = self.calendar.take() else { break };
            self.now = self.now.max(at);
            self.events += 1;
            self.handle(host as usize, event);
        }
        self.now = self.now.max(until);
    }

    fn plan(&mut self, at: Instant, host: usize, event: HostEvent) {
        self.calendar.plan(at, (host as u32, event));
    }

    fn handle(&mut self, host: usize, event: HostEvent) {
        match event {
            HostEvent::Forward => {
                self.end_at[1][host] = None;
                let mut touched = take(&mut self.touched);
                self.network.forward(self.now, host, &mut touched);
                touched.drain(..).for_each(|to| self.watch(End::Host(to)));
                self.touched = touched;
                self.watch(End::Switch(host));
            }
            HostEvent::Arrival => {
                self.end_at[0][host] = None;
                while let Some(frame) = self.network.receive(self.now, host) {
                    self.hosts[host].device.receive(self.now, frame, &mut self.place);
                }
                self.hosts[host].device.advance(self.now);
                self.watch(End::Host(host));
                self.settle(host, None);
            }
            HostEvent::Nic => {
                if self.hosts[host].nic_at == Some(self.now) {
                    self.hosts[host].nic_at = None;
                }
                self.hosts[host].device.advance(self.now);
                self.settle(host, None);
            }
            HostEvent::Sent => {
                self.hosts[host].transmitted += 1;
                self.hosts[host].device.transmitted(self.now);
                self.settle(host, None);
            }
            HostEvent::Interrupt(core, cause) => {
                self.interrupt(host, core.into(), cause);
                self.settle(host, None);
            }
            HostEvent::Core(core, number) => {
                let core = usize::from(core);
                if self.hosts[host].cores[core].number == number {
                    self.ended(host, core);
                    self.settle(host, Some(core));
                }
            }
            HostEvent::Timer => {
                self.hosts[host].timer_at = None;
                self.settle(host, None);
            }
            HostEvent::Napi(queue) => {
                self.napi_timer(host, queue.into());
                self.settle(host, None);
            }
            HostEvent::Room => {
                self.hosts[host].room_at = None;
                let core = self.hosts[host].last_core;
                self.send_in_softirq(host, core);
                self.settle(host, Some(core));
            }
        }
    }

    /// Looks at a cable when the next frame comes to its end.
    fn watch(&mut self, end: End) {
        let (kind, host, event) = match end {
            End::Host(host) => (0, host, HostEvent::Arrival),
            End::Switch(host) => (1, host, HostEvent::Forward),
        };
        let watched = &mut self.end_at[kind][host];
        if let Some(at) = self.network.next_arrival(end)
            && watched.is_none_or(|watched| watched > at)
        {
            *watched = Some(at);
            self.plan(at, host, event);
        }
    }

    /// Delivers interrupts, lets `core` and those with processes find work if they are idle, and
    /// plans what comes by itself.
    fn settle(&mut self, host: usize, core: Option<usize>) {
        loop {
            while let Some(cause) = self.hosts[host].device.take_interrupt() {
                self.signal(host, cause);
            }
            if let Some(core) = core {
                self.dispatch(host, core);
            }
            for home in 0..self.hosts[host].homes.len() {
                self.dispatch(host, self.hosts[host].homes[home]);
            }
            match self.hosts[host].device.take_interrupt() {
                Some(cause) => self.signal(host, cause),
                None => break,
            }
        }
        let Host { device, nic_at, timer_at, stack, .. } = &mut self.hosts[host];
        if let Some(at) = device.deadline().map(|at| at.max(self.now))
            && nic_at.is_none_or(|planned| at < planned)
        {
            *nic_at = Some(at);
            self.calendar.plan(at, (host as u32, HostEvent::Nic));
        }
        if let Some(at) = stack.deadline(self.now)
            && timer_at.is_none_or(|planned| at < planned)
        {
            *timer_at = Some(at);
            self.calendar.plan(at, (host as u32, HostEvent::Timer));
        }
    }

    /// Whether the NIC takes a frame; plans to look again if it does not.
    fn may_send(&mut self, host: usize) -> bool {
        let room_at = self.network.free_at(host);
        if room_at <= self.now + QUEUED {
            return true;
        }
        let planned = &mut self.hosts[host].room_at;
        if planned.is_none() {
            let at = Instant::from_nanos(room_at.as_nanos() - QUEUED.as_nanos());
            *planned = Some(at);
            self.plan(at, host, HostEvent::Room);
        }
        false
    }

    /// A frame may leave, after those that were written before it.
    fn leave(&mut self, host: usize, process: usize, number: u64, frame: Frame) {
        let order = &mut self.hosts[host].states[process].order;
        if let Some((_, place)) = order.iter_mut().find(|(of, _)| *of == number) {
            *place = Some(frame);
        }
        loop {
            let order = &mut self.hosts[host].states[process].order;
            let Some(frame) = order.front_mut().and_then(|(_, frame)| frame.take()) else { break };
            order.pop_front();
            self.transmit(host, frame);
        }
    }

    /// A frame leaves the memory of a host.
    fn transmit(&mut self, host: usize, frame: Frame) {
        let fetch = self.hosts[host].costs.dma_engine().transfer(frame.length() as u32);
        let on_wire = self.machine.link.on_wire(frame.length());
        // A NIC that fetches more slowly than its cable sends is waited for.
        let waits = Duration::from_nanos(fetch.as_nanos().saturating_sub(on_wire.as_nanos()));
        let begins = self.network.free_at(host).max(self.now) + waits;
        let end = self.network.send(begins, host, frame);
        if !self.hosts[host].device.is_silent() {
            let sent = self.network.free_at(host).max(self.now);
            self.plan(sent, host, HostEvent::Sent);
        }
        self.watch(end);
    }
}

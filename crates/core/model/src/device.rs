//! The NIC of a host: its receive queues, and what its transmissions do.

use alloc::vec::Vec;

use base::time::Instant;
use nic::claim::{ClaimQueue, Claimed};
use nic::counters::Counters;
use nic::descriptor::Descriptor;
use nic::headers;
use nic::lanes::Lanes;
use nic::marker::Rules;
use nic::moderation::{Interrupt, Moderation, Unseen};
use nic::observer::Observer;
use nic::port::{Port, PortSettings};
use nic::queue::{Dma, Queue};
use nic::vector::Vector;

use crate::frame::Frame;
use crate::machine::{Completions, Costs, Machine, Transmissions};
use crate::napi::NapiSettings;

/// What an interrupt asks of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// To poll the queue of this number.
    Queue(u16),
    /// To clean up transmissions.
    Transmissions,
}

/// How the NICs of a model are set.
#[derive(Clone, Debug)]
pub struct NicSettings {
    /// The setting of every queue.
    pub moderation: Moderation,
    /// Which frames are marked.
    pub rules: Rules,
    /// Which frames have a queue of their own, where completions are not reported.
    pub lanes: Lanes,
    /// Receive queues, at least 1; one where completions are reported.
    pub queues: u16,
    /// Packets that one queue's ring holds.
    pub ring: usize,
    /// Where the phases of free-running ticks come from; without it, from the simulation's seed.
    pub tick_seed: Option<u64>,
    /// How the kernel of the host polls it, and programs there.
    pub napi: NapiSettings,
}

impl Default for NicSettings {
    fn default() -> Self {
        let PortSettings { moderation, rules, queues, ring, .. } = PortSettings::default();
        let (lanes, napi) = (Lanes::NONE, NapiSettings::default());
        Self { moderation, rules, lanes, queues, ring, tick_seed: None, napi }
    }
}

#[derive(Debug)]
enum ReceiveSide {
    Port(Port<Frame>),
    Claims { queue: ClaimQueue<Frame>, rules: Rules, dma: Dma, dma_free_at: Instant },
}

/// The vector of completed transmissions, where they have one of their own.
#[derive(Debug)]
struct TransmitVector {
    vector: Vector,
    is_raised: bool,
    counters: Counters,
}

impl TransmitVector {
    fn note(&mut self, interrupt: Interrupt) {
        let Some(reason) = interrupt else { return };
        self.is_raised = true;
        self.counters.interrupts[reason as usize] += 1;
    }
}

/// The NIC of a host, which reports to an observer.
#[derive(Debug)]
pub struct Device<O> {
    receiver: ReceiveSide,
    transmissions: Option<TransmitVector>,
    is_silent: bool,
    /// What hears of interrupts and deliveries.
    pub observer: O,
}

/// Gives each queue its part of a setting: those of lanes interrupt at once.
fn set_queues(
    port: &mut Port<Frame>,
    now: Instant,
    moderation: Moderation,
    observer: &mut impl Observer,
) {
    for at in 0..port.queues().len() {
        let moderation = moderation.of_queue(port.is_lane(at as u16));
        port.queues_mut()[at].set_moderation(now, moderation, observer);
    }
}

impl<O: Observer> Device<O> {
    pub(crate) fn new(
        machine: &Machine,
        (settings, costs): (&NicSettings, &Costs),
        seed: u64,
        mut observer: O,
    ) -> Self {
        let NicSettings { moderation, ref rules, ref lanes, queues, ring, tick_seed, .. } =
            *settings;
        let (now, rules) = (Instant::ZERO, rules.clone());
        let dma = costs.dma_engine();
        let transmissions = machine.nic.transmissions;
        let own = transmissions == Transmissions::Own;
        let at_once = machine.nic.completions == Completions::AtOnce;
        let receiver = if at_once {
            let transmit_interrupts = transmissions == Transmissions::Shared;
            let tick_seed = tick_seed.or(Some(seed));
            let settings = PortSettings {
                queues,
                ring,
                moderation,
                rules,
                dma,
                transmit_interrupts,
                tick_seed,
            };
            let mut port = Port::new(settings, now);
            // Lanes that it has no queues for are refused before; without them, all are alike.
            if port.set_lanes(lanes.clone()).is_ok() && *lanes != Lanes::NONE {
                set_queues(&mut port, now, moderation, &mut observer);
            }
            ReceiveSide::Port(port)
        } else {
            let queue = ClaimQueue::new(ring, moderation, own, now);
            ReceiveSide::Claims { queue, rules, dma, dma_free_at: now }
        };
        let vector = || TransmitVector {
            vector: Vector::new(moderation, now),
            is_raised: false,
            counters: Counters::default(),
        };
        Self {
            receiver,
            transmissions: (own && at_once).then(vector),
            is_silent: transmissions == Transmissions::Silent,
            observer,
        }
    }

    pub(crate) fn queues(&self) -> usize {
        match &self.receiver {
            ReceiveSide::Port(port) => port.queues().len(),
            ReceiveSide::Claims { .. } => 1,
        }
    }

    /// Whether completed transmissions never interrupt.
    pub(crate) const fn is_silent(&self) -> bool {
        self.is_silent
    }

    /// A frame that finds no room is counted, and gone. `place` is for its bytes.
    pub(crate) fn receive(&mut self, now: Instant, frame: Frame, place: &mut Vec<u8>) {
        let parsed = headers::parse(frame.whole(place));
        match &mut self.receiver {
            ReceiveSide::Port(port) => {
                let length = frame.length();
                drop(port.receive_sized(now, frame, length, |_| parsed, None));
            }
            ReceiveSide::Claims { queue, rules, dma, dma_free_at } => {
                let length = frame.length() as u32;
                let marked = parsed.is_ok_and(|it| rules.classify(&it).mark);
                *dma_free_at = (*dma_free_at).max(now) + dma.transfer(length);
                let completed_at = *dma_free_at + dma.latency;
                let descriptor = Descriptor { length, marked, arrived_at: now, completed_at };
                drop(queue.arrive(now, descriptor, frame));
            }
        }
    }

    pub(crate) fn transmitted(&mut self, now: Instant) {
        if let Some(own) = &mut self.transmissions {
            let interrupt = own.vector.transmit_completed(now);
            return own.note(interrupt);
        }
        match &mut self.receiver {
            ReceiveSide::Port(port) => port.transmitted(now, &mut self.observer),
            ReceiveSide::Claims { queue, .. } => queue.transmit_completed(now, &mut self.observer),
        }
    }

    pub(crate) fn advance(&mut self, now: Instant) {
        match &mut self.receiver {
            ReceiveSide::Port(port) => port.advance(now, &mut self.observer),
            ReceiveSide::Claims { queue, .. } => queue.advance(now, &mut self.observer),
        }
        if let Some(own) = &mut self.transmissions {
            let interrupt = own.vector.advance(now);
            own.note(interrupt);
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let receiver = match &self.receiver {
            ReceiveSide::Port(port) => port.deadline(),
            ReceiveSide::Claims { queue, .. } => queue.deadline(),
        };
        let own = self.transmissions.as_ref().and_then(|own| own.vector.deadline());
        [receiver, own].into_iter().flatten().min()
    }

    /// An interrupt that was raised and not taken yet.
    pub(crate) fn take_interrupt(&mut self) -> Option<Cause> {
        if let Some(own) = &mut self.transmissions
            && core::mem::take(&mut own.is_raised)
        {
            return Some(Cause::Transmissions);
        }
        match &mut self.receiver {
            ReceiveSide::Port(port) => {
                let queue = port.queues_mut().iter_mut().position(Queue::take_interrupt)?;
                Some(Cause::Queue(queue as u16))
            }
            ReceiveSide::Claims { queue, .. } => Some(match queue.take_interrupt()? {
                Claimed::Poll => Cause::Queue(0),
                Claimed::Transmissions => Cause::Transmissions,
            }),
        }
    }

    /// The handler of an interrupt has ended: with its poll begun, or transmissions cleaned up.
    pub(crate) fn handled(&mut self, now: Instant, cause: Cause) {
        if let ReceiveSide::Claims { queue, .. } = &mut self.receiver {
            queue.handled(now, &mut self.observer);
        }
        if let (Cause::Transmissions, Some(own)) = (cause, &mut self.transmissions) {
            let interrupt = own.vector.rearm(now, &Unseen::default());
            own.note(interrupt);
        }
    }

    /// The host takes a packet of a queue.
    pub(crate) fn poll(&mut self, now: Instant, queue: usize) -> Option<Frame> {
        self.advance(now);
        match &mut self.receiver {
            ReceiveSide::Port(port) => {
                let mut taken = None;
                let take = |_: &_, frame| taken = Some(frame);
                port.queues_mut()[queue].poll(now, 1, &mut self.observer, take);
                taken
            }
            ReceiveSide::Claims { queue, .. } => queue.poll(now, &mut self.observer),
        }
    }

    /// The host has polled until a queue was empty.
    pub(crate) fn rearm(&mut self, now: Instant, queue: usize) {
        match &mut self.receiver {
            ReceiveSide::Port(port) => port.queues_mut()[queue].rearm(now, &mut self.observer),
            ReceiveSide::Claims { queue, .. } => queue.rearm(now, &mut self.observer),
        }
    }

    /// Changes the setting of every queue, whatever is pending.
    pub(crate) fn set_moderation(&mut self, now: Instant, moderation: Moderation) {
        match &mut self.receiver {
            ReceiveSide::Port(port) => {
                set_queues(port, now, moderation, &mut self.observer);
            }
            ReceiveSide::Claims { queue, .. } => {
                queue.set_moderation(now, moderation, &mut self.observer);
            }
        }
        if let Some(own) = &mut self.transmissions {
            let unseen = Unseen::default();
            let interrupt = own.vector.set_moderation(now, moderation, &unseen);
            own.note(interrupt);
        }
    }

    /// Packets in its rings.
    pub(crate) fn queued(&self) -> usize {
        match &self.receiver {
            ReceiveSide::Port(port) => port.queues().iter().map(Queue::in_ring).sum(),
            ReceiveSide::Claims { queue, .. } => queue.in_ring(),
        }
    }

    /// What its queues, and the vector of transmissions, have counted.
    pub fn counters(&self) -> Counters {
        let queues = match &self.receiver {
            ReceiveSide::Port(port) => port.counters(),
            ReceiveSide::Claims { queue, .. } => *queue.counters(),
        };
        self.transmissions.as_ref().map_or(queues, |own| queues + own.counters)
    }
}

//! An adaptive virtual function: registers, admin queues, queue pairs and vectors, as Linux's
//! `iavf` finds them.
//!
//! On a card there is a driver of a physical function behind the admin queues. Here it is this
//! module: it answers each message of virtchnl at once, in the order of their coming.
//!
//! ```text
//!   registers ─▶ admin queues ─▶ virtchnl ─▶ channel ─▶ queues, vectors, filters, steering
//!   frame ─▶ steering: which queue? ─▶ filters ─▶ receive ─▶ vector of the queue
//! ```

mod admin;
mod channel;
mod checks;
mod filters;
mod flow;
mod receive;
mod register;
mod statistics;
mod steering;
mod transmit;
mod vector;
mod virtchnl;

use base::time::{Duration, Instant};
use hostside::Route;
use vhost::transport::memory::MemoryError;

use super::configuration::{Configuration, Identity};
use super::dma::Dma;
use super::function::{PciFunction, Raised, Sent};
use super::message::Signal;
use super::model::REGISTERS;
use admin::{Admin, AdminMessage};
use filters::Filters;
use flow::Action;
use receive::{Description, Receive};
pub(crate) use register::MAX_PAIRS;
use register::{self as r, index};
use statistics::Statistics;
use steering::QueueChoice;
use transmit::Transmit;
use vector::{NO_ITR, Vector};

/// The vector of the admin queue; those of queues follow.
const ADMIN: usize = 0;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Properties {
    /// Queue pairs, 1 to [`MAX_PAIRS`].
    pub pairs: u16,
    pub mac: [u8; 6],
    /// The speed of its link, in Mbit/s.
    pub speed_mbit: u32,
}

/// A vector, and the index of the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wire {
    vector: usize,
    index: usize,
}

#[derive(Debug, Default)]
struct QueuePair {
    receive: Receive,
    transmit: Transmit,
    receive_wire: Option<Wire>,
    transmit_wire: Option<Wire>,
}

/// What a reset forgets.
#[derive(Debug)]
struct ResetState {
    admin: Admin,
    /// `ICR0` and `ICR0_ENA`.
    causes: u32,
    enabled_causes: u32,
    vectors: Vec<Vector>,
    pairs: Vec<QueuePair>,
    filters: Filters,
    strips_tags: bool,
    steering: QueueChoice,
    capabilities: u32,
    statistics: Statistics,
}

impl ResetState {
    fn new(pairs: u16) -> Self {
        Self {
            admin: Admin::default(),
            causes: 0,
            enabled_causes: 0,
            vectors: (0..=pairs).map(|_| Vector::new()).collect(),
            pairs: (0..pairs).map(|_| QueuePair::default()).collect(),
            filters: Filters::default(),
            strips_tags: true,
            steering: QueueChoice::new(),
            capabilities: 0,
            statistics: Statistics::default(),
        }
    }
}

#[derive(Debug)]
pub(crate) struct VirtualFunction {
    properties: Properties,
    configuration: Configuration,
    state: ResetState,
    link: bool,
    /// Vectors that have interrupted, in their order.
    fired: Vec<usize>,
    /// The transmit queue whose turn it is.
    turn: usize,
    too_long: u64,
    packet: Vec<u8>,
    /// Interrupts whose vectors were masked when they were due.
    signals: Vec<Signal>,
}

impl VirtualFunction {
    pub(crate) fn new(properties: Properties) -> Self {
        let pairs = properties.pairs.clamp(1, MAX_PAIRS);
        let identity = Identity {
            device: 0x1889,
            revision: 0,
            subsystem: 0,
            registers: REGISTERS,
            vectors: pairs as u8 + 1,
        };
        Self {
            properties: Properties { pairs, ..properties },
            configuration: Configuration::new(identity),
            state: ResetState::new(pairs),
            link: true,
            fired: Vec::new(),
            turn: 0,
            too_long: 0,
            packet: Vec::new(),
            signals: Vec::new(),
        }
    }

    /// Everything as after power, but for the PCI function and what the owner has still to take.
    fn reset(&mut self) {
        self.state = ResetState::new(self.properties.pairs);
    }

    fn signal_causes(&mut self) {
        if self.state.causes & self.state.enabled_causes != 0 {
            self.state.vectors[ADMIN].cause(NO_ITR);
        }
    }

    /// Whether a queue has a buffer, and the frame is not longer than its driver takes.
    fn takes(&self, queue: usize, frame: &[u8]) -> bool {
        let receive = self.state.pairs.get(queue).map(|pair| &pair.receive);
        receive.is_some_and(|receive| receive.room() > 0 && !receive.is_too_long(frame))
    }

    /// The frames of a queue are a cause of interrupts, by their interval.
    fn cause(&mut self, queue: usize) {
        let ResetState { pairs, vectors, .. } = &mut self.state;
        if let Some(wire) = pairs.get(queue).and_then(|pair| pair.receive_wire) {
            vectors[wire.vector].cause(wire.index);
        }
    }

    /// Writes a frame into buffers of a queue, and keeps it as written; whether there were enough.
    fn store(&mut self, queue: usize, frame: &[u8], memory: &dyn Dma) -> Result<bool, MemoryError> {
        let headers = nic::headers::parse(frame).ok();
        let ResetState { pairs, strips_tags, steering, .. } = &mut self.state;
        let Some(pair) = pairs.get_mut(queue) else { return Ok(false) };
        let description = Description {
            findings: checks::inspect(frame, headers.as_ref()),
            hash: headers.and_then(|headers| steering.hash(&headers)),
            tag: if *strips_tags { filters::tag(frame) } else { None },
        };
        let packet = &mut self.packet;
        packet.clear();
        packet.extend_from_slice(frame);
        if description.tag.is_some() {
            filters::strip(packet);
        }
        pair.receive.put(packet, &description, memory)
    }

    /// The receive queues whose wires are such, a bit for each.
    fn queues_of(&self, is_such: impl Fn(Wire) -> bool) -> u32 {
        let pairs = self.state.pairs.iter().enumerate();
        let such = pairs.filter(|(_, pair)| pair.receive_wire.is_some_and(&is_such));
        such.fold(0, |queues, (queue, _)| queues | 1 << queue)
    }
}

impl PciFunction for VirtualFunction {
    fn configuration(&mut self) -> &mut Configuration {
        &mut self.configuration
    }

    fn reconfigured(&mut self) {
        self.signals.extend(self.configuration.take_unmasked());
    }

    fn read(&mut self, at: u32) -> u32 {
        let ResetState { admin, causes, enabled_causes, vectors, pairs, .. } = &mut self.state;
        let count = pairs.len() as u16;
        match at {
            r::RSTAT => r::VFACTIVE,
            // It is cleared when it is read.
            r::ICR0 => std::mem::take(causes),
            r::ICR0_ENA => *enabled_causes,
            r::DYN_CTL0 => vectors[ADMIN].control(),
            r::ATQBAL => admin.sent.base as u32,
            r::ATQBAH => (admin.sent.base >> 32) as u32,
            r::ATQLEN => admin.sent.length,
            r::ATQH => admin.sent.head,
            r::ATQT => admin.sent.tail,
            r::ARQBAL => admin.received.base as u32,
            r::ARQBAH => (admin.received.base >> 32) as u32,
            r::ARQLEN => admin.received.length,
            r::ARQH => admin.received.head,
            r::ARQT => admin.received.tail,
            _ => {
                let control = index(at, r::DYN_CTLN, count).map(|it| vectors[it + 1].control());
                let tail = index(at, r::QTX_TAIL, count).map(|it| pairs[it].transmit.tail);
                let tail = tail.or(index(at, r::QRX_TAIL, count).map(|it| pairs[it].receive.tail));
                let interval = interval_at(at, count).map(|(it, to)| vectors[to].interval(it));
                control.or(tail).or(interval).unwrap_or(0)
            }
        }
    }

    fn write(&mut self, _: Instant, at: u32, value: u32) {
        let ResetState { admin, enabled_causes, vectors, pairs, .. } = &mut self.state;
        let count = pairs.len() as u16;
        let low = |base: u64| base & !0xFFFF_FFFF | u64::from(value);
        let high = |base: u64| base & 0xFFFF_FFFF | u64::from(value) << 32;
        match at {
            r::ICR0_ENA => {
                *enabled_causes = value;
                self.signal_causes();
            }
            r::DYN_CTL0 => vectors[ADMIN].set_control(value),
            r::ATQBAL => admin.sent.base = low(admin.sent.base),
            r::ATQBAH => admin.sent.base = high(admin.sent.base),
            r::ATQLEN => admin.sent.length = value,
            r::ATQH => admin.sent.head = value,
            r::ATQT => admin.ring(value),
            r::ARQBAL => admin.received.base = low(admin.received.base),
            r::ARQBAH => admin.received.base = high(admin.received.base),
            r::ARQLEN => admin.received.length = value,
            r::ARQH => admin.received.head = value,
            r::ARQT => admin.received.tail = value,
            _ => {
                if let Some(pair) = index(at, r::QTX_TAIL, count) {
                    pairs[pair].transmit.tail = value;
                } else if let Some(pair) = index(at, r::QRX_TAIL, count) {
                    pairs[pair].receive.tail = value;
                } else if let Some(vector) = index(at, r::DYN_CTLN, count) {
                    vectors[vector + 1].set_control(value);
                } else if let Some((interval, vector)) = interval_at(at, count) {
                    vectors[vector].set_interval(interval, value);
                }
            }
        }
    }

    fn attend(&mut self, memory: &dyn Dma) -> Result<(), MemoryError> {
        loop {
            if self.state.admin.flush(memory)? {
                self.state.causes |= r::ADMINQ;
                self.signal_causes();
            }
            let Some(message) = self.state.admin.take(memory)? else { return Ok(()) };
            self.carry_out(&message);
        }
    }

    fn set_link(&mut self, link: bool) {
        if std::mem::replace(&mut self.link, link) != link {
            self.announce_link();
        }
    }

    fn room(&self, queue: usize) -> usize {
        self.state.pairs.get(queue).map_or(0, |pair| pair.receive.room())
    }

    fn listens(&self) -> bool {
        self.link
    }

    fn route(&mut self, frame: &[u8]) -> Route {
        if !self.state.filters.accept(frame) {
            return Route::Nowhere;
        }
        match nic::headers::parse(frame).map(|headers| self.state.steering.choose(&headers)) {
            Ok(Action::Queue(queue)) => Route::Queue(queue),
            Ok(Action::Drop) => Route::Nowhere,
            Err(_) => Route::Queue(0),
        }
    }

    fn receive(
        &mut self,
        _: Instant,
        queue: usize,
        frame: &[u8],
        memory: &dyn Dma,
        is_cause: bool,
    ) -> Result<bool, MemoryError> {
        if self.takes(queue, frame) && self.store(queue, frame, memory)? {
            self.state.statistics.received(&self.packet);
            if is_cause {
                self.cause(queue);
            }
            return Ok(true);
        }
        self.miss(1);
        Ok(false)
    }

    fn notice(&mut self, _: Instant, queue: usize, frame: &[u8]) {
        if self.takes(queue, frame) {
            self.cause(queue);
        }
    }

    fn show(&mut self, frame: &[u8], memory: &dyn Dma) -> Result<bool, MemoryError> {
        let is_stored = self.store(0, frame, memory)?;
        if is_stored
            && let Some(wire) = self.state.pairs[0].receive_wire
            && self.state.vectors[wire.vector].announce()
        {
            self.signals.extend(self.configuration.message(wire.vector as u8));
        }
        Ok(is_stored)
    }

    fn miss(&mut self, frames: u32) {
        self.state.statistics.receive_discards += u64::from(frames);
    }

    fn transmit(
        &mut self,
        _: Instant,
        frame: &mut Vec<u8>,
        memory: &dyn Dma,
    ) -> Result<Sent, MemoryError> {
        let ResetState { pairs, vectors, statistics, .. } = &mut self.state;
        for _ in 0..pairs.len() {
            if !self.link {
                break;
            }
            let pair = &mut pairs[self.turn];
            let sent = pair.transmit.next(frame, memory)?;
            let too_long = std::mem::take(&mut pair.transmit.gathering.too_long);
            statistics.transmit_errors += too_long;
            self.too_long += too_long;
            let reported = std::mem::take(&mut pair.transmit.reported);
            if let Some(wire) = pair.transmit_wire.filter(|_| reported) {
                vectors[wire.vector].cause(wire.index);
            }
            match sent {
                Sent::Frame => statistics.sent(frame),
                Sent::More => {}
                Sent::Nothing => {
                    self.turn = (self.turn + 1) % pairs.len();
                    continue;
                }
            }
            return Ok(sent);
        }
        Ok(Sent::Nothing)
    }

    fn too_long(&self) -> u64 {
        self.too_long
    }

    fn pairs_used(&self) -> u16 {
        let used = self.state.pairs.iter().filter(|pair| pair.receive.is_enabled());
        used.count() as u16
    }

    fn interrupt_for_frames(&mut self, _: Instant, queue: usize) {
        let ResetState { pairs, vectors, .. } = &mut self.state;
        if let Some(wire) = pairs.get(queue).and_then(|pair| pair.receive_wire) {
            vectors[wire.vector].cause(NO_ITR);
        }
    }

    fn advance(&mut self, now: Instant) {
        for (number, vector) in self.state.vectors.iter_mut().enumerate() {
            if vector.take_interrupt(now) {
                self.fired.push(number);
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.state.vectors.iter().filter_map(Vector::deadline).min()
    }

    fn take_raised(&mut self) -> Vec<Raised> {
        let late = self.signals.drain(..).map(|signal| Raised { signal: Some(signal), queues: 0 });
        let mut raised: Vec<Raised> = late.collect();
        for vector in std::mem::take(&mut self.fired) {
            raised.push(Raised {
                signal: self.configuration.message(vector as u8),
                queues: self.queues_of(|wire| wire.vector == vector),
            });
        }
        raised
    }

    fn interval(&self, queue: usize) -> Duration {
        let ResetState { pairs, vectors, .. } = &self.state;
        let wire = pairs.get(queue).and_then(|pair| pair.receive_wire);
        wire.map_or(Duration::ZERO, |wire| vectors[wire.vector].gap(wire.index))
    }

    fn take_rearmed(&mut self) -> u32 {
        let rearmed: Vec<bool> = self.state.vectors.iter_mut().map(Vector::take_rearmed).collect();
        self.queues_of(|wire| rearmed[wire.vector])
    }
}

/// The interval whose register is at `at`, and its vector.
fn interval_at(at: u32, vectors: u16) -> Option<(usize, usize)> {
    let number = index(at, r::ITRN, 3 * MAX_PAIRS)?;
    let (interval, vector) = (number / usize::from(MAX_PAIRS), number % usize::from(MAX_PAIRS));
    (vector < vectors.into()).then_some((interval, vector + 1))
}

#[cfg(test)]
mod tests;

//! The device: a frontend whose ring 0 has commands of a PCI bus, ring 1 interrupts, and a PCI
//! function.

mod charged;
mod costs;

use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixListener;

use base::time::{Duration, Instant};
use hostside::charge::Outbox;
use hostside::processor::{Busy, Costs, Processor};
use hostside::trace::Watch;
use hostside::{Attachment, Fetched, HostSide, Route, Service, VirtualHost, discard};
use nic::moderation::TimerKind;
use nic::observer::Delivered;
use nic::port::Port;
use nic::queue::Queue;
use vhost::transport::frontend::Frontend;
use vhost::transport::message::{
    F_PROTOCOL_FEATURES, PROTOCOL_F_BACKEND_REQ, PROTOCOL_F_CONFIG,
    PROTOCOL_F_INBAND_NOTIFICATIONS, PROTOCOL_F_REPLY_ACK,
};
use vhost::transport::ring::{Chain, length};
use vhost::transport::session::{ProtocolViolation, SessionSettings, VERSION_1};

use super::adapter::Adapter;
use super::function::{PciFunction, Raised, Sent};
use super::message::{BusCommand, HEADER, MAX_DATA, Signal};
use charged::Charged;

const COMMANDS: usize = 0;
const INTERRUPTS: usize = 1;

/// Commands that are obeyed in one round: other ports wait meanwhile.
const BATCH: usize = 512;

/// Writes that have been carried out, and whose buffers no interrupt has reported to the guest:
/// a quarter of what its ring holds. Reads report them as well.
const MAX_POSTED: usize = 64;

/// How a device is made.
#[derive(Clone, Debug)]
pub struct DeviceSettings {
    /// The emulated adapter.
    pub adapter: Adapter,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Queue pairs of a virtual function, at most [`Adapter::max_pairs`]; cards have one.
    pub pairs: u16,
    /// The speed of a virtual function's link, in Mbit/s; cards have 1,000.
    pub speed_mbit: u32,
    /// Notifications are messages, and interrupts wait for the guest's turn: for guests in virtual
    /// time.
    pub inband: bool,
    /// How long an interrupt takes from the NIC to the guest, where it is a message.
    pub interrupt_latency: Duration,
    /// What the guest's kernel costs, where notifications are messages.
    pub costs: Costs,
}

impl DeviceSettings {
    /// The function, as after power.
    fn function(&self) -> Box<dyn PciFunction> {
        self.adapter.function(self.mac, self.pairs, self.speed_mbit)
    }

    /// Whether what the guest does costs time.
    fn has_costs(&self) -> bool {
        self.inband && !self.costs.are_zero()
    }

    fn session(&self) -> SessionSettings {
        let protocol = PROTOCOL_F_REPLY_ACK | PROTOCOL_F_BACKEND_REQ | PROTOCOL_F_CONFIG;
        let inband = if self.inband { PROTOCOL_F_INBAND_NOTIFICATIONS } else { 0 };
        SessionSettings {
            features: F_PROTOCOL_FEATURES | VERSION_1,
            protocol: protocol | inband,
            rings: 2,
            queue_number: 2,
            config: Vec::new(),
        }
    }
}

/// One of Intel's NICs that User-Mode Linux can connect to: the host's side of a port, which has as
/// many queues as the NIC.
#[derive(Debug)]
pub struct Device {
    settings: DeviceSettings,
    frontend: Frontend,
    function: Box<dyn PciFunction>,
    link: bool,
    /// For each queue: packets that are in the guest's buffers and that no interrupt has reported.
    shown: Vec<usize>,
    /// Interrupts on their way, and when they arrive.
    raised: VecDeque<(Instant, Signal)>,
    /// Those that have arrived and found no buffer on the guest's ring.
    waiting: Vec<Signal>,
    /// Writes whose completion the guest has not been called for.
    posted: usize,
    /// The guest's processor, if what it does costs time, and what it has still to pay for: frames
    /// that it sends, and what each queue has received.
    processor: Option<Processor<Vec<u8>>>,
    outbox: Outbox,
    charged: Vec<Charged>,
    /// Packets that the port had no room for, as far as the function has counted them.
    ring_full: u64,
    refused: u64,
    chain: Chain,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Device {
    /// A device that waits for a guest on `listener`.
    pub fn new(listener: UnixListener, settings: DeviceSettings) -> io::Result<Self> {
        let pairs = usize::from(settings.pairs.clamp(1, settings.adapter.max_pairs()));
        Ok(Self {
            frontend: Frontend::new(listener, settings.session())?,
            function: settings.function(),
            processor: settings.has_costs().then(|| Processor::new(settings.costs)),
            outbox: Outbox::default(),
            charged: (0..pairs).map(|_| Charged::default()).collect(),
            shown: vec![0; pairs],
            settings,
            link: true,
            raised: VecDeque::new(),
            waiting: Vec::new(),
            posted: 0,
            ring_full: 0,
            refused: 0,
            chain: Chain::default(),
            request: Vec::new(),
            answer: Vec::new(),
        })
    }

    /// Obeys what the guest's bus has asked for.
    fn obey(&mut self, now: Instant) -> Result<(), ProtocolViolation> {
        let Self { frontend, function, chain, request, answer, posted, .. } = self;
        let Some(session) = frontend.session() else { return Ok(()) };
        let Some(live) = session.ring(COMMANDS) else { return Ok(()) };
        let wrong = |error| ProtocolViolation::Ring(COMMANDS, error);
        for _ in 0..BATCH {
            chain.clear();
            let Some(head) = live.ring.take(live.memory, chain).map_err(wrong)? else { break };
            request.resize(length(&chain.readable).min((HEADER + MAX_DATA) as u64) as usize, 0);
            chain.read(live.memory, 0, request).map_err(ProtocolViolation::Dma)?;
            match BusCommand::parse(request) {
                Some(command) => {
                    function.obey(now, command, answer);
                    function.attend(live.memory).map_err(ProtocolViolation::Dma)?;
                }
                // As on a bus without such a device.
                None => answer.clear(),
            }
            let written = chain.write(live.memory, answer).map_err(ProtocolViolation::Dma)?;
            live.ring.add_used(head, written);
            *posted = if written == 0 { *posted + 1 } else { 0 };
        }
        live.ring.flush_used();
        if *posted > MAX_POSTED {
            *posted = 0;
            frontend.call(COMMANDS, now);
        }
        Ok(())
    }

    fn count_missed(&mut self, service: &Service<'_>) {
        let missed = service.port.counters().ring_full;
        let new = missed.saturating_sub(self.ring_full);
        if new > 0 {
            self.function.miss(u32::try_from(new).unwrap_or(u32::MAX));
        }
        self.ring_full = missed;
    }

    /// Copies completed packets of a queue into the guest's buffers, `limit` of them at most. They
    /// are causes of interrupts if `are_causes`.
    fn copy(
        &mut self,
        now: Instant,
        service: &mut Service<'_>,
        number: usize,
        (limit, are_causes): (usize, bool),
    ) -> Result<(), ProtocolViolation> {
        let Self { frontend, function, shown, refused, .. } = self;
        let Some(memory) = frontend.session().and_then(|session| session.memory()) else {
            return Ok(());
        };
        let queue = &mut service.port.queues_mut()[number];
        for frame in queue.completed_frames(shown[number]).take(limit) {
            let is_stored = function.receive(now, number, frame, memory, are_causes);
            *refused += u64::from(!is_stored.map_err(ProtocolViolation::Dma)?);
            shown[number] += 1;
        }
        Ok(())
    }

    /// Carries out interrupts, and re-arms.
    fn moderate(&mut self, now: Instant, service: &mut Service<'_>) {
        let Service { port, watch, pool, delivered } = service;
        let queues = port.queues_mut();
        let mut take = |packet: &Delivered, frame: Vec<u8>| {
            delivered(packet, &frame);
            pool.push(frame);
        };
        loop {
            let rearmed = self.function.take_rearmed();
            for (number, queue) in queues.iter_mut().enumerate() {
                if rearmed >> number & 1 != 0 && queue.is_masked() {
                    queue.rearm(now, *watch);
                }
                if queue.take_interrupt() {
                    self.function.interrupt_for_frames(now, number);
                }
            }
            self.function.advance(now);
            let interrupts = self.function.take_raised();
            if interrupts.is_empty() {
                break;
            }
            for Raised { signal, queues: causes } in interrupts {
                for (number, queue) in queues.iter_mut().enumerate() {
                    if causes >> number & 1 != 0 {
                        queue.interrupt(now, *watch);
                        queue.take_interrupt();
                    }
                }
                match signal {
                    // Drivers have a vector for each queue: several on one pay for each.
                    signal if causes != 0 && self.processor.is_some() => {
                        let charged = self.charged.iter_mut().enumerate();
                        charged
                            .filter(|(number, _)| causes >> number & 1 != 0)
                            .for_each(|(_, charged)| charged.raise(signal));
                    }
                    Some(signal) => {
                        raise(&mut self.raised, now + self.settings.interrupt_latency, signal);
                    }
                    None => {}
                }
            }
            for (queue, shown) in queues.iter_mut().zip(&mut self.shown) {
                if queue.is_masked() && self.processor.is_none() {
                    queue.poll(now, std::mem::take(shown), *watch, &mut take);
                }
            }
        }
        for (number, (queue, shown)) in queues.iter_mut().zip(&mut self.shown).enumerate() {
            // A driver that polls finds by itself what is there.
            if queue.is_masked() && *shown > 0 {
                queue.poll(now, std::mem::take(shown), *watch, &mut take);
            }
            queue.set_size(*shown + self.function.room(number));
        }
    }

    /// Hands interrupts over that have arrived, as far as the guest has buffers for them.
    fn hand_over(&mut self, now: Instant) -> Result<(), ProtocolViolation> {
        while let Some(&(_, signal)) = self.raised.front().filter(|(at, _)| *at <= now) {
            self.raised.pop_front();
            if !self.waiting.contains(&signal) {
                self.waiting.push(signal);
            }
        }
        let Self { frontend, waiting, chain, .. } = self;
        let live = frontend.session().and_then(|session| session.ring(INTERRUPTS));
        let Some(live) = live.filter(|_| !waiting.is_empty()) else { return Ok(()) };
        let wrong = |error| ProtocolViolation::Ring(INTERRUPTS, error);
        let mut reported = 0;
        for signal in &*waiting {
            chain.clear();
            let Some(head) = live.ring.take(live.memory, chain).map_err(wrong)? else { break };
            let written = chain.write(live.memory, &signal.encode());
            let written = written.map_err(ProtocolViolation::Dma)?;
            live.ring.add_used(head, written);
            reported += 1;
        }
        live.ring.flush_used();
        if reported > 0 {
            waiting.drain(..reported);
            frontend.call(INTERRUPTS, now);
        }
        Ok(())
    }

    /// Another guest has come, or none is there: the function loses its power.
    fn power_off(&mut self) {
        self.function = self.settings.function();
        self.function.set_link(self.link);
        self.raised.clear();
        self.waiting.clear();
        self.posted = 0;
        self.outbox.reset();
        self.charged.fill_with(Charged::default);
    }

    fn serve_guest(
        &mut self,
        now: Instant,
        service: &mut Service<'_>,
    ) -> Result<(), ProtocolViolation> {
        self.count_missed(service);
        if let Some(memory) = self.frontend.session().and_then(|session| session.memory()) {
            self.function.attend(memory).map_err(ProtocolViolation::Dma)?;
        }
        if self.processor.is_some() {
            self.serve_at_cost(now, service)?;
        } else {
            for number in 0..service.port.queues().len().min(self.shown.len()) {
                let are_causes = is_by_registers(&service.port.queues()[number]);
                self.copy(now, service, number, (usize::MAX, are_causes))?;
            }
            self.moderate(now, service);
        }
        if self.frontend.session().is_some_and(|session| session.is_poisoned()) {
            return Err(ProtocolViolation::Poisoned);
        }
        Ok(())
    }

    /// There is no guest: what has completed is lost, and nothing more is taken.
    fn discard(&mut self, now: Instant, service: &mut Service<'_>) {
        let Service { port, pool, .. } = service;
        self.shown.fill(0);
        self.charged.fill_with(Charged::default);
        for queue in port.queues_mut() {
            self.refused += discard(now, queue, pool);
        }
    }
}

impl HostSide for Device {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.frontend.fd()]
    }

    fn sync(&mut self, now: Instant, ready: bool, port: &mut Port<Vec<u8>>, _: &mut Watch) {
        if self.frontend.sync(ready) {
            self.power_off();
        }
        let outcome = self.obey(now).and_then(|()| self.hand_over(now));
        self.frontend.account(outcome);
        if !self.frontend.is_connected() {
            port.queues_mut().iter_mut().for_each(|queue| queue.set_size(0));
        }
    }

    fn make_room(&mut self, port: &mut Port<Vec<u8>>) {
        if self.frontend.is_connected() {
            let queues = port.queues_mut().iter_mut().zip(&self.shown);
            for (number, (queue, shown)) in queues.enumerate() {
                queue.set_size(shown + self.function.room(number));
            }
        }
    }

    fn route(&mut self, frame: &[u8]) -> Route {
        if !self.function.listens() {
            self.refused += 1;
            return Route::Nowhere;
        }
        self.function.route(frame)
    }

    fn transmit(&mut self, now: Instant, _: usize, frame: &mut Vec<u8>) -> io::Result<Fetched> {
        let Self { frontend, function, processor, outbox, .. } = self;
        let Some(memory) = frontend.session().and_then(|session| session.memory()) else {
            return Ok(Fetched::Nothing);
        };
        let mut fetch = |frame: &mut Vec<u8>| match function.transmit(now, frame, memory)? {
            Sent::Frame => Ok(Fetched::Frame),
            Sent::More => Ok(Fetched::Dropped),
            Sent::Nothing => Ok(Fetched::Nothing),
        };
        let fetched = match processor {
            None => fetch(frame),
            Some(processor) => outbox.take(now, processor, frame, fetch),
        };
        Ok(fetched.unwrap_or_else(|error| {
            frontend.accuse(ProtocolViolation::Dma(error));
            Fetched::Nothing
        }))
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn serve(&mut self, now: Instant, service: &mut Service<'_>) -> io::Result<()> {
        let outcome = self.serve_guest(now, service);
        self.frontend.account(outcome);
        if !self.frontend.is_connected() {
            self.discard(now, service);
        } else if !self.settings.inband {
            self.raise_irqs(now);
            self.send_irqs();
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Instant> {
        if !self.frontend.is_connected() {
            return None;
        }
        let work = self.processor.as_ref().and_then(Processor::work_ends_at);
        let charged = self.charged.iter().filter_map(Charged::deadline).min();
        [self.function.deadline(), charged, work].into_iter().flatten().min()
    }

    fn busy(&self, now: Instant) -> Option<Busy> {
        self.processor.as_ref().map(|processor| processor.busy(now))
    }

    fn virtual_time(&mut self) -> Option<&mut dyn VirtualHost> {
        if self.settings.inband { Some(self) } else { None }
    }

    fn interval(&self, queue: usize) -> Option<Duration> {
        Some(self.function.interval(queue))
    }

    fn set_link(&mut self, up: bool) -> bool {
        self.link = up;
        self.function.set_link(up);
        true
    }

    fn evict(&mut self) -> bool {
        self.frontend.evict()
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn attachment(&self) -> Option<Attachment> {
        let connected = self.frontend.is_connected();
        Some(Attachment {
            connected,
            lost: self.frontend.lost().map(str::to_owned),
            pairs_used: if connected { self.function.pairs_used() } else { 0 },
            pairs: self.shown.len() as u16,
            too_long: self.function.too_long(),
        })
    }
}

impl VirtualHost for Device {
    fn next_irq_at(&self) -> Option<Instant> {
        let raised = self.raised.front().map(|(at, _)| *at);
        [raised, self.frontend.next_irq_at()].into_iter().flatten().min()
    }

    fn raise_irqs(&mut self, now: Instant) -> bool {
        if let Err(violation) = self.hand_over(now) {
            self.frontend.accuse(violation);
        }
        self.frontend.raise_irqs(now)
    }

    fn send_irqs(&mut self) {
        self.frontend.send_irqs();
    }

    fn take_irqs(&mut self) -> u64 {
        self.frontend.take_irqs()
    }

    fn answer_kick(&mut self) {
        self.frontend.answer_kick();
    }
}

/// Whether the driver's registers say when a queue interrupts.
fn is_by_registers(queue: &Queue<Vec<u8>>) -> bool {
    queue.moderation().timer == TimerKind::Driver
}

/// Puts an interrupt that arrives at `at` into its place among those that are on their way.
fn raise(raised: &mut VecDeque<(Instant, Signal)>, at: Instant, signal: Signal) {
    // A second one at the same moment would be news of nothing to the guest.
    if !raised.contains(&(at, signal)) {
        let place = raised.partition_point(|(other, _)| *other <= at);
        raised.insert(place, (at, signal));
    }
}

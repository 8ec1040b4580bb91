//! What a device does with the rings of its guest.

use base::time::{Duration, Instant};
use hostside::trace::Watch;
use hostside::{Fetched, Service};
use nic::observer::Delivered;
use nic::port::Port;

use super::command::{GuestControls, answer_command, take_command};
use super::receive::Nic;
use super::{BATCH, CTRL_VQ, DESCRIPTORS, Device, MQ, RSS};
use crate::transport::session::ProtocolViolation;

/// When a guest without a receive buffer is tried again.
const NO_BUFFER: Duration = Duration::from_micros(1);

impl Device {
    pub(super) fn look(
        &mut self,
        now: Instant,
        port: &mut Port<Vec<u8>>,
        watch: &mut Watch,
    ) -> Result<(), ProtocolViolation> {
        let Some(session) = self.frontend.session() else { return Ok(()) };
        let mut live = 0;
        let queues = port.queues_mut().iter_mut().zip(&mut self.receivers);
        for (pair, (queue, receiver)) in queues.enumerate() {
            let index = 2 * pair;
            match session.ring(index) {
                Some(mut ring) => {
                    live += u16::from(live == pair as u16);
                    let attended = receiver.sync(now, &mut ring, queue, watch);
                    attended.map_err(|error| ProtocolViolation::Ring(index, error))?;
                }
                None => queue.set_size(0),
            }
        }
        let chooses_pairs = has(session.features(), CTRL_VQ | MQ);
        let spread = if chooses_pairs { self.pairs } else { live.max(1) };
        if spread != self.spread {
            port.spread_over(spread);
            self.spread = spread;
        }
        self.obey_commands(now, port, watch)
    }

    fn obey_commands(
        &mut self,
        now: Instant,
        port: &mut Port<Vec<u8>>,
        watch: &mut Watch,
    ) -> Result<(), ProtocolViolation> {
        let Some(session) = self.frontend.session() else { return Ok(()) };
        let features = session.features();
        if !has(features, CTRL_VQ) {
            return Ok(());
        }
        let index = if has(features, MQ) { 2 * self.receivers.len() } else { 2 };
        let mut called = false;
        for _ in 0..BATCH {
            let Some(mut live) = session.ring(index) else { return Ok(()) };
            let taken = take_command(&mut live, &mut self.chain, &mut self.command_asked_at);
            let taken = taken.map_err(|error| ProtocolViolation::Ring(index, error))?;
            let Some((head, command)) = taken else { break };
            let mut target = GuestControls {
                now,
                port,
                watch,
                senders: &mut self.senders,
                pairs: &mut self.pairs,
                spread: &mut self.spread,
                is_spread_by_guest: &mut self.is_spread_by_guest,
                has_rss: has(features, CTRL_VQ | MQ | RSS),
            };
            let answer = target.carry_out(&command);
            let Some(mut live) = session.ring(index) else { return Ok(()) };
            let wanted = answer_command(&mut live, head, &self.chain, &answer);
            if wanted.map_err(|error| ProtocolViolation::Ring(index, error))? {
                called = true;
            }
        }
        if called {
            self.frontend.call(index, now + self.settings.interrupt_latency);
        }
        Ok(())
    }

    pub(super) fn take_frame(
        &mut self,
        now: Instant,
        frame: &mut Vec<u8>,
    ) -> Result<Fetched, ProtocolViolation> {
        if self.descriptors >= DESCRIPTORS {
            return Ok(Fetched::Later(now));
        }
        let mut later: Option<Instant> = None;
        for _ in 0..self.senders.len() {
            match self.take_from(self.turn, now, frame)? {
                Fetched::Nothing => {}
                Fetched::Later(at) => later = later.into_iter().chain([at]).min(),
                taken => return Ok(taken),
            }
            self.turn = (self.turn + 1) % self.senders.len();
        }
        Ok(later.map_or(Fetched::Nothing, Fetched::Later))
    }

    fn take_from(
        &mut self,
        pair: usize,
        now: Instant,
        frame: &mut Vec<u8>,
    ) -> Result<Fetched, ProtocolViolation> {
        let Self { frontend, senders, settings, processor, descriptors, .. } = self;
        let Some(session) = frontend.session() else { return Ok(Fetched::Nothing) };
        let (sender, index) = (&mut senders[pair], 2 * pair + 1);
        let Some(mut live) = session.ring(index) else { return Ok(Fetched::Nothing) };
        let taken = match processor {
            None => sender.take(&mut live, settings.polled, frame),
            Some(processor) => {
                sender.take_at_cost((now, processor), &mut live, settings.polled, frame)
            }
        };
        if let Ok(Fetched::Frame | Fetched::Dropped) = taken {
            *descriptors += sender.descriptors();
        }
        taken.map_err(|error| ProtocolViolation::Ring(index, error))
    }

    pub(super) fn serve_rings(
        &mut self,
        now: Instant,
        service: &mut Service<'_>,
    ) -> Result<(), ProtocolViolation> {
        let Self { frontend, receivers, processor, settings, .. } = self;
        if !frontend.is_connected() {
            return Ok(());
        }
        let call_at = now + settings.interrupt_latency;
        let Service { port, watch, pool, delivered, .. } = service;
        for (pair, queue) in port.queues_mut().iter_mut().enumerate() {
            let index = 2 * pair;
            let Some(receiver) = receivers.get_mut(pair) else { break };
            let Some(mut live) = frontend.session().and_then(|session| session.ring(index)) else {
                receiver.discard(now, queue, pool);
                continue;
            };
            let mut taken = |packet: &Delivered, frame: Vec<u8>| {
                delivered(packet, &frame);
                pool.push(frame);
            };
            let mut nic = Nic { now, queue, watch, delivered: &mut taken };
            let call = match processor {
                None => receiver.serve(&mut live, &mut nic).map(|call| call.then_some(call_at)),
                Some(processor) => {
                    let serve = receiver.serve_at_cost(&mut live, &mut nic, processor, call_at);
                    serve.map(|call| call.then_some(now))
                }
            };
            if let Some(at) = call.map_err(|error| ProtocolViolation::Ring(index, error))? {
                frontend.call(index, at);
            }
        }
        for (pair, sender) in self.senders.iter_mut().enumerate() {
            let index = 2 * pair + 1;
            if let Some(mut live) = frontend.session().and_then(|session| session.ring(index))
                && sender.serve(now, &mut live)
            {
                frontend.call(index, call_at);
            }
        }
        if frontend.session().is_some_and(|session| session.is_poisoned()) {
            return Err(ProtocolViolation::Poisoned);
        }
        self.end_work(now)
    }

    /// Says that work has ended, in place of the NIC and for nothing.
    fn end_work(&mut self, now: Instant) -> Result<(), ProtocolViolation> {
        let Self { frontend, processor: Some(processor), receivers, .. } = self else {
            return Ok(());
        };
        while let Some(frame) = processor.take_ended(now) {
            let Some(mut live) = frontend.session().and_then(|session| session.ring(0)) else {
                break;
            };
            let shown = receivers[0].show(&mut live, &frame);
            match shown.map_err(|error| ProtocolViolation::Ring(0, error))? {
                Some(false) => {}
                Some(true) => frontend.call(0, now),
                None => processor.work(now, NO_BUFFER, frame),
            }
        }
        Ok(())
    }
}

/// Whether all of these features are among those that guest and device have agreed on.
fn has(agreed: u64, features: u64) -> bool {
    agreed & features == features
}

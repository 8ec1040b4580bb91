//! A card whose guest's processor has costs: the guest is shown what it has paid for.

use base::time::{Duration, Instant};
use hostside::Service;
use nic::observer::Delivered;
use vhost::session::ProtocolViolation;

use super::{Device, raise};

/// When a driver without a buffer for the end of work is tried again.
const NO_BUFFER: Duration = Duration::from_micros(1);

impl Device {
    /// Lets the card see what has come, and the guest what it has paid for. What has come is a
    /// cause of interrupts if the registers decide (`by_registers`).
    pub(super) fn serve_at_cost(
        &mut self,
        now: Instant,
        service: &mut Service<'_>,
        by_registers: bool,
    ) -> Result<(), ProtocolViolation> {
        let queue = &service.port.queues()[0];
        for frame in queue.completed_frames(self.charged.noticed) {
            self.charged.noticed += 1;
            if by_registers {
                self.function.notice(now, frame);
            }
        }
        self.moderate(now, service);
        while let Some(count) = self.paid(now, service) {
            self.copy(now, service, 0, (count, false))?;
            self.charged.noticed = self.charged.noticed.saturating_sub(count);
            if let Some(signal) = self.charged.signal.take() {
                raise(&mut self.raised, now, signal);
            }
            let Service { port, watch, pool, delivered } = service;
            let mut take = |packet: &Delivered, frame: Vec<u8>| {
                delivered(packet, &frame);
                pool.push(frame);
            };
            let shown = std::mem::take(&mut self.shown[0]);
            port.queues_mut()[0].poll(now, shown, *watch, &mut take);
            self.moderate(now, service);
        }
        self.end_work(now)?;
        self.moderate(now, service);
        Ok(())
    }

    /// How many packets the guest has paid for, to be shown now.
    fn paid(&mut self, now: Instant, service: &Service<'_>) -> Option<usize> {
        let Self { charged, processor: Some(processor), settings, .. } = self else { return None };
        let queue = &service.port.queues()[0];
        let raised = (&mut charged.is_raised, now + settings.interrupt_latency);
        charged.handler.next(now, queue, processor, raised)
    }

    /// Says that work has ended, in place of the NIC and for nothing.
    fn end_work(&mut self, now: Instant) -> Result<(), ProtocolViolation> {
        let Self { frontend, processor: Some(processor), function, .. } = self else {
            return Ok(());
        };
        let Some(memory) = frontend.session().and_then(|session| session.memory()) else {
            return Ok(());
        };
        while let Some(frame) = processor.take_ended(now) {
            if !function.show(&frame, memory).map_err(ProtocolViolation::Dma)? {
                processor.work(now, NO_BUFFER, frame);
            }
        }
        Ok(())
    }
}

//! A NIC whose guest's processor has costs: the guest is shown what it has paid for.

use base::time::{Duration, Instant};
use hostside::Service;
use nic::observer::Delivered;
use vhost::transport::session::ProtocolViolation;

use super::{Device, is_by_registers, raise};

/// When a driver without a buffer for the end of work is tried again.
const NO_BUFFER: Duration = Duration::from_micros(1);

impl Device {
    /// Lets the NIC see what has come, and the guest what it has paid for.
    pub(super) fn serve_at_cost(
        &mut self,
        now: Instant,
        service: &mut Service<'_>,
    ) -> Result<(), ProtocolViolation> {
        self.notice(now, service);
        self.moderate(now, service);
        while self.show_paid(now, service)? {}
        self.end_work(now)?;
        self.moderate(now, service);
        Ok(())
    }

    /// What has come is a cause of interrupts where the registers decide.
    fn notice(&mut self, now: Instant, service: &Service<'_>) {
        let queues = service.port.queues().iter().zip(&mut self.charged);
        for (number, (queue, charged)) in queues.enumerate() {
            for frame in queue.completed_frames(charged.noticed) {
                charged.noticed += 1;
                if is_by_registers(queue) {
                    self.function.notice(now, number, frame);
                }
            }
        }
    }

    /// Shows the guest what it has paid for in each queue, once; whether there was anything.
    fn show_paid(
        &mut self,
        now: Instant,
        service: &mut Service<'_>,
    ) -> Result<bool, ProtocolViolation> {
        let mut has_shown = false;
        for number in 0..service.port.queues().len().min(self.charged.len()) {
            let Some(count) = self.paid(now, service, number) else { continue };
            has_shown = true;
            // A driver that has re-armed meanwhile has cleared the cause that was noticed with the
            // frame, and does not look again by itself.
            let queue = &service.port.queues()[number];
            let are_causes = is_by_registers(queue) && !queue.is_masked();
            self.copy(now, service, number, (count, are_causes))?;
            let charged = &mut self.charged[number];
            charged.noticed = charged.noticed.saturating_sub(count);
            if let Some(signal) = charged.signal.take() {
                raise(&mut self.raised, now, signal);
            }
            let Service { port, watch, pool, delivered } = service;
            let mut take = |packet: &Delivered, frame: Vec<u8>| {
                delivered(packet, &frame);
                pool.push(frame);
            };
            let shown = std::mem::take(&mut self.shown[number]);
            port.queues_mut()[number].poll(now, shown, *watch, &mut take);
            self.moderate(now, service);
        }
        Ok(has_shown)
    }

    /// How many packets of a queue the guest has paid for, to be shown now.
    fn paid(&mut self, now: Instant, service: &Service<'_>, number: usize) -> Option<usize> {
        let Self { charged, processor: Some(processor), settings, .. } = self else { return None };
        let (charged, queue) = (&mut charged[number], &service.port.queues()[number]);
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

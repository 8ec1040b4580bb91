//! Receiving where it costs the host's processor time, as [`hostside::charge`] has it.

use base::time::Instant;
use hostside::processor::Processor;

use super::receive::{Nic, Receiver, put};
use crate::transport::ring::RingError;
use crate::transport::session::LiveRing;

impl Receiver {
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.handler.deadline()
    }

    /// Shows the guest what it has paid for; whether it is to be called, now. An interrupt that the
    /// queue raises reaches the host at `raised_until`.
    pub(super) fn serve_at_cost<T>(
        &mut self,
        live: &mut LiveRing<'_>,
        nic: &mut Nic<'_>,
        processor: &mut Processor<T>,
        raised_until: Instant,
    ) -> Result<bool, RingError> {
        self.follow(live);
        self.raised |= nic.queue.take_interrupt() || self.restarted;
        let mut call = false;
        loop {
            let raised = (&mut self.raised, raised_until);
            let paid = self.handler.next(nic.now, nic.queue, processor, raised);
            let Some(count) = paid else { break };
            call |= self.received(live, nic, count)?;
        }
        self.resize(live.ring, nic.queue)?;
        Ok(call)
    }

    /// The first `count` packets are the guest's; whether it is to be called.
    fn received(
        &mut self,
        live: &mut LiveRing<'_>,
        nic: &mut Nic<'_>,
        count: usize,
    ) -> Result<bool, RingError> {
        self.copy(live, nic.queue, count)?;
        live.ring.flush_used();
        let call = std::mem::take(&mut self.restarted) || self.wants_call(live.ring);
        self.signal_all(live.ring, nic);
        // The guest looks even if there is nothing to take: at transmissions that interrupted.
        nic.queue.poll(nic.now, 0, nic.watch, &mut *nic.delivered);
        Ok(call)
    }

    /// Shows the guest a frame that is not the NIC's; whether it is to be called, or none if it has
    /// no room.
    pub(super) fn show(
        &mut self,
        live: &mut LiveRing<'_>,
        frame: &[u8],
    ) -> Result<Option<bool>, RingError> {
        self.follow(live);
        if put(live, frame, &mut self.chain, &mut self.used)?.is_none() {
            return Ok(None);
        }
        live.ring.flush_used();
        let call = self.wants_call(live.ring);
        self.signalled = live.ring.published();
        Ok(Some(call))
    }
}

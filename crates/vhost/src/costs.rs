//! Receiving where it costs the host's processor time.
//!
//! Cost is paid before the guest sees what it has paid for, so that its own clock shows it. An
//! interrupt is taken when the processor is free. Its handler polls: what has completed by then is
//! paid for, shown, and the guest called. What completes meanwhile belongs to the same poll, as
//! under NAPI: it costs no second interrupt. Only a guest that finds nothing more re-arms.
//!
//! ```text
//! NIC        raises                       m more complete
//! stage      Raised ────▶ Polls ──────▶ Receives ──▶ Idle ▶ Receives ──▶ Idle
//! processor  (until free) │ interrupt   │ n packets │       │ m packets │
//! guest                                             called              called, re-arms
//! ```

use base::time::Instant;
use hostside::processor::Processor;

use super::receive::{Nic, Receiver, Stage, put};
use super::ring::RingError;
use super::session::LiveRing;

/// The most packets of one poll (`NAPI_POLL_WEIGHT`, `include/linux/netdevice.h`).
const WEIGHT: usize = 64;

impl Receiver {
    /// When the host does something next.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.stage {
            Stage::Idle => None,
            Stage::Raised(at) | Stage::Polls(at) | Stage::Receives(at, _) => Some(at),
        }
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
            self.stage = match self.stage {
                Stage::Idle if std::mem::take(&mut self.raised) => Stage::Raised(raised_until),
                // The guest has been called and has not re-armed: it polls on, and nothing that it
                // does first takes time. It must be decided now, or its clock might run ahead.
                Stage::Idle if nic.queue.is_masked() && nic.queue.backlog() > 0 => {
                    Stage::Polls(nic.now)
                }
                Stage::Raised(at) if at <= nic.now && processor.free_at() > nic.now => {
                    Stage::Raised(processor.free_at())
                }
                Stage::Raised(at) if at <= nic.now => Stage::Polls(processor.interrupt(nic.now)),
                Stage::Polls(at) if at <= nic.now => {
                    let count = nic.queue.backlog().min(WEIGHT);
                    Stage::Receives(processor.receive(nic.now, count), count)
                }
                Stage::Receives(at, count) if at <= nic.now => {
                    call |= self.received(live, nic, count)?;
                    Stage::Idle
                }
                _ => break,
            };
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

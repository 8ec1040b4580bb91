//! What a device does for a host whose processor has costs: frames leave when sending them has been
//! paid for, and packets are shown when receiving them has ([`Handler`]).
//!
//! Cost is paid before the host sees what it has paid for, so that its own clock shows it.

use base::time::Instant;
pub use nic::handler::Handler;

use crate::processor::Processor;
use crate::{Fetched, work};

/// The frame of a host that has still to be paid for.
#[derive(Debug, Default)]
pub struct Outbox {
    held: Option<(Instant, Vec<u8>)>,
}

impl Outbox {
    /// Forgets the frame.
    pub fn reset(&mut self) {
        self.held = None;
    }

    /// Takes the next frame that has been paid for, in place of what is in `frame`; `fetch` takes
    /// one from the host. What asks for work goes to the processor.
    pub fn take<E>(
        &mut self,
        now: Instant,
        processor: &mut Processor<Vec<u8>>,
        frame: &mut Vec<u8>,
        mut fetch: impl FnMut(&mut Vec<u8>) -> Result<Fetched, E>,
    ) -> Result<Fetched, E> {
        loop {
            match self.held.take() {
                Some((leaves_at, held)) if leaves_at > now => {
                    self.held = Some((leaves_at, held));
                    return Ok(Fetched::Later(leaves_at));
                }
                Some((_, held)) => {
                    *frame = held;
                    return Ok(Fetched::Frame);
                }
                None => {}
            }
            match fetch(frame)? {
                Fetched::Frame => {}
                other => return Ok(other),
            }
            let taken = std::mem::take(frame);
            match work::requested(&taken) {
                Some(length) => processor.work(now, length, taken),
                None => self.held = Some((processor.send(now), taken)),
            }
        }
    }
}

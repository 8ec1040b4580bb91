//! What a guest whose processor has costs has still to pay for, in one queue.

use base::time::Instant;
use hostside::charge::Handler;

use crate::message::Signal;

/// What has still to be paid for.
#[derive(Debug, Default)]
pub(super) struct Charged {
    pub(super) handler: Handler,
    /// The vector for frames has fired, and is not handled yet.
    pub(super) is_raised: bool,
    /// The interrupts the guest gets when it has paid.
    pub(super) signal: Option<Signal>,
    /// Packets in the queue whose arrival the NIC has noticed.
    pub(super) noticed: usize,
}

impl Charged {
    /// The vector for frames fires; the guest gets nothing if it is masked.
    pub(super) fn raise(&mut self, signal: Option<Signal>) {
        self.is_raised = true;
        self.signal = signal.or(self.signal);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.handler.deadline()
    }
}

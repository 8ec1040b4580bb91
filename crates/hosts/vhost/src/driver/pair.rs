//! A pair of queues: frames out, frames in, and one interrupt for both.

use std::os::fd::OwnedFd;

use super::receive::Receiver;
use super::transmit::Transmitter;

/// What the driver attaches one or more of.
pub(super) struct Pair {
    /// Frames in.
    pub receiver: Receiver,
    /// Frames out.
    pub transmitter: Transmitter,
    /// What the device makes readable.
    pub interrupt: OwnedFd,
}

/// What happened on a pair of queues so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PairCounters {
    /// Frames that were put into the ring.
    pub sent: u64,
    /// How often there was no room for a frame.
    pub full: u64,
    /// Frames that were delivered or were too long.
    pub received: u64,
    /// Of these, frames that were longer than the MTU allows, and were dropped.
    pub oversized: u64,
    /// How often the device was notified: each is a system call.
    pub kicks: u64,
}

impl Pair {
    /// What was counted.
    pub(super) fn counters(&self) -> PairCounters {
        let [received, oversized, receive_kicks] = self.receiver.counters();
        let [sent, full, transmit_kicks] = self.transmitter.counters();
        let kicks = receive_kicks + transmit_kicks;
        PairCounters { sent, full, received, oversized, kicks }
    }
}

//! Measurements: the times of probes.

use crate::train::Train;

/// Receive and send timestamps of the far host, on its own clock, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Far {
    /// When its kernel received the request.
    pub received: u64,
    /// When it sent the answer.
    pub sent: u64,
}

/// One probe: times of my own clock, but where said otherwise, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// When it left; the kernel's transmit stamp where there is one.
    pub sent: u64,
    /// When the answer came, or nothing if none did.
    pub received: Option<u64>,
    /// When my NIC itself received the answer, by the NIC's clock: a hardware stamp, taken before
    /// it holds anything.
    pub nic: Option<u64>,
    /// The far host's times, where the protocol has them.
    pub far: Option<Far>,
    /// It asked for no answer.
    pub silent: bool,
}

/// A train, and what came of each of its sends, in their order.
#[derive(Clone, Debug)]
pub struct MeasuredTrain {
    /// What was to be sent.
    pub train: Train,
    /// The times of its packets, in their order.
    pub probes: Vec<Probe>,
}

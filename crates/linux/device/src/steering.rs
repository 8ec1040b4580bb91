//! Steering: which processors handle the packets of a queue in software (RPS, RFS, XPS).
//!
//! Files and meaning: Linux, `Documentation/networking/scaling.rst`.

use serde::Serialize;

use super::napi::Direction;

/// The steering of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Steering {
    /// Which way packets go.
    pub direction: Direction,
    /// The number of the queue among those of its direction.
    pub queue: u32,
    /// Receiving: those that packets are spread over; none: the one that was interrupted keeps
    /// them. Sending: those whose packets go out here.
    pub cpus: Vec<u32>,
    /// Receiving: flows whose reading processor is remembered.
    pub flows: u64,
}

//! Why a driver does not attach, or is cut off.

use std::io;
use std::path::PathBuf;

use super::ring::RingError;

/// Why a driver could not be attached, or what ended it.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// Nothing listens at the path.
    #[error("connect to the NIC at {}: {cause}; does it run, and is this its socket?", .path.display())]
    Connect {
        /// The socket that was tried.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// A setting is out of range.
    #[error("attach a driver with {what}; use {range}")]
    Setting {
        /// The setting and its value.
        what: String,
        /// What it may be.
        range: String,
    },
    /// The kernel refused memory, a descriptor or a wait.
    #[error("{operation}: {cause}; check the limits on memory and open files (ulimit -a)")]
    System {
        /// What was tried.
        operation: &'static str,
        /// What the kernel said.
        #[source]
        cause: io::Error,
    },
    /// The device hung up.
    #[error(
        "{operation}: the NIC has closed the port; its own messages say why, then attach again"
    )]
    Gone {
        /// What was tried.
        operation: &'static str,
    },
    /// The device did not answer in time.
    #[error("{operation}: no answer from the NIC within {seconds} s; is it stopped or overloaded?")]
    Silent {
        /// What was tried.
        operation: &'static str,
        /// How long it was waited for.
        seconds: u64,
    },
    /// The device does not offer what the driver cannot do without.
    #[error("attach a driver: the NIC does not offer {0}; it takes a NIC that does")]
    Lacks(&'static str),
    /// The device said no.
    #[error("{operation}: the NIC refused (status {status}); its own messages say why")]
    Refused {
        /// What was tried.
        operation: &'static str,
        /// What it answered: not 0.
        status: u64,
    },
    /// The device answered nonsense.
    #[error("{operation}: the NIC answered with {what}; this is a defect of the NIC")]
    Answer {
        /// What was tried.
        operation: &'static str,
        /// What was wrong with the answer.
        what: String,
    },
    /// The device broke the rules of a ring. The driver does not touch that ring again.
    #[error("the NIC broke its {ring} ring: {cause}; this is a defect of the NIC")]
    Ring {
        /// Which of its rings.
        ring: &'static str,
        /// The rule that it broke.
        #[source]
        cause: RingError,
    },
    /// The caller's frame does not fit.
    #[error("send a frame of {length} bytes: out of range; use 14 to {largest}, without FCS")]
    Frame {
        /// How long it is.
        length: usize,
        /// The longest that may be sent.
        largest: usize,
    },
}

impl DriverError {
    /// Turns what the kernel said into an error of `operation`.
    pub(super) fn system(operation: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| Self::System { operation, cause: errno.into() }
    }
}

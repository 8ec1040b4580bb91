//! Why a driver does not attach, or is cut off.

use std::io;
use std::path::PathBuf;

use super::ring::RingError;

/// Why a driver could not be attached, or what ended it.
#[expect(missing_docs, reason = "the messages say it")]
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    #[error("connect to the NIC at {path}: {1}; does it run, and is this its socket?", path = .0.display())]
    Connect(PathBuf, #[source] io::Error),
    #[error("attach a driver with {0}; use {1}")]
    Setting(String, String),
    #[error("{0}: {1}; check the limits on memory and open files (ulimit -a)")]
    System(&'static str, #[source] io::Error),
    #[error("{0}: the NIC has closed the port; its own messages say why, then attach again")]
    Gone(&'static str),
    #[error("{0}: no answer from the NIC within {1} s; is it stopped or overloaded?")]
    Silent(&'static str, u64),
    #[error("attach a driver: the NIC does not offer {0}; it takes a NIC that does")]
    Lacks(&'static str),
    #[error("{0}: the NIC refused (status {1}); its own messages say why")]
    Refused(&'static str, u64),
    #[error("{0}: the NIC answered with {1}; this is a defect of the NIC")]
    Answer(&'static str, String),
    /// The device broke the rules of a ring. The driver does not touch that ring again.
    #[error("the NIC broke its {0} ring: {1}; this is a defect of the NIC")]
    Ring(&'static str, #[source] RingError),
    #[error("send a frame of {0} bytes: out of range; use 14 to {1}, without FCS")]
    Frame(usize, usize),
}

impl DriverError {
    /// Turns what the kernel said into an error of `operation`.
    pub(super) fn system(operation: &'static str) -> impl Fn(rustix::io::Errno) -> Self {
        move |errno| Self::System(operation, errno.into())
    }
}

//! From a specification to its state machine.

use alloc::boxed::Box;

use crate::spec::WorkloadSpec;
use crate::{
    BulkReceiver, BulkSender, FrameSender, Framing, MemcachedClient, NtpClient, NtpServer,
    PpsReceiver, PpsSender, RrClosed, RrOpen, RrServer, Workload,
};

impl WorkloadSpec {
    /// Makes the state machine. Everything random in it follows from `seed`.
    pub fn build(&self, framing: Framing, seed: u64) -> Box<dyn Workload> {
        match self {
            Self::RrClient(spec) => match spec.rate_per_s {
                Some(rate) => Box::new(RrOpen::new(spec, rate, framing)),
                None => Box::new(RrClosed::new(spec, framing, seed)),
            },
            Self::RrServer(spec) => Box::new(RrServer::new(spec, framing)),
            Self::MemcachedClient(spec) => Box::new(MemcachedClient::new(spec, seed)),
            Self::NtpClient(spec) => Box::new(NtpClient::new(spec, seed)),
            Self::NtpServer(spec) => Box::new(NtpServer::new(spec)),
            Self::BulkSender(spec) => Box::new(BulkSender::new(spec)),
            Self::BulkReceiver(spec) => Box::new(BulkReceiver::new(spec)),
            Self::PpsSender(spec) => Box::new(PpsSender::new(spec)),
            Self::PpsReceiver(spec) => Box::new(PpsReceiver::new(spec)),
            Self::FrameSender(spec) => Box::new(FrameSender::new(spec)),
        }
    }
}

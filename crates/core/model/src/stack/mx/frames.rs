//! What frames of MX are, and what it costs to send them.

use mx::outgoing::Outgoing;
use mx::wire::{self, Body, FrameType};

use super::ETHERNET;
use crate::machine::Costs;

/// What a frame is, with the bytes of a message in it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Pull,
    Reply(f64),
    Medium(f64),
    Small(f64),
    /// The whole message.
    Rendezvous(u64),
    Control,
    Invalid,
}

pub(super) fn kind_of(frame: &[u8]) -> Kind {
    match wire::parse(&frame[ETHERNET..]) {
        Ok((_, Body::Pull(_))) => Kind::Pull,
        Ok((_, Body::Reply { data, .. })) => Kind::Reply(data.len() as f64),
        Ok((_, Body::Medium { data, .. })) => Kind::Medium(data.len() as f64),
        Ok((_, Body::Small(_, data))) => Kind::Small(data.len() as f64),
        Ok((_, Body::Rendezvous { total, .. })) => Kind::Rendezvous(total),
        Ok(_) => Kind::Control,
        Err(_) => Kind::Invalid,
    }
}

impl Kind {
    pub(super) const fn bytes(self) -> f64 {
        match self {
            Self::Reply(bytes) | Self::Medium(bytes) | Self::Small(bytes) => bytes,
            _ => 0.0,
        }
    }
}

/// Short messages are copied into their frames; of others pages are attached.
pub(super) fn send_ns(out: &Outgoing, costs: &Costs) -> f64 {
    costs.send
        + match out.frame_type {
            Some(FrameType::Medium | FrameType::Reply) => costs.attach,
            _ => costs.copy * out.payload as f64,
        }
}

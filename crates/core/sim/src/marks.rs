//! Whether a host waits for a frame, as its bytes say: apart from how the engine decides it.

use mx::config::{Config, Marks};
use mx::wire::{self, Body};

/// Whether an endpoint with these settings should have marked this frame, or one behind it.
///
/// A reply is waited for only if its receiver has said so in the request, which is not seen here.
pub(crate) fn is_waited_for(config: &Config, frame: &[u8]) -> bool {
    if config.marks != Marks::ALL || config.mark_early > 0 {
        return false;
    }
    match wire::parse(frame).expect("a frame of an endpoint is well-formed").1 {
        Body::Small(..) | Body::Rendezvous { .. } | Body::Notify(_) | Body::Pull(_) => true,
        Body::Medium { total, offset, data, .. } => offset + data.len() as u32 == total,
        _ => false,
    }
}

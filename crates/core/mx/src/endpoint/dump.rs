//! The state of an endpoint as text.

use alloc::string::String;
use core::fmt::Write;

use super::Endpoint;
use crate::buffers::{Sink, Source};
use crate::peer::Peer;

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// What is going on: one line for the endpoint, one for each peer, one for each request that
    /// has not ended.
    pub fn dump(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = self.write_dump(&mut text);
        text
    }

    fn write_dump(&self, to: &mut impl Write) -> core::fmt::Result {
        writeln!(
            to,
            "endpoint {}: {} peers, {} sends, {} receives posted, {} messages unexpected, \
             {} large sends, {} large receives ({} frames asked for){}",
            self.address,
            self.peers.addresses().count(),
            self.sends.len(),
            self.matching.posted(),
            self.matching.waiting.len(),
            self.regions.announced.len(),
            self.coming().count(),
            self.pulls.in_flight,
            if self.closing { ", closing" } else { "" },
        )?;
        for (_, id) in self.peers.addresses() {
            if let Some(peer) = self.peers.get(id) {
                writeln!(to, "{}", PeerLine(peer))?;
            }
        }
        for sending in self.sends.values() {
            let super::Sending { match_info, total, unacked, is_complete, .. } = sending;
            let state = if *is_complete { "accepted" } else { "open" };
            writeln!(
                to,
                "  send {match_info:#x}: {total} bytes, {unacked} frames unacknowledged, {state}"
            )?;
        }
        for receive in self.receives.values() {
            writeln!(to, "  receive {:#x}: {} bytes", receive.match_info, receive.sink.capacity())?;
        }
        Ok(())
    }
}

struct PeerLine<'a>(&'a Peer);

impl core::fmt::Display for PeerLine<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self(peer) = self;
        write!(
            f,
            "  peer {}: {:?}, mtu {}, next in {}, next out {}, round trip {}, {} queued, \
             {} asked for, {} announced, {} bytes unexpected of {}, {} messages waiting{}",
            peer.address,
            peer.link,
            peer.mtu,
            peer.inbound.next(),
            peer.outbound.next(),
            peer.outbound.rtt.smoothed(),
            peer.outbound.queue.len(),
            peer.requested.len() + peer.to_request.len(),
            peer.announced,
            peer.unexpected,
            peer.share,
            peer.waiting,
            if peer.full_since.is_some() { ", full" } else { "" },
        )
    }
}

//! A peer made by hand, which sends what it likes.

use super::Engine;
use super::lies::{frame, header};
use base::time::Instant;
use mx::address::NicId;
use mx::wire::{self, Body, Connect, ConnectStatus, FrameType, Header};

pub(crate) struct Guest {
    pub(crate) nic: NicId,
    token: u32,
    seq: u32,
    ack: u32,
    pub(crate) ignores_frames: bool,
    /// Whether it was last asked to begin no more messages.
    pub(crate) is_full: bool,
    pub(crate) came: Vec<FrameType>,
}

/// A request that may claim to be from any address.
pub(crate) fn request(number: u32) -> Vec<u8> {
    let connect = Connect {
        instance: number.into(),
        token: number,
        key: 0,
        version: wire::VERSION,
        mtu: 1500,
        status: ConnectStatus::Request,
        crc: false,
    };
    frame(header(0, number, 0), &Body::Connect(connect))
}

/// The NIC of a guest: each has a host of its own.
pub(crate) fn nic(number: u32) -> NicId {
    let [a, b, c, d] = number.to_be_bytes();
    NicId([a, b, c, d, 6, 6])
}

impl Guest {
    /// One that has sent a request, and was answered if there is a token.
    pub(crate) fn asks(end: &mut Engine, now: Instant, nic: NicId) -> Self {
        let (ignores_frames, is_full, came) = (false, false, Vec::new());
        let mut guest = Self { nic, token: 0, seq: 0, ack: 0, ignores_frames, is_full, came };
        end.handle_frame(now, nic, &request(0));
        guest.receives(end, now);
        guest
    }

    pub(crate) fn connected(end: &mut Engine, now: Instant, nic: NicId) -> Self {
        let mut guest = Self::asks(end, now, nic);
        assert!(guest.is_known(), "{nic} was not answered");
        guest.sends(end, now, &Body::Probe);
        guest.receives(end, now);
        guest
    }

    pub(crate) const fn is_known(&self) -> bool {
        self.token != 0
    }

    pub(crate) fn sends(&mut self, end: &mut Engine, now: Instant, body: &Body<'_>) {
        self.sends_early(end, now, 0, body);
        self.seq = self.seq.wrapping_add(u32::from(body.frame_type().is_sequenced()));
    }

    /// Sends a frame before the `ahead` that come before it.
    pub(crate) fn sends_early(
        &mut self,
        end: &mut Engine,
        now: Instant,
        ahead: u32,
        body: &Body<'_>,
    ) {
        let seq = self.seq.wrapping_add(ahead);
        let header = Header { ask: false, ..header(self.token, seq, self.ack) };
        end.handle_frame(now, self.nic, &frame(header, body));
    }

    /// Takes the frames that the endpoint sends, of which none is for others.
    pub(crate) fn receives(&mut self, end: &mut Engine, now: Instant) {
        let mut out = vec![0; wire::BULK_FRAME];
        while let Some(outgoing) = end.transmit(now, &mut out) {
            if outgoing.to != self.nic {
                continue;
            }
            let (header, body) = wire::parse(&out[..outgoing.length]).unwrap();
            self.is_full = header.full;
            self.came.push(body.frame_type());
            match body {
                Body::Connect(connect) => (self.token, self.ack) = (connect.token, header.seq.0),
                _ if body.frame_type().is_sequenced() && !self.ignores_frames => {
                    self.ack = self.ack.max(header.seq.0.wrapping_add(1));
                }
                _ => {}
            }
        }
    }

    pub(crate) fn announces(&mut self, end: &mut Engine, now: Instant, match_info: u64) {
        let body = Body::Rendezvous { match_info, total: 1 << 40, region: self.seq, head: &[] };
        self.sends(end, now, &body);
    }
}

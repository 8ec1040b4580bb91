//! Bulk paths: which frames take them, and what happens when they change.
//!
//! A path belongs to two endpoints, in both directions. What is on it is neither lost nor overtaken
//! until it is closed; so a frame on it is acknowledged like any other and never counts as lost, a
//! request for such frames is only repeated because it may have been lost itself, and both wait
//! for another path if this one is closed. If there will be none, the peer is lost in the end, as
//! one that does not answer.
//!
//! The data of a bulk frame are not copied if they lie in one place and no checksum is wanted: the
//! port takes them from the message. At the other end a port asks where data belong
//! ([`Endpoint::place`]), and receives them there.
//!
//! Some ports can do without frames: they let the peer [read](super::reads) the memory of a message
//! that was announced, as [`Source`] allows until it is complete. If a peer is lost, so are
//! messages of which something is on the path: it has to be closed before they end.

use base::time::{Duration, Instant};

use super::Endpoint;
use crate::address::Address;
use crate::buffers::{Sink, Source};
use crate::config::{Config, MAX_MTU};
use crate::ids::SendId;
use crate::large::{Job, Region, first_bits};
use crate::outgoing::{BulkPath, BulkState, Data, Outgoing};
use crate::peer::Peer;
use crate::wire::{self, BULK_PAYLOAD, Body, FrameType, Header, RUN_FRAMES};

/// A request for bulk frames is repeated if none has come for so long.
pub(super) const REPEATED_AFTER: Duration = Duration::from_millis(20);

/// A message may begin with so many bytes that lie elsewhere than the rest. They are copied.
const LONGEST_LEAD: usize = 64;

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// The data of the frame that [`transmit`](Self::transmit) has written last, as far as they are
    /// not in it: its last bytes.
    pub fn data(&self) -> &[u8] {
        let Some(Data { send, offset, length }) = self.data else { return &[] };
        self.sends.get(send).map_or(&[], |sending| sending.source.piece(offset, length))
    }

    /// A bulk path that is to be closed, with all that is on it, before the next event is looked
    /// at: its peer is lost.
    pub fn poll_lost_path(&mut self) -> Option<Address> {
        self.lost_paths.pop()
    }

    /// Writes the next frames that a peer has asked for: as many as follow one another, without
    /// their data, or else one.
    pub(super) fn write_run(
        &mut self,
        mut job: Job,
        region: Region,
        out: &mut [u8],
    ) -> Option<Outgoing> {
        let Job { peer: id, pull, .. } = job;
        let peer = self.peers.get_mut(id)?;
        if peer.bulk.path != BulkPath::Open {
            peer.parked.push(job);
            return None;
        }
        let header = self.header(id, false)?;
        let sending = self.sends.get(region.send)?;
        let bit = job.wanted.trailing_zeros();
        let offset = job.offset + u64::from(bit) * BULK_PAYLOAD as u64;
        let left = sending.total.checked_sub(offset)?;
        let most = (job.wanted >> bit).trailing_ones().min(RUN_FRAMES);
        let longest = left.min(u64::from(most) * BULK_PAYLOAD as u64) as usize;
        let first = longest.min(BULK_PAYLOAD);
        let (lead, rest) = in_one_place(&sending.source, offset, longest);
        let payload = match lead + rest {
            _ if header.crc => first,
            all if all == longest => longest,
            some => (some / BULK_PAYLOAD * BULK_PAYLOAD).max(first),
        };
        job.wanted &= !(first_bits(payload.div_ceil(BULK_PAYLOAD) as u32) << bit);
        let body = Body::Reply { pull, index: job.first.wrapping_add(bit), data: &[] };
        let header = Header { ask: job.wanted == 0, ..header };
        let written =
            self.write_bulk(&header, &body, (region.send, offset), (first, payload), out)?;
        self.put_back(job);
        self.went_out(id, FrameType::Reply, false, written, payload)
    }

    /// Writes a bulk frame, or a run of `length` bytes of data, of which the `first` frame has so
    /// many. Says how long it is, with data that are only referred to.
    pub(super) fn write_bulk(
        &mut self,
        header: &Header,
        body: &Body<'_>,
        (send, offset): (SendId, u64),
        (first, length): (usize, usize),
        out: &mut [u8],
    ) -> Option<usize> {
        let source = &self.sends.get(send)?.source;
        let (lead, rest) = in_one_place(source, offset, length);
        // What fits into a frame may go by the other path, which takes no data from elsewhere.
        if header.crc || lead + rest < length || length <= MAX_MTU.into() {
            let fill = |place: &mut [u8]| source.read(offset, place);
            return Some(wire::write_data(header, body, first, out, fill));
        }
        let end = wire::write_head(header, body, first, out);
        source.read(offset, &mut out[end..end + lead]);
        self.data = Some(Data { send, offset: offset + lead as u64, length: rest });
        Some(end + length)
    }

    /// There is a bulk path between this endpoint and the one at `address`, or there is none any
    /// more.
    pub fn set_bulk_path(&mut self, now: Instant, address: Address, state: impl Into<BulkState>) {
        let state = state.into();
        let BulkState { path, .. } = state;
        if path == BulkPath::Closed {
            self.bulk_paths.remove(&address);
        } else {
            self.bulk_paths.insert(address, state);
        }
        let Some(id) = self.peers.at(address) else { return };
        let Some(peer) = self.peers.get_mut(id) else { return };
        peer.bulk = state;
        match path {
            BulkPath::Open => self.unpark(id),
            BulkPath::Closed => peer.outbound.bulk_path_closed(),
            BulkPath::Full => {}
        }
        self.act(now, id);
    }
}

/// How much of a message its announcement takes along, and how much of it lies in one place after
/// that and may be read there, if that is all, and the peer can.
pub(super) fn readable(
    config: &Config,
    peer: &Peer,
    source: &impl Source,
    total: u64,
) -> Option<(usize, usize)> {
    let can = peer.bulk.path == BulkPath::Open && peer.bulk.reads_memory && !peer.crc;
    let length = usize::try_from(total).ok().filter(|length| can && *length > MAX_MTU.into())?;
    let (lead, rest) = in_one_place(source, 0, length);
    (lead <= config.head.into() && lead + rest == length).then_some((lead, rest))
}

/// Of so many bytes of a message: how many to copy, and how many lie in one place after those.
fn in_one_place(source: &impl Source, offset: u64, length: usize) -> (usize, usize) {
    let first = source.piece(offset, length).len();
    if first == length || first > LONGEST_LEAD {
        return (0, first);
    }
    (first, source.piece(offset + first as u64, length - first).len())
}

/// Bytes of a large message that a frame to or from this peer carries.
pub(super) fn payload(peer: &Peer) -> usize {
    peer.mtu - wire::overhead(FrameType::Reply, peer.crc)
}

/// Bytes of an eager message that a frame to this peer carries.
pub(super) fn medium_payload(peer: &Peer) -> usize {
    peer.mtu - wire::overhead(FrameType::Medium, peer.crc)
}

/// Bytes of a large message that a frame from this peer carries, if there is a path for it.
pub(super) fn payload_from(peer: &Peer) -> usize {
    if peer.bulk.path == BulkPath::Closed { payload(peer) } else { BULK_PAYLOAD }
}

pub(super) fn is_bulk_wanted(config: &Config, peer: &Peer, left: u64) -> bool {
    let min = peer.bulk.min.unwrap_or(config.bulk_min);
    let least = u64::from(min).max(medium_payload(peer) as u64);
    peer.bulk.path != BulkPath::Closed && left > least
}

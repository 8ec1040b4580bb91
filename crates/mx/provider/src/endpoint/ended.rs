//! Completions of MX requests as completions of libfabric.

use std::sync::atomic::Ordering;

use mx::ids::PeerId;
use mx::status::{RequestError, Status};
use mx_io::endpoint::{Completed, RequestId};

use super::live::{Live, Turn};
use super::send::{COUNTED, SILENT, flag_of, sent_entry};
use crate::abi::constants::{FI_MULTI_RECV, FI_RECV, FI_REMOTE_CQ_DATA};
use crate::bits::{self, HEADER, MessageKind};
use crate::cq::{Entry, Failure};
use crate::fault::{self, warn};
use crate::memory;
use crate::message::{MultiReceive, ReceiveBuffer};

/// Where the next message of a buffer for several begins: at a multiple of this, as programs like
/// it that put structures there.
const ALIGNMENT: usize = 16;

impl Live {
    pub(super) fn ended(&self, turn: &mut Turn<'_>, completed: Completed<ReceiveBuffer>) {
        match (completed.request, completed.sink) {
            (_, Some(ReceiveBuffer { remote: Some(remote), header, .. })) => {
                self.came(turn, &completed.status, header, *remote);
            }
            (_, Some(place)) => self.received(turn, &completed.status, &place),
            (RequestId::Connect(_), None) => {
                if let Err(error) = completed.status.result {
                    let peer = completed.status.peer;
                    let address = peer.and_then(|peer| turn.engine().address_of(peer));
                    let peer = address.map_or("a peer".to_owned(), |address| address.to_string());
                    warn(&format!("{} connects to {peer}: {error}", self.address));
                }
            }
            (_, None) if bits::is_remote(completed.status.match_info) => {
                self.wrote(&completed.status);
            }
            (_, None) => self.sent(&completed.status),
        }
    }

    /// The number of a peer's address, if the program has inserted it. The engine keeps it.
    fn number_of(&self, turn: &mut Turn<'_>, peer: PeerId) -> Option<u64> {
        let engine = turn.engine();
        let address = engine.address_of(peer)?;
        // Numbers go when the program removes them, and none was kept at first.
        let is_its_own = |number: &u64| self.addresses.get(*number) == Some(address);
        if let Some(number) = engine.peer_context(peer).filter(is_its_own) {
            return Some(number);
        }
        let number = self.addresses.number_of(address)?;
        engine.set_peer_context(peer, number);
        Some(number)
    }

    fn sent(&self, status: &Status) {
        // What a receiver had no room for is the receiver's concern.
        let failed = status.result.err().filter(|error| *error != RequestError::Truncated);
        let failure = failed.map(|error| Failure { error: fault::of_failed(error), excess: 0 });
        if status.context != SILENT {
            self.tx.count(failure.is_none());
        }
        if [SILENT, COUNTED].contains(&status.context) {
            if let Some(error) = failed {
                warn(&format!("message of {} is lost: {error}", self.address));
            }
            return;
        }
        let entry = sent_entry(status.context as usize, MessageKind::of(status.match_info));
        self.tx.complete(Entry { failure, ..entry });
    }

    fn received(&self, turn: &mut Turn<'_>, status: &Status, place: &ReceiveBuffer) {
        let kind = MessageKind::of(status.match_info);
        let header = HEADER as u64;
        let length = status.transferred.saturating_sub(header) as usize;
        let excess = (status.length - status.transferred) as usize;
        let failed = status.result.err().map(fault::of_failed);
        let failure = failed.map(|error| Failure { error, excess });
        let data = bits::data(&place.header);
        let peer = status.peer.filter(|_| self.reports_sources);
        let source = peer.and_then(|peer| self.number_of(turn, peer));
        let mut entry = Entry {
            context: status.context as usize,
            flags: FI_RECV | flag_of(kind) | data.map_or(0, |_| FI_REMOTE_CQ_DATA),
            length,
            buffer: memory::first(&place.memory).start() as usize,
            data: data.unwrap_or(0),
            tag: status.match_info & bits::TAG,
            source,
            failure,
        };
        self.rx.count(failure.is_none());
        if let Some(MultiReceive { source }) = place.many {
            let rest = memory::rest(&place.memory, length.next_multiple_of(ALIGNMENT));
            let is_gone =
                matches!(status.result, Err(RequestError::Cancelled | RequestError::Aborted))
                    || rest.length() < self.least_left.load(Ordering::Relaxed).max(1);
            let next =
                ReceiveBuffer { many: place.many, ..ReceiveBuffer::new(rest, place.completion) };
            let matching = bits::of_receive(kind, 0, 0);
            let context = status.context;
            let is_posted = !is_gone
                && turn
                    .ask(|engine, now| engine.irecv(now, source, matching, next, context))
                    .is_ok();
            if !is_posted {
                entry.flags |= FI_MULTI_RECV;
            }
        }
        if place.completion || failure.is_some() || entry.flags & FI_MULTI_RECV != 0 {
            self.rx.complete(entry);
        }
    }
}

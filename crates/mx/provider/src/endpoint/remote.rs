//! Remote memory, on both sides: asking a peer, and serving the requests of peers ([`crate::rma`]
//! says how).

use std::sync::atomic::Ordering;

use base::time::Instant;
use libc::{EACCES, EAGAIN, EINVAL, EMSGSIZE};
use mx::endpoint::Endpoint;
use mx::ids::PeerId;
use mx::matching::Match;
use mx::status::{Refusal, RequestError, Status};

use super::calls::{Call, RemoteMemory};
use super::live::{Live, Turn};
use super::send::{COUNTED, SILENT};
use crate::abi::constants::{
    FI_FENCE, FI_INJECT, FI_READ, FI_REMOTE_CQ_DATA, FI_REMOTE_WRITE, FI_RMA, FI_WRITE,
};
use crate::bits::{self, HEADER};
use crate::bound::Driven;
use crate::cq::{Entry, Failure};
use crate::fault::{self, warn};
use crate::info::offer::INJECT;
use crate::memory::{self, Segments};
use crate::message::{Outgoing, ReceiveBuffer, Remote};
use crate::rma::{LENGTH, Operation, PLACES, RmaRequest, SHORT};

impl Live {
    /// Writes to the memory of a peer, or reads from there; or says why not with a number of
    /// libfabric.
    pub(super) fn transfer(
        &self,
        writes: bool,
        remote: RemoteMemory,
        call: &Call,
    ) -> Result<(), i32> {
        let Call { memory, data, flags, completion, .. } = *call;
        let RemoteMemory { offset, key } = remote;
        let length = memory.length();
        let is_injected = flags & FI_INJECT != 0;
        if is_injected && length > INJECT {
            return Err(EMSGSIZE);
        }
        if flags & FI_FENCE != 0 || is_injected && !writes {
            return Err(EINVAL);
        }
        self.has_room()?;
        let peer = self.peer(call.peer)?.id;
        let operation = match (writes, length <= SHORT) {
            (true, true) => Operation::Write,
            (true, false) => Operation::WriteLong,
            (false, _) => Operation::Read,
        };
        let id = self.transfers.fetch_add(1, Ordering::Relaxed);
        let request = RmaRequest { operation, id, key, offset, length: length as u64, data };
        let with = if operation == Operation::Write { memory } else { memory::nothing() };
        let request = Outgoing::with_request(&request.encode(), &with, &self.backlog);
        let bytes = (operation == Operation::WriteLong).then(|| {
            // Injected memory must not be read later on, and short messages are read again.
            let is_copied = is_injected || HEADER + length <= self.eager_max;
            let message = if is_copied { Outgoing::copied } else { Outgoing::lent };
            message(bits::header(None), &memory, &self.backlog)
        });
        let context = call.context as u64;
        let is_known = completion || !is_injected;
        let sent = self.mx.with_engine(|engine, now| {
            engine.isend(now, peer, bits::OF_REQUEST, request, SILENT)?;
            if let Some(bytes) = bytes {
                // It ends when it has been received where it belongs, and so does the write.
                let context = if completion { context } else { COUNTED };
                engine.issend(now, peer, bits::of_bytes(id), bytes, context)?;
            } else {
                let into = if writes { memory::nothing() } else { memory };
                let answer = Remote::Answer { writes, completion, is_known };
                let place = ReceiveBuffer::for_remote(into, answer);
                let matching = Match::exact(bits::of_answer(id));
                engine.irecv(now, Some(peer), matching, place, context)?;
            }
            self.backlog.note(engine.sends());
            Ok(())
        });
        sent.map_err(|error| fault::of_error(&error))
    }

    pub(super) fn has_room(&self) -> Result<(), i32> {
        if self.backlog.is_full() {
            self.progress();
            let sends = self.mx.with_engine(|engine, _| Ok(engine.sends()));
            self.backlog.note(sends.map_err(|error| fault::of_error(&error))?);
            if self.backlog.is_full() {
                return Err(EAGAIN);
            }
        }
        Ok(())
    }

    pub(super) fn accept_requests(&self) -> Result<(), i32> {
        let bytes = || vec![0; LENGTH + SHORT].into();
        let posted = self.mx.with_engine(|engine, now| {
            (0..PLACES).try_for_each(|_| await_request(engine, now, bytes()))
        });
        posted.map_err(|error| fault::of_error(&error))
    }

    /// A message that has to do with remote memory has come, or will not come any more.
    pub(super) fn came(
        &self,
        turn: &mut Turn<'_>,
        status: &Status,
        header: [u8; HEADER],
        remote: Remote,
    ) {
        match remote {
            Remote::Request(bytes) => {
                let length = status.transferred.saturating_sub(HEADER as u64) as usize;
                if let (Ok(()), Some(peer)) = (status.result, status.peer) {
                    match RmaRequest::decode(&bytes[..length.min(bytes.len())]) {
                        Some((request, bytes)) => self.serve(turn, peer, &request, bytes),
                        None => warn(&format!("{}: a request that is none", self.address)),
                    }
                }
                if !matches!(status.result, Err(RequestError::Cancelled | RequestError::Aborted))
                    && let Err(error) = turn.ask(|engine, now| await_request(engine, now, bytes))
                {
                    warn(&format!("{} serves fewer requests: {error}", self.address));
                }
            }
            Remote::Bytes { data } => {
                if status.result == Ok(()) {
                    self.tell_of_write(data, status.transferred.saturating_sub(HEADER as u64));
                }
            }
            Remote::Answer { writes, completion, is_known } => {
                let failure = status.result.err().map(fault::of_failed);
                let failure = failure.or_else(|| bits::refused(&header));
                self.transferred(writes, failure, status.context, completion, is_known);
            }
        }
    }

    /// The bytes of a long write were sent and received, or not.
    pub(super) fn wrote(&self, status: &Status) {
        // The peer had no memory for them.
        let failure = status.result.err().map(|error| match error {
            RequestError::Truncated => EACCES,
            error => fault::of_failed(error),
        });
        if status.context == SILENT {
            if let Err(error) = status.result {
                warn(&format!("a request of {} is lost: {error}", self.address));
            }
            return;
        }
        let completion = status.context != COUNTED;
        self.transferred(true, failure, status.context, completion, completion);
    }

    fn transferred(
        &self,
        writes: bool,
        error: Option<i32>,
        context: u64,
        completion: bool,
        is_known: bool,
    ) {
        let counter = if writes { &self.writes } else { &self.reads };
        if let Some(counter) = counter {
            counter.count(error.is_none());
        }
        let failure = error.map(|error| Failure { error, excess: 0 });
        if completion || failure.is_some() && is_known {
            let flags = FI_RMA | if writes { FI_WRITE } else { FI_READ };
            self.tx.complete(Entry {
                context: context as usize,
                flags,
                failure,
                ..Entry::default()
            });
        } else if let Some(error) = error {
            warn(&format!("a write of {} is lost: {}", self.address, fault::text(error)));
        }
    }

    fn serve(&self, turn: &mut Turn<'_>, peer: PeerId, request: &RmaRequest, bytes: &[u8]) {
        let writes = request.operation != Operation::Read;
        let found = self.regions.find(request.key, request.offset, request.length, writes);
        if let Err(error) = found {
            let RmaRequest { key, offset, length, .. } = request;
            warn(&format!(
                "{}: a peer wants {length} bytes at {offset} of key {key:#x}: {}",
                self.address,
                fault::text(error)
            ));
        }
        match request.operation {
            Operation::Write => {
                if let Ok(memory) = found {
                    memory.write(0, bytes);
                    self.tell_of_write(request.data, request.length);
                }
                self.answer(turn, peer, request.id, found.map(|_| memory::nothing()));
            }
            Operation::Read => self.answer(turn, peer, request.id, found),
            Operation::WriteLong => {
                let place = ReceiveBuffer::for_remote(
                    found.unwrap_or_else(|_| memory::nothing()),
                    Remote::Bytes { data: request.data },
                );
                let matching = Match::exact(bits::of_bytes(request.id));
                // A peer that is gone wants nothing any more.
                let _ =
                    turn.ask(|engine, now| engine.irecv(now, Some(peer), matching, place, SILENT));
            }
        }
    }

    fn answer(&self, turn: &mut Turn<'_>, peer: PeerId, id: u32, with: Result<Segments, i32>) {
        let (header, memory) = match with {
            Ok(memory) => (bits::header(None), memory),
            Err(error) => (bits::refusal(error), memory::nothing()),
        };
        let is_copied = HEADER + memory.length() <= self.eager_max;
        let message = if is_copied { Outgoing::copied } else { Outgoing::lent };
        let message = message(header, &memory, &self.backlog);
        // As above.
        let matching = bits::of_answer(id);
        let _ = turn.ask(|engine, now| engine.isend(now, peer, matching, message, SILENT));
    }

    /// Reports a write of a peer to the program, if the peer wants that.
    fn tell_of_write(&self, data: Option<u64>, length: u64) {
        let Some(data) = data else { return };
        let flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA;
        self.rx.complete(Entry { flags, length: length as usize, data, ..Entry::default() });
    }
}

fn await_request(
    engine: &mut Endpoint<Outgoing, ReceiveBuffer>,
    now: Instant,
    bytes: Box<[u8]>,
) -> Result<(), Refusal> {
    let place = ReceiveBuffer::for_remote(memory::nothing(), Remote::Request(bytes));
    engine.irecv(now, None, Match::exact(bits::OF_REQUEST), place, SILENT).map(drop)
}

//! Receives, looking at messages that no receive has taken, and taking receives back.

use std::sync::PoisonError;

use libc::{EINVAL, ENOENT, ENOMSG};
use mx::endpoint::ProbedMessage;
use mx::ids::PeerId;

use super::calls::{Call, Envelope};
use super::live::Live;
use super::send::flag_of;
use crate::abi::constants::{
    FI_ADDR_UNSPEC, FI_CLAIM, FI_DISCARD, FI_MULTI_RECV, FI_PEEK, FI_RECV, FI_REMOTE_CQ_DATA,
};
use crate::bits::{self, HEADER};
use crate::cq::{Entry, Failure};
use crate::fault;
use crate::message::{MultiReceive, ReceiveBuffer};

impl Live {
    /// Receives a message, or does what the flags say instead; or says why not with a number of
    /// libfabric.
    pub(super) fn receive(&self, envelope: Envelope, call: &Call) -> Result<(), i32> {
        if call.flags & FI_PEEK != 0 {
            self.peek(envelope, call)
        } else if call.flags & (FI_CLAIM | FI_DISCARD) != 0 {
            self.receive_claimed(envelope, call)
        } else {
            self.post(envelope, call)
        }
    }

    fn post(&self, envelope: Envelope, call: &Call) -> Result<(), i32> {
        let source = self.source(call.peer)?;
        let matching = bits::of_receive(envelope.kind, envelope.tag, envelope.ignore);
        let many = (call.flags & FI_MULTI_RECV != 0).then_some(MultiReceive { source });
        let place = ReceiveBuffer { many, ..ReceiveBuffer::new(call.memory, call.completion) };
        let context = call.context as u64;
        let posted =
            self.mx.with_engine(|engine, now| engine.irecv(now, source, matching, place, context));
        posted.map(drop).map_err(|error| fault::of_error(&error))
    }

    /// The peer that a receive names; `None` for any.
    fn source(&self, from: u64) -> Result<Option<PeerId>, i32> {
        if !self.directed || from == FI_ADDR_UNSPEC {
            return Ok(None);
        }
        self.peer(from).map(|peer| Some(peer.id))
    }

    /// Looks for a message. What is found is reported as an end, and so is that nothing was.
    fn peek(&self, envelope: Envelope, call: &Call) -> Result<(), i32> {
        let source = self.source(call.peer)?;
        let matching = bits::of_receive(envelope.kind, envelope.tag, envelope.ignore);
        let is_taken = call.flags & (FI_CLAIM | FI_DISCARD) != 0;
        // What has come since the last look counts, too.
        self.mx.progress().map_err(|error| fault::of_error(&error))?;
        let mut header = [0; HEADER];
        let found = self.mx.with_engine(|engine, now| {
            let found = if is_taken {
                engine.claim(source, matching)?
            } else {
                engine.probe(source, matching)?
            };
            if let Some(ProbedMessage { message, .. }) = found {
                engine.look(message, &mut header);
                if call.flags & FI_DISCARD != 0 {
                    engine.discard(now, message, ReceiveBuffer::nowhere());
                }
            }
            Ok(found)
        });
        let found = found.map_err(|error| fault::of_error(&error))?;
        let flags = FI_RECV | flag_of(envelope.kind);
        let entry = Entry { context: call.context, flags, ..Entry::default() };
        let Some(ProbedMessage { message, match_info, length, .. }) = found else {
            let failure = Some(Failure { error: ENOMSG, excess: 0 });
            self.rx.complete(Entry { tag: envelope.tag, failure, ..entry });
            return Ok(());
        };
        if call.flags & (FI_CLAIM | FI_DISCARD) == FI_CLAIM {
            let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
            claims.insert(call.context, message);
        }
        let data = bits::data(&header);
        self.rx.complete(Entry {
            flags: flags | data.map_or(0, |_| FI_REMOTE_CQ_DATA),
            length: length.saturating_sub(HEADER as u64) as usize,
            data: data.unwrap_or(0),
            tag: match_info & bits::TAG,
            ..entry
        });
        Ok(())
    }

    fn receive_claimed(&self, envelope: Envelope, call: &Call) -> Result<(), i32> {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let message = claims.remove(&call.context).ok_or(EINVAL)?;
        drop(claims);
        let context = call.context as u64;
        let is_unwanted = call.flags & FI_DISCARD != 0;
        let done = self.mx.with_engine(|engine, now| {
            if is_unwanted {
                engine.discard(now, message, ReceiveBuffer::nowhere());
                return Ok(());
            }
            let place = ReceiveBuffer::new(call.memory, call.completion);
            engine.receive_message(now, message, place, context).map(drop)
        });
        done.map_err(|error| fault::of_error(&error))?;
        if is_unwanted && call.completion {
            let flags = FI_RECV | flag_of(envelope.kind);
            self.rx.complete(Entry { context: call.context, flags, ..Entry::default() });
        }
        Ok(())
    }

    /// Takes back the receive with this context; its end is reported.
    pub(super) fn cancel(&self, context: usize) -> isize {
        /// A buffer for several messages is nowhere for a moment after each.
        const ATTEMPTS: usize = 3;
        for _ in 0..ATTEMPTS {
            self.drain();
            let cancelled = self.mx.with_engine(|engine, _| {
                let receive = engine.receive_with(context as u64);
                Ok(receive.is_some_and(|receive| engine.cancel(receive)))
            });
            match cancelled {
                Ok(true) => return 0,
                Ok(false) => {}
                Err(error) => return -(fault::of_error(&error) as isize),
            }
        }
        -(ENOENT as isize)
    }
}

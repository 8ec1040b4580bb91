//! Sends of messages, tagged or not.

use libc::{EINVAL, EMSGSIZE};

use super::calls::{Call, Envelope};
use super::live::Live;
use crate::abi::constants::{
    FI_DELIVERY_COMPLETE, FI_FENCE, FI_INJECT, FI_MSG, FI_SEND, FI_TAGGED,
};
use crate::bits::{self, HEADER, MessageKind};
use crate::cq::Entry;
use crate::fault;
use crate::info::offer::INJECT;
use crate::message::Outgoing;

/// The context of sends that have ended for the user already.
pub(super) const SILENT: u64 = u64::MAX;
/// The context of sends that are counted, and not reported otherwise.
pub(super) const COUNTED: u64 = u64::MAX - 1;

/// Messages of so many bytes are sent from the program's memory, and copied only if that has to be
/// free before they are acknowledged. To copy fewer costs no more than to look whether they are.
const LENT: usize = 4 << 10;

pub(super) const fn flag_of(kind: MessageKind) -> u64 {
    match kind {
        MessageKind::Tagged => FI_TAGGED,
        MessageKind::Untagged => FI_MSG,
    }
}

impl Live {
    /// Sends a message, or says why not with a number of libfabric.
    pub(super) fn send(&self, envelope: Envelope, call: &Call) -> Result<(), i32> {
        let Envelope { kind, tag, .. } = envelope;
        let Call { memory, flags, .. } = call;
        let length = memory.length();
        if flags & FI_INJECT != 0 && length > INJECT {
            return Err(EMSGSIZE);
        }
        // Sends to one peer arrive in order, but nothing makes one wait for all before it.
        if flags & FI_FENCE != 0 || tag > bits::TAG {
            return Err(EINVAL);
        }
        self.has_room()?;
        let peer = self.peer(call.peer)?;
        let header = bits::header(call.data);
        let is_eager = HEADER + length <= self.eager_max;
        let is_copied = flags & FI_INJECT != 0 || is_eager && (length < LENT || peer.is_self);
        let message = if is_copied {
            Outgoing::copied(header, memory, &self.backlog)
        } else {
            Outgoing::lent(header, memory, &self.backlog)
        };
        let synchronous = flags & FI_DELIVERY_COMPLETE != 0;
        // A message to oneself ends when it is received, but a copy needs nothing more now.
        let ends_now = peer.is_self && is_copied && !synchronous;
        let context = match (ends_now, call.completion) {
            (true, _) => SILENT,
            (false, true) => call.context as u64,
            (false, false) => COUNTED,
        };
        let match_info = bits::of_message(kind, tag);
        let sent = self.mx.with_engine(|engine, now| {
            let sent = if synchronous {
                engine.issend(now, peer.id, match_info, message, context)
            } else {
                engine.isend(now, peer.id, match_info, message, context)
            };
            self.backlog.note(engine.sends());
            sent
        });
        sent.map_err(|error| fault::of_error(&error))?;
        if ends_now {
            self.tx.count(true);
            if call.completion {
                self.tx.complete(sent_entry(call.context, kind));
            }
        }
        Ok(())
    }
}

pub(super) fn sent_entry(context: usize, kind: MessageKind) -> Entry {
    Entry { context, flags: FI_SEND | flag_of(kind), ..Entry::default() }
}

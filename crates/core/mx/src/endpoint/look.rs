//! Peeking at the first bytes of messages that no receive has taken.

use super::bulk::readable;
use super::marks::Waited;
use super::{Contents, Endpoint, Message, Sending};
use crate::buffers::{Sink, Source};
use crate::ids::{MessageId, PeerId, ReceiveId, SendId};
use crate::outgoing::{Data, Outgoing};
use crate::wire::{self, Body, FrameType, Header};

impl<S: Source, R: Sink> Endpoint<S, R> {
    /// Reads the beginning of a message that no receive has taken, and says how many bytes of it
    /// are known: of an eager message those that have come, of a large one what its sender
    /// announced ([`Config::head`](crate::config::Config::head)). The message goes on waiting. None
    /// if it is there no longer.
    pub fn look(&self, message: MessageId, into: &mut [u8]) -> Option<usize> {
        let Message { total, contents, .. } = self.messages.get(message)?;
        let known = match contents {
            Contents::Eager(data, have) => &data[..*have as usize],
            Contents::Announced { head, .. } => head.as_bytes(),
            Contents::Local(send) => {
                let length = into.len().min(*total as usize);
                self.sends.get(*send)?.source.read(0, &mut into[..length]);
                return Some(length);
            }
        };
        let length = known.len().min(into.len());
        into[..length].copy_from_slice(&known[..length]);
        Some(length)
    }

    /// A receive that was given this context and has not ended, if there is one. It looks at all of
    /// them.
    pub fn receive_with(&self, context: u64) -> Option<ReceiveId> {
        let mut receives = self.receives.iter();
        receives.find(|(_, receive)| receive.context == context).map(|(id, _)| id)
    }

    pub(super) fn write_announcement(
        &mut self,
        id: PeerId,
        header: Header,
        send: SendId,
        region: u32,
        waited: Waited,
        out: &mut [u8],
    ) -> Option<Outgoing> {
        let marked = self.decide_mark(id, FrameType::Rendezvous, waited);
        let Sending { match_info, total, source, .. } = self.sends.get(send)?;
        let (match_info, total) = (*match_info, *total);
        let readable = readable(&self.config, self.peers.get(id)?, source, total);
        let length = u64::from(self.config.head).min(total) as usize;
        let body = Body::Rendezvous { match_info, total, region, head: &[] };
        let header = Header { marked, ..header };
        let fill = |place: &mut [u8]| source.read(0, place);
        let written = wire::write_data(&header, &body, length, out, fill);
        self.data = readable.map(|(lead, length)| Data { send, offset: lead as u64, length });
        let referred = self.data().len();
        self.went_out(id, FrameType::Rendezvous, marked, written + referred, length)
    }
}
